#pragma once
/// \file
/// Multistep schemes as data: the derivative and the extrapolation at the new time through values at earlier ones.

#include <span>
#include <vector>

#include "solenoid/choices.hpp"

namespace solenoid {

/// How many earlier values a scheme wants.
struct SchemeLengths {
  int derivative;     ///< of u: the order of the scheme
  int extrapolation;  ///< of what is explicit
};
SchemeLengths lengths_of(TimeScheme scheme);

/// u' at the new time is derivative[0] u + sum_i derivative[i] u_i; what is explicit is sum_i extrapolation[i - 1] C_i,
/// i >= 1 counting back from the last step.
struct StepCoefficients {
  std::vector<double> derivative;
  std::vector<double> extrapolation;
};

/// At time `now`, with values at times[0] > times[1] > ..., of which the scheme takes as many as it wants and there
/// are:
///
///     c_0 = sum_j>=1 1 / (t_0 - t_j),   c_i = 1 / (t_i - t_0) prod_{j != 0, i} (t_0 - t_j) / (t_i - t_j),
///     w_i = prod_{j >= 1, j != i} (t_0 - t_j) / (t_i - t_j)
StepCoefficients step_coefficients(TimeScheme scheme, double now, std::span<const double> times);

/// Weights of the polynomial through values at `times`, at time `now`.
std::vector<double> interpolation_weights(double now, std::span<const double> times);

}  // namespace solenoid
