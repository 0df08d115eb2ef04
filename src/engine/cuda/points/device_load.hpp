#pragma once
/// \file
/// What loads on the device need of a level, and of fields.

#include "engine/cuda/cuda_kernels.hpp"
#include "engine/cuda/points/device_fields.hpp"
#include "solenoid/field.hpp"

namespace solenoid::cuda {

class DeviceLoad {
 public:
  DeviceLoad(Shared& shared, const Level& level, const DeviceLevel& device);

  /// b = (f, v). False, with anything in b, if a component of f is a function of the caller, needs too much memory, or
  /// is not finite somewhere.
  bool operator()(const VectorField& force, double* b);

 private:
  Shared& shared_;
  const Level& level_;
  const DeviceLevel& device_;
  const KernelTable<double>& table_;
  DevicePlaces places_;
  Vector<int> not_finite_;
};

}  // namespace solenoid::cuda
