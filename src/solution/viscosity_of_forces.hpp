#pragma once
/// \file
/// The viscosity where forces are integrated.

#include <cstddef>
#include <vector>

#include "level/viscosity_in_cells.hpp"
#include "mesh/grid.hpp"
#include "solution/cell_evaluator.hpp"

namespace solenoid {

/// nu at tensor points of one cell after the other or, with `side` not negative, of that side of it: nu_F where another
/// cell is behind the side. One object serves one thread.
class ViscosityOfForces {
 public:
  ViscosityOfForces(const Coefficients& coefficients, const Grid& grid, const TensorPoints& xi, int side)
      : grid_(&grid),
        side_(side),
        here_(coefficients, grid.dim(), xi),
        behind_(coefficients, grid.dim(), seen_from_behind(xi, side)) {}

  /// Those of a side as the cell behind it has them.
  static TensorPoints seen_from_behind(TensorPoints xi, int side) {
    if (side >= 0) xi[side / 2] = {side % 2 == 0 ? 1.0 : 0.0};
    return xi;
  }

  const std::vector<double>& of(Record cell) {
    const std::vector<double>& mine = here_.of(cell);
    if (side_ < 0 || grid_->face(cell, side_) != Face::interior) return mine;
    const std::vector<double>& its = behind_.of(grid_->neighbour(cell, side_));
    between_.resize(mine.size());
    for (std::size_t q = 0; q < mine.size(); ++q) between_[q] = face_viscosity(mine[q], its[q]);
    return between_;
  }

 private:
  const Grid* grid_;
  int side_;
  ViscosityInCells here_;
  ViscosityInCells behind_;
  std::vector<double> between_;
};

}  // namespace solenoid
