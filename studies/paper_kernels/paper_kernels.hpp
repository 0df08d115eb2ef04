#pragma once
/// \file
/// The kernels of the paper's Section 5, written from its text, as a baseline: how fast its method is on this card.
/// They stand apart from the library, which is used only to check them and for the univariate matrices.
///
/// The domain is the unit cube (boxes of cubes in checks) with no-slip walls. Vectors have the paper's layout: the
/// unknowns of a face, of the interior of a cell and of a cell's pressure lie together, and a table knows the first
/// one of each. Their basis is the library's, so that vectors compare by permutation; nothing in the kernels depends on
/// it: all univariate matrices are dense to them.

#include <cstdint>
#include <string>
#include <vector>

namespace solenoid::paper {

enum class Real { single_precision, double_precision };

/// One kernel, or a whole smoothing step, as measured. Counts are those of the kernel's formulas, not of counters.
struct Timing {
  std::string kernel;  ///< "operator", "local solver" (one colour), "smoothing step" (eight, with their residuals)
  std::string stage;   ///< operator: padding, basic, shared memory, conflict-free; others: direct (local solver only),
                       ///< Schur complement, conflict-free
  int order = 0;
  Real real = Real::double_precision;
  std::int64_t unknowns = 0;
  double seconds = 0.0;       ///< median of at least ten runs
  double flops = 0.0;         ///< two in a fused multiply-add, those with padding and zeros too
  double device_bytes = 0.0;  ///< unknowns, index tables and (dense) local matrices that are read and written
  double shared_bytes = 0.0;  ///< what shared memory has to deliver if there are no bank conflicts

  [[nodiscard]] double nanoseconds_per_unknown() const { return 1e9 * seconds / static_cast<double>(unknowns); }
  [[nodiscard]] double unknowns_per_second() const { return static_cast<double>(unknowns) / seconds; }
};

/// How far a kernel is from the library, relative to the largest value.
struct Check {
  std::string kernel;
  std::string stage;
  int order = 0;
  Real real = Real::double_precision;
  double difference = 0.0;
  double tolerance = 0.0;

  [[nodiscard]] bool good() const { return difference <= tolerance; }
};

/// Orders of RT_k that this build has these kernels for: none without CUDA.
std::vector<int> orders();

// All of these need a CUDA device and throw ResourceError if something fails there, InputError if the order is none of
// orders(). The cube has as many cells as come closest to `unknowns`, an even number per direction.

/// The four stages of the operator.
std::vector<Timing> measure_operator(int order, std::int64_t unknowns, Real real);
/// The local solvers on one colour in their three variants, with the paper's 15 iterations of CG, and then the
/// smoothing step with either iterative one: for every colour the residual (by the fastest operator), then the local
/// solver.
std::vector<Timing> measure_smoother(int order, std::int64_t unknowns, Real real);
/// Every kernel against the library, on small boxes with random vectors; CG iterates to rounding there.
std::vector<Check> check(int order, Real real);

}  // namespace solenoid::paper
