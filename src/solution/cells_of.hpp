#pragma once
/// \file
/// Cells that something asked of a Solution is made of: their records, and those that have the hats on their upper
/// faces, are all of its coefficients that are read.

#include <span>
#include <utility>
#include <vector>

#include "mesh/grid.hpp"
#include "solenoid/field.hpp"

namespace solenoid {

/// Solution::velocity() and what else is asked for at points: those of this rank.
std::vector<Record> cells_of_points(const Grid& grid, std::span<const Point> points);
/// Solution::flux(): one for each piece of the plane, and where the plane cuts it, in [0, 1]. Those of this rank.
/// \throws InputError as flux() does.
std::vector<std::pair<Record, double>> cells_of_plane(const Grid& grid, int axis, double position);
/// Solution::forces(): cells of this rank on the boundary, and those behind their faces.
std::vector<Record> cells_of_forces(const Grid& grid);

/// The records of cells and those above them, each once, in their order.
std::vector<Record> records_of_cells(const Grid& grid, std::span<const Record> cells);

}  // namespace solenoid
