#include "engine/cuda/flow_points.hpp"

#include "element/moments.hpp"
#include "element/viscosity_points.hpp"
#include "engine/cuda/kernels/flow_integrals.hpp"

namespace solenoid::cuda {

CellMap cell_map(const Grid& grid) {
  CellMap result{};
  const AffineMap* const map = grid.metric().map();
  if (map == nullptr) return result;
  result.sheared = true;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      result.image[i][j] = map->direction(j)[i] / map->jacobian();
      result.pulled[i][j] = map->inverse()[i][j];
    }
  }
  return result;
}

ViscosityOfCells DeviceViscosity::of(Engine& engine, const Coefficients& coefficients) {
  const auto& by_cell = coefficients.by_cell;
  if (by_cell == nullptr) return {coefficients.viscosity, nullptr, 0, 0};
  const ViscosityPoints* const points = by_cell->points.get();
  if (by_cell != by_cell_) {
    values_ = points != nullptr ? on_device(engine, points->values()) : on_device(engine, by_cell->viscosity);
    by_cell_ = by_cell;
  }
  // Those inside of cells are at the points where they are wanted.
  static_assert(viscosity_points(7) == flow_points(7) && viscosity_points(7) == moment_points(7));
  if (points != nullptr) return {1.0, values_.data(), points->in_cell(), 1};
  return {1.0, values_.data(), 1, 0};
}

}  // namespace solenoid::cuda
