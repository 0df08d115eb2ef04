#pragma once
/// \file
/// What kernels of flows at points want of a level's cells, on the device.

#include <memory>

#include "engine/engine.hpp"
#include "engine/flow_data.hpp"
#include "level/coefficients.hpp"

namespace solenoid::cuda {

/// A viscosity at flow_points(k) Gauss points per direction (DeviceLevel::viscosity).
class DeviceViscosity {
 public:
  ViscosityOfCells of(Engine& engine, const Coefficients& coefficients);

 private:
  std::shared_ptr<const CellCoefficients> by_cell_;
  Vector<double> values_;
};

}  // namespace solenoid::cuda
