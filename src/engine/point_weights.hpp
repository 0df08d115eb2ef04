#pragma once
/// \file
/// What a viscosity at points has more than that of cells, as kernels want it.

#include <vector>

#include "level/level.hpp"
#include "mesh/record.hpp"

namespace solenoid {

/// Gauss points per direction, in cells and on faces.
constexpr int viscosity_points(int order) { return order + 2; }

/// Numbers for each cell: of the points in it, then of those on its faces, [side][point].
constexpr int point_weights_of_cell(int dim, int order) {
  return power(viscosity_points(order), dim) + 2 * dim * power(viscosity_points(order), dim - 1);
}

/// For every near cell (VectorLayout::near_cells), interleaved as records are: nu - nu_K at the points of the cell, x
/// fastest; and nu_F - nu_F,K at those of each face, the direction a + 1 fastest, then a + 2, with nu_F as of the
/// element-by-element operator (nothing on slip and outflow faces). The operator is linear in these, so that this is
/// what remains of it beside that of the means. In single precision: it is a difference.
std::vector<float> point_weights(const Level& level);

}  // namespace solenoid
