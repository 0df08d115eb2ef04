#include "engine/cuda/tiles.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "engine/cuda/kernels/arguments.hpp"

namespace solenoid::cuda {
namespace {

/// Some neighbour is not above the neighbour of the cell below.
bool irregular(const Grid& grid, Grid::Record cell) {
  for (int side = 0; side < 2 * grid.dim(); ++side) {
    if (grid.face(cell, side) != Face::interior) continue;
    for (int c = 0; c < grid.dim(); ++c) {
      if (c == side / 2) continue;
      const bool end = grid.face(cell, 2 * c) != Face::interior;
      const bool aligned = end ? grid.face(grid.neighbour(cell, side), 2 * c) != Face::interior
                               : grid.face(grid.neighbour(cell, 2 * c), side) == Face::interior;
      if (!aligned) return true;
    }
  }
  return false;
}

std::uint8_t sides_of(const Grid& grid, Grid::Record cell) {
  unsigned sides = irregular(grid, cell) ? irregular_cell : 0;
  for (int side = 0; side < 2 * grid.dim(); ++side) {
    sides |= grid.face(cell, side) == Face::interior ? 0 : 1U << side;
  }
  return static_cast<std::uint8_t>(sides);
}

}  // namespace

std::vector<std::uint8_t> boundary_sides(const Grid& grid) {
  std::vector<std::uint8_t> sides(static_cast<std::size_t>(grid.null()) + 1, 0);
  parallel_ranges({grid.cells()}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Grid::Record>(range.begin); cell < range.end; ++cell)
      sides[cell] = sides_of(grid, cell);
  });
  return sides;
}

int most_tile_faces(const Grid& grid, const std::vector<std::int32_t>& blocks, int tile_blocks) {
  using Record = Grid::Record;
  const int dim = grid.dim();
  std::size_t most = 0;
  const auto size = static_cast<std::size_t>(tile_blocks);
  for (std::size_t begin = 0; begin < blocks.size(); begin += size) {
    const auto first = blocks.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = blocks.begin() + static_cast<std::ptrdiff_t>(std::min(begin + size, blocks.size()));
    std::size_t faces[3]{};
    for (auto block = first; block != last; ++block) {
      const Record end = std::min((*block + 1) * interleave, grid.cells());
      for (Record cell = *block * interleave; cell < end; ++cell) {
        const unsigned boundary = sides_of(grid, cell);
        for (int side = 0; side < 2 * dim; ++side) {
          const bool face = (boundary & (1U << side | irregular_cell)) != 0 ||
                            std::find(first, last, grid.neighbour(cell, side) / interleave) == last;
          faces[side / 2] += face ? 1 : 0;
        }
      }
    }
    for (int c = 0; c < dim; ++c) {
      most = std::max(most, faces[(c + 1) % dim] + (dim == 3 ? faces[(c + 2) % dim] : 0));
    }
  }
  return static_cast<int>(most);
}

}  // namespace solenoid::cuda
