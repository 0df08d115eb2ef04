#pragma once
/// \file
/// Implicit-explicit Runge-Kutta schemes as data: tableaux, and the solves that a step is made of.

#include <vector>

#include "solenoid/choices.hpp"
#include "time/scheme.hpp"

namespace solenoid {

/// A scheme for u' = E(u) + I(u, t) whose explicit part E begins with the value at the beginning of the step, stage 0,
/// and whose implicit part I is diagonally implicit in the stages 1 to s:
///
///     U_i = u_n + dt (sum_j=1..i a_ij I(U_j, t_j) + sum_j<i e_ij E(U_j)),   t_j = t_n + dt sum_l a_jl,
///     u_n+1 = u_n + dt (sum_j b_j I(U_j, t_j) + sum_j d_j E(U_j)).
struct Tableau {
  int order;
  std::vector<std::vector<double>> implicit;  ///< row i - 1: a_i1 .. a_ii
  std::vector<std::vector<double>> forward;   ///< row i - 1: e_i0 .. e_i,i-1
  std::vector<double> implicit_weights;       ///< b_1 .. b_s
  std::vector<double> forward_weights;        ///< d_0 .. d_s

  /// u_n+1 = U_s: the weights are the last rows.
  [[nodiscard]] bool ends_with_last_stage() const;
};

/// Those of Ascher, Ruuth and Spiteri, Implicit-explicit Runge-Kutta methods for time-dependent partial differential
/// equations, 1997: ars233 in their section 2.4, ars443 in 2.8. \throws std::logic_error for others.
const Tableau& tableau_of(TimeScheme scheme);

/// The solves of a step of length dt. With I eliminated by the equations of the stages before, that of a stage has the
/// form of a multistep scheme, its known flows being the stages before and u_n. What ends with the last stage has no
/// more solves than stages; otherwise an update is the last one.
std::vector<StepSolve> solves_of(const Tableau& tableau, double dt);

/// The pressure of a step. Each solve has a multiplier that holds its velocity divergence-free; those of stages are no
/// better than of first order. But velocities at the ends of steps differ by dt sum_j (b_j I + d_j E), so that
///
///     sum_j b_j p_j   (+ what the update adds)   =   the mean of p over the step   + O(dt^order).
///
/// These are the weights of the multipliers, of the first solve first.
std::vector<double> mean_pressure_weights(const Tableau& tableau, double dt);

}  // namespace solenoid
