#pragma once
/// \file
/// The viscosity at points of the cpu engine.

#include <vector>

#include "base/host_vector.hpp"
#include "engine/cpu/kernels/points_table.hpp"
#include "engine/cpu/team.hpp"
#include "level/level.hpp"

namespace solenoid::cpu {

/// What it adds to the operator of the means.
class PointViscosityTerm {
 public:
  /// Of a level with points, which must outlive it. \throws InputError if this build lacks the order.
  PointViscosityTerm(Team& team, const Level& level);

  /// y += sign D x for vectors of the level, D made of these weights (engine/point_weights.hpp).
  void add(const std::vector<float>& weights, double sign, const double* x, double* y);

 private:
  Team& team_;
  const Level& level_;
  void (*kernel_)(const PointViscosityArguments&);
  PointViscosityData data_;
  HostVector upper_;  // what cells have of the hats on their upper faces
};

}  // namespace solenoid::cpu
