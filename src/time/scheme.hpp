#pragma once
/// \file
/// Multistep schemes as data: the derivative and the extrapolation at the new time through values at earlier ones; and
/// what they share with Runge-Kutta schemes (runge_kutta.hpp): a step as a list of solves.

#include <span>
#include <vector>

#include "solenoid/choices.hpp"

namespace solenoid {

bool is_multistep(TimeScheme scheme);
/// Of velocity and pressure in time.
int order_of(TimeScheme scheme);

/// How many earlier values a multistep scheme wants.
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

/// One solve of a step: for the flow u at a time,
///
///     c_0 M u + nu A u + B^T p = f - sum_i>=1 [ c_i M u_i + w_i C(u_i) ],   B u = 0,
///
/// where u_i are known flows, the last one first: those of the solves of this step before, then those at the ends of
/// steps.
struct StepSolve {
  StepCoefficients coefficients;
  double from_end = 0.0;   ///< the time, from the end of the step
  bool is_update = false;  ///< without nu A u and f, and c_0 = 1: u is a combination of what is known, made
                           ///< divergence-free
};
/// How many there are in a step.
int number_of_solves(TimeScheme scheme);
/// A step to time 0 from times[0] = -dt > times[1] > ..., as step_coefficients.
std::vector<StepSolve> solves_of(TimeScheme scheme, std::span<const double> times);

/// Weights of the polynomial through values at `times`, and of its derivative, at time `now`.
std::vector<double> interpolation_weights(double now, std::span<const double> times);
std::vector<double> differentiation_weights(double now, std::span<const double> times);
/// Weights, at time `now`, of the polynomial that has the given means from times[1] to times[0], times[2] to times[1]
/// and on.
std::vector<double> mean_interpolation_weights(double now, std::span<const double> times);

}  // namespace solenoid
