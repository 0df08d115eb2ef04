#pragma once
/// \file
/// What kernels of flows at points want of a level's cells, on the device.

#include <memory>

#include "engine/cuda/kernels/flow_at_points.hpp"
#include "engine/engine.hpp"
#include "level/coefficients.hpp"

namespace solenoid::cuda {

CellMap cell_map(const Grid& grid);

/// A viscosity at k + 2 Gauss points per direction (DeviceLevel::viscosity).
class DeviceViscosity {
 public:
  ViscosityOfCells of(Engine& engine, const Coefficients& coefficients);

 private:
  std::shared_ptr<const CellCoefficients> by_cell_;
  Vector<double> values_;
};

}  // namespace solenoid::cuda
