#pragma once
/// \file
/// Coefficients that vary by cell, on the device.

#include "engine/cuda/device_level.hpp"
#include "engine/varying.hpp"

namespace solenoid::cuda {

template <class T>
class DeviceCoefficients {
 public:
  DeviceCoefficients() = default;
  /// Of a level whose coefficients vary.
  DeviceCoefficients(Engine& engine, const Level& level) : DeviceCoefficients(engine, VaryingCoefficients<T>(level)) {}

  /// With pointers to device memory.
  [[nodiscard]] const VaryingData<T>& data() const { return data_; }

 private:
  DeviceCoefficients(Engine& engine, const VaryingCoefficients<T>& host)
      : viscosity_(engine, host.viscosity()), reaction_(engine, host.reaction()), data_(host.data()) {
    data_.viscosity = viscosity_.data();
    data_.reaction = reaction_.data();
  }

  Array<T> viscosity_;
  Array<T> reaction_;
  VaryingData<T> data_{};
};

}  // namespace solenoid::cuda
