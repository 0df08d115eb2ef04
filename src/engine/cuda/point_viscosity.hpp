#pragma once
/// \file
/// The viscosity at points of the cuda engine.

#include <memory>

#include "engine/cuda/cuda_kernels.hpp"
#include "engine/cuda/device_level.hpp"
#include "engine/cuda/kernels/point_viscosity.hpp"
#include "engine/point_weights.hpp"

namespace solenoid::cuda {

using DevicePointWeights = PointWeights<Array<float>>;

/// What it adds to the operator of the means.
class PointViscosityTerm {
 public:
  /// Of a level with points, which must outlive it.
  PointViscosityTerm(Shared& shared, const Level& level);

  /// weights_of() the level.
  [[nodiscard]] std::shared_ptr<const DevicePointWeights> weights(
      const std::shared_ptr<const DevicePointWeights>& now) const;
  /// y += sign D x for vectors of the level.
  void add(const DevicePointWeights& weights, double sign, const double* x, double* y);

 private:
  Shared& shared_;
  const Level& level_;
  std::shared_ptr<DeviceLevel> device_;
  void (*kernel_)(const PointViscosityArguments&, Stream);
  ViscosityTables tables_{};
  std::int32_t cells_;
  Vector<double> upper_;  // what cells have of the hats on their upper faces
};

}  // namespace solenoid::cuda
