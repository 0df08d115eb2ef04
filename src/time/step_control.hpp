#pragma once
/// \file
/// How long the next step is.

#include "solenoid/time_stepper.hpp"

namespace solenoid {

/// omega_k: the convective operator of order k multiplies frequencies R by so much at most.
double convective_frequency(int order);

/// Lengths of steps of one flow. The first is a hundredth of what is wanted; from then on they grow slowly. Those that
/// follow the flow are powers of 2^(1/4), so that few are different: up by one a step, down at once.
class StepControl {
 public:
  StepControl(const TimeOptions& options, int order);

  /// After steps of `last` (0: none), with a flow that crosses cells at the rate R. \throws InputError if nothing
  /// limits it.
  [[nodiscard]] double next(double last, double rate) const;
  [[nodiscard]] double cfl(double length, double rate) const { return length * frequency_ * rate; }

 private:
  double step_;
  double cfl_;
  double frequency_;
  bool starts_slowly_;
};

}  // namespace solenoid
