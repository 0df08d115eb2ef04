#pragma once
/// \file
/// Solving: problem and options in, solution and report out.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "solenoid/interrupt.hpp"
#include "solenoid/options.hpp"
#include "solenoid/problem.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {

/// What full multigrid says of the L2 error of its velocity (with Poisson's equation of u), from what it has computed.
struct ErrorEstimate {
  /// Of the error as a whole: |u_l - P u_(l-1)| / (2^(k+1) - 1), where u_l is the result and P u_(l-1) that of the next
  /// coarser level. It takes for granted that the exact solution is smooth, so that the error falls by 2^(k+1) from
  /// level to level. Where that level is coarser in some directions only, differences of further levels are added (root
  /// of the sum of squares) until each direction has its own. None if there are not that many levels, or where there is
  /// flow through sides with a prescribed velocity: what is lifted is unlike anything on a coarser level.
  std::optional<double> total;
  /// Of its algebraic part, the distance to the solution of the discrete problem: the correction that a cycle on the
  /// next coarser level finds for the residual that is left.
  double algebraic = 0.0;
};

/// What happened: every field of the result file that is not about the solution itself, and errors where
/// SolverOptions::exact asks for them.
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
  int steps = 0;                 ///< of a flow in time,
  double end_time = 0.0;         ///< which got so far
  std::optional<bool> steady;    ///< whether it has become that, if TimeOptions::steady asks,
  std::optional<double> change;  ///< by StepReport::change of the last step
  int ranks = 1;
  std::string transport;                        ///< how messages between ranks travel; empty with one
  std::vector<std::int64_t> rank_cells;         ///< [rank]: cells that it owns
  std::vector<std::int64_t> rank_memory_bytes;  ///< [rank]: as memory_bytes
  double time_setup = 0.0;                      ///< seconds
  double time_solve = 0.0;                      ///< seconds
  std::int64_t memory_bytes = 0;                ///< what the solve allocated at its peak, of the rank with the most
  std::optional<ErrorEstimate> error_estimate;  ///< of full multigrid
  Errors errors;                                ///< against SolverOptions::exact
};

struct Result {
  Solution solution;
  Report report;
};

/// Solves the problem. A solve that does not converge is a result with report.converged == false, not an exception.
/// \throws InputError for wrong input, ResourceError if device or memory do not suffice, Interrupted if it is asked to
/// end (interrupt.hpp).
Result solve(const Problem& problem, const SolverOptions& options = {});
/// The same from an initial guess: a solution of the same equation on the same domain. On the same cells and of the
/// same order its unknowns are taken as they are; from other cells, if those of one mesh cut those of the other, and of
/// another order it is interpolated (velocities so that they stay divergence-free). Forces, boundary data, boundary
/// kinds and coefficients may differ; prescribed normal velocities are those of `problem`. Residuals stay relative to
/// the right-hand side. \throws InputError also if the domains differ, `start` is not finite, or with full multigrid,
/// which does not start from a guess.
Result solve(const Problem& problem, const Solution& start, const SolverOptions& options = {});

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
