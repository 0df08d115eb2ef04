#pragma once
/// \file
/// Solving: problem and options in, solution and report out.

#include <cstdint>
#include <string>
#include <vector>

#include "solenoid/options.hpp"
#include "solenoid/problem.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {

/// What happened: every field of the result file that is not about the solution itself.
struct Report {
  bool converged = false;
  std::string reason;
  int iterations = 0;
  double fractional_iterations = 0.0;    ///< iterations to exactly rtol, by the mean reduction (paper, Section 3.3)
  std::vector<double> residual_history;  ///< relative norms, the initial one first
  std::int64_t dofs = 0;
  std::int64_t cells = 0;
  int levels = 0;
  std::string device;
  std::string precision;
  int threads = 0;
  double time_setup = 0.0;        ///< seconds
  double time_solve = 0.0;        ///< seconds
  std::int64_t memory_bytes = 0;  ///< what the solve allocated at its peak
};

struct Result {
  Solution solution;
  Report report;
};

/// Solves the problem. A solve that does not converge is a result with report.converged == false, not an exception.
/// \throws InputError for wrong input, ResourceError if device or memory do not suffice.
Result solve(const Problem& problem, const SolverOptions& options = {});

/// What a solve would need.
struct Estimate {
  std::int64_t dofs = 0;
  std::int64_t bytes_needed = 0;
  std::int64_t bytes_available = 0;
  int largest_refine = 0;  ///< the largest mesh.refine whose need fits, -1 if none
};
/// Without solving. \throws InputError as solve() does for what can be seen without the mesh; ResourceError if there is
/// no such device.
Estimate estimate(const Problem& problem, const SolverOptions& options = {});

}  // namespace solenoid
