#pragma once
/// \file
/// Whether the energy of a flow grows by itself.

#include <deque>
#include <functional>
#include <optional>

namespace solenoid {

/// In the balance of energy, a step times its velocity u, what a scheme has of its own is the power of the difference
/// between convection as it is and as it is extrapolated,
///
///     P = (C(u)u - sum_i w_i C(u_i), u),
///
/// (of Runge-Kutta schemes: with the weights of the stages),
/// since (C(u)u, u) itself takes energy out, but for what flows in with a prescribed velocity. Forces and sides do what
/// they do; steps that are too long make P the source of all that grows. So where the energy has grown by half within
/// the last 50 steps, P dt is added up from there on, and the alarm is raised once the energy is more than twice what
/// it was and at least half of the growth is of P.
class EnergyAlarm {
 public:
  /// What was seen.
  struct Growth {
    int step;       ///< the last one before it
    double before;  ///< the energy then
    double made;    ///< what P has added
  };

  /// For each step and its energy; `made` says P dt, and is called where that is of interest.
  std::optional<Growth> after(int step, double energy, const std::function<double()>& made);

 private:
  struct Past {
    int step;
    double energy;
  };
  std::deque<Past> past_;
  std::optional<Growth> growth_;
};

}  // namespace solenoid
