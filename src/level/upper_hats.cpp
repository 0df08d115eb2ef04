#include "level/upper_hats.hpp"

#include <cstdint>

#include "mesh/record.hpp"

namespace solenoid {

Face face_of_hats(const Grid& grid, Record r, int c) {
  return grid.layout().is_cell(r) ? grid.face(r, 2 * c) : grid.hat_face(r);
}

void add_upper_hats(const Level& level, RecordRange records, const double* upper, double* y) {
  const Grid& grid = level.grid;
  const int dim = level.equation.dim;
  const int block = power(level.equation.n(), dim);
  const int columns = power(level.equation.n(), dim - 1);
  for (const Record r : records) {
    for (int c = 0; c < dim; ++c) {
      const bool fixed = normal_fixed(face_of_hats(grid, r, c));
      const Record below = grid.neighbour(r, 2 * c);
      const bool shared = grid.layout().near_cells().contains(below);
      double* const hats = y + level.index(r, c * block);
      if (fixed) {
        for (int i = 0; i < columns; ++i) hats[interleave * i] = 0.0;
      } else if (shared) {
        const double* const share = upper + record_offset(below, dim * columns) + interleave * c * columns;
        for (int i = 0; i < columns; ++i) hats[interleave * i] += share[interleave * i];
      }
    }
  }
}

}  // namespace solenoid
