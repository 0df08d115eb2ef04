#pragma once
/// \file
/// What a viscosity at points has more than that of cells, as kernels want it.

#include <memory>

#include "base/unset.hpp"
#include "engine/point_tables.hpp"
#include "level/level.hpp"

namespace solenoid {

/// For every near cell (VectorLayout::near_cells) point_weights_of_cell() numbers, interleaved as records are: nu -
/// nu_K at the points of the cell, x fastest; and nu_F - nu_F,K at those of each face, the direction a + 1 fastest,
/// then a + 2, with nu_F as of the element-by-element operator (nothing on slip and outflow faces). The operator is
/// linear in these, so that this is what remains of it beside that of the means. In single precision: it is a
/// difference.
Unset<float> point_weights(const Level& level);

ViscosityTables make_viscosity_tables(const Level& level);

/// Weights where an engine has them, and the viscosity that they were made of.
template <class Memory>
struct PointWeights {
  std::shared_ptr<const ViscosityPoints> points;
  Memory weights;
};

/// Those of a level with points: `now`, if they are, or what place(point_weights) makes of new ones.
template <class Memory, class Place>
std::shared_ptr<const PointWeights<Memory>> weights_of(const Level& level,
                                                       const std::shared_ptr<const PointWeights<Memory>>& now,
                                                       const Place& place) {
  const auto& points = level.coefficients.by_cell->points;
  if (now != nullptr && now->points == points) return now;
  return std::make_shared<const PointWeights<Memory>>(PointWeights<Memory>{points, place(point_weights(level))});
}

}  // namespace solenoid
