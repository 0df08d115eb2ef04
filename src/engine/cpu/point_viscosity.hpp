#pragma once
/// \file
/// The viscosity at points of the cpu engine.

#include <memory>
#include <vector>

#include "base/host_vector.hpp"
#include "engine/cpu/kernels/points_table.hpp"
#include "engine/cpu/team.hpp"
#include "engine/point_weights.hpp"
#include "level/level.hpp"

namespace solenoid::cpu {

using HostPointWeights = PointWeights<Unset<float>>;

/// What it adds to the operator of the means.
class PointViscosityTerm {
 public:
  /// Of a level with points, which must outlive it. \throws InputError if this build lacks the order.
  PointViscosityTerm(Team& team, const Level& level);

  /// weights_of() the level.
  [[nodiscard]] std::shared_ptr<const HostPointWeights> weights(
      const std::shared_ptr<const HostPointWeights>& now) const;
  /// y += sign D x for vectors of the level.
  void add(const HostPointWeights& weights, double sign, const double* x, double* y);

 private:
  Team& team_;
  const Level& level_;
  void (*kernel_)(const PointViscosityArguments&);
  ViscosityTables tables_;
  HostVector upper_;  // what cells have of the hats on their upper faces
};

}  // namespace solenoid::cpu
