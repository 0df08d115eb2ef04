#include "engine/cuda/tiles.hpp"

#include <algorithm>
#include <span>

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

/// Faces of a tile, for the component that has most.
int tile_faces(const Grid& grid, std::span<const std::int32_t> blocks) {
  const int dim = grid.dim();
  int faces[3]{};
  for (const std::int32_t block : blocks) {
    const auto end = std::min((block + 1) * interleave, grid.cells());
    for (auto cell = block * interleave; cell < end; ++cell) {
      const unsigned boundary = sides_of(grid, cell);
      for (int side = 0; side < 2 * dim; ++side) {
        const bool face =
            (boundary & (1U << side | irregular_cell)) != 0 ||
            std::find(blocks.begin(), blocks.end(), grid.neighbour(cell, side) / interleave) == blocks.end();
        faces[side / 2] += face ? 1 : 0;
      }
    }
  }
  int most = 0;
  for (int c = 0; c < dim; ++c) most = std::max(most, faces[(c + 1) % dim] + (dim == 3 ? faces[(c + 2) % dim] : 0));
  return most;
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
  const std::span<const std::int32_t> all(blocks);
  const Ranges ranges{std::ssize(blocks), std::int64_t{1024} * tile_blocks};
  std::vector<int> most(ranges.number(), 0);
  parallel_ranges(ranges, [&](CellRange range, std::int64_t number) {
    for (auto begin = range.begin; begin < range.end; begin += tile_blocks) {
      const auto count = std::min<std::int64_t>(tile_blocks, range.end - begin);
      most[number] = std::max(most[number], tile_faces(grid, all.subspan(begin, count)));
    }
  });
  return most.empty() ? 0 : *std::max_element(most.begin(), most.end());
}

}  // namespace solenoid::cuda
