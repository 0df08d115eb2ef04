#pragma once
/// \file
/// What loads on the device need of a level, and of fields.

#include <array>

#include "engine/cuda/cuda_kernels.hpp"
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
  Array<std::array<std::int32_t, 3>> positions_;
  std::array<Array<double>, 3> planes_;
  std::array<Array<double>, 3> widths_;
  Vector<int> not_finite_;
};

}  // namespace solenoid::cuda
