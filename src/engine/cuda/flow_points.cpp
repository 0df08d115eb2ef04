#include "engine/cuda/flow_points.hpp"

#include "engine/flow_sums.hpp"

namespace solenoid::cuda {

ViscosityOfCells DeviceViscosity::of(Engine& engine, const Coefficients& coefficients) {
  ViscosityOfCells viscosity = viscosity_of_cells(coefficients);
  const auto& by_cell = coefficients.by_cell;
  if (by_cell == nullptr) return viscosity;
  if (by_cell != by_cell_) {
    const bool points = by_cell->points != nullptr;
    values_ = points ? on_device(engine, by_cell->points->values()) : on_device(engine, by_cell->viscosity);
    by_cell_ = by_cell;
  }
  viscosity.of = values_.data();
  return viscosity;
}

}  // namespace solenoid::cuda
