#pragma once
/// \file
/// The coefficients that the solves of a flow in time have.

#include <utility>
#include <vector>

#include "level/level.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// nu and alpha of a flow, which may change in time, and what solves have in place of alpha: alpha + c_0, where c_0 is
/// the factor of the new flow in the derivative. What was made last is kept: coefficients that are the same are so
/// without a look at each cell.
class FlowCoefficients {
 public:
  /// On the finest level, which must outlive this.
  FlowCoefficients(const Problem& problem, const Level& finest);

  /// Those of another problem from now on, looked at as they are at a time. \throws InputError for values that no
  /// problem can have; nothing is changed then.
  void set(const Problem& problem, double t);

  /// Whether they depend on the time.
  [[nodiscard]] bool change() const { return change_; }
  /// nu and alpha at a time.
  const Coefficients& at(double t);
  /// nu and alpha + c_0.
  Coefficients with_derivative(double t, double c_0);

 private:
  [[nodiscard]] Coefficients made(const Problem& problem, double t) const;

  const Level& finest_;
  Problem problem_;
  bool change_;
  double time_ = 0.0;
  Coefficients now_;
  std::vector<std::pair<double, Coefficients>> with_derivative_;  // c_0, of now_; the last ones last
};

}  // namespace solenoid
