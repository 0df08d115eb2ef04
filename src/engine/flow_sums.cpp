#include "engine/flow_sums.hpp"

#include <cmath>

#include "base/statistics.hpp"
#include "element/moments.hpp"
#include "element/viscosity_points.hpp"

namespace solenoid {
namespace {

double jacobian_of(const Grid& grid) {
  const AffineMap* const map = grid.metric().map();
  return map == nullptr ? 1.0 : map->jacobian();
}

}  // namespace

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

ViscosityOfCells viscosity_of_cells(const Coefficients& coefficients) {
  const auto& by_cell = coefficients.by_cell;
  if (by_cell == nullptr) return {coefficients.viscosity, nullptr, 0, 0};
  // Those inside of cells are at the points where they are wanted.
  static_assert(viscosity_points(7) == flow_points(7) && viscosity_points(7) == moment_points(7));
  const ViscosityPoints* const points = by_cell->points.get();
  if (points != nullptr) return {1.0, points->values().data(), points->in_cell(), 1};
  return {1.0, by_cell->viscosity.data(), 1, 0};
}

FlowIntegrals integrals_of(std::span<const FlowPartial> shares, const Grid& grid) {
  const double jacobian = jacobian_of(grid);
  FlowIntegrals all;
  double speed_square = 0.0;
  for (const FlowPartial& share : shares) {
    for (int c = 0; c < 3; ++c) all.velocity[c] += jacobian * share.velocity[c];
    all.velocity_square += jacobian * share.velocity_square;
    all.gradient_square += jacobian * share.gradient_square;
    all.vorticity_square += jacobian * share.vorticity_square;
    speed_square = max_or_nan(speed_square, share.speed_square);
    all.max_divergence = max_or_nan(all.max_divergence, share.divergence);
  }
  all.max_speed = std::sqrt(speed_square);
  return all;
}

double dissipation_of(std::span<const FlowPartial> shares, const Grid& grid) {
  double sum = 0.0;
  for (const FlowPartial& share : shares) sum += share.dissipation;
  return jacobian_of(grid) * sum;
}

}  // namespace solenoid
