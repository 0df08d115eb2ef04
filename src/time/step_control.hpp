#pragma once
/// \file
/// How long the next step is.

#include <limits>

#include "solenoid/time_stepper.hpp"

namespace solenoid {

/// omega_k: the convective operator of order k multiplies frequencies R by so much at most.
double convective_frequency(int order);

/// Lengths of steps of one flow. The first is a hundredth of what is wanted; from then on they grow slowly. Those that
/// follow the flow are powers of 2^(1/4), so that few are different: up by one a step, down at once.
class StepControl {
 public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  StepControl(const TimeOptions& options, int order);

  /// After steps of `last` (0: none), with a flow that crosses cells at the rate R; `longest`: what else limits it.
  /// \throws InputError if nothing does.
  [[nodiscard]] double next(double last, double rate, double longest = unlimited) const;
  /// Whether steps follow the flow, and the largest dt R then.
  [[nodiscard]] bool follows_flow() const { return cfl_ > 0.0; }
  [[nodiscard]] double reach() const { return cfl_ / frequency_; }
  [[nodiscard]] double cfl(double length, double rate) const { return length * frequency_ * rate; }

 private:
  double step_;
  double cfl_;
  double frequency_;
  bool starts_slowly_;
};

}  // namespace solenoid
