#pragma once
/// \file
/// Hats that two cells share: a cell that is computed alone has the rows of its own record, and of the hats on its
/// upper faces a share, which belongs to the records behind them.

#include "level/level.hpp"

namespace solenoid {

/// The kind of the face that the hats of a record in direction c lie on.
Face face_of_hats(const Grid& grid, Record r, int c);

/// Adds to the hats of `records` in y, a vector of the level, what the cells below have of them; zero where they are
/// prescribed. `upper`: dim n^(dim-1) numbers for each near cell (VectorLayout::near_cells), interleaved as records
/// are.
void add_upper_hats(const Level& level, RecordRange records, const double* upper, double* y);

}  // namespace solenoid
