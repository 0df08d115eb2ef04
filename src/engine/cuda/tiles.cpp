#include "engine/cuda/tiles.hpp"

#include <algorithm>

#include "base/parallel.hpp"

namespace solenoid::cuda {
namespace {

using Record = Grid::Record;

std::size_t tile_faces(const Grid& grid, const std::int32_t* first, const std::int32_t* last) {
  const int dim = grid.dim();
  std::size_t faces[3]{};
  for (const std::int32_t* block = first; block != last; ++block) {
    const Record end = std::min((*block + 1) * interleave, grid.cells());
    for (Record cell = *block * interleave; cell < end; ++cell) {
      for (int side = 0; side < 2 * dim; ++side) {
        const Record other = grid.neighbour(cell, side);
        const bool outside =
            grid.face(cell, side) != Face::interior || std::find(first, last, other / interleave) == last;
        for (int turn = 1; turn < dim; ++turn) {
          const int c = (side / 2 + turn) % dim;
          const Record below = grid.neighbour(cell, 2 * c);
          const bool face = outside || grid.face(below, side) != Face::interior ||
                            grid.neighbour(other, 2 * c) != grid.neighbour(below, side);
          faces[c] += face ? 1 : 0;
        }
      }
    }
  }
  return *std::max_element(faces, faces + 3);
}

}  // namespace

int most_tile_faces(const Grid& grid, const std::vector<std::int32_t>& blocks, int tile_blocks) {
  const std::int64_t size = tile_blocks;
  const auto count = static_cast<std::int64_t>(blocks.size());
  const Ranges tiles{(count + size - 1) / size, 64};
  std::vector<std::size_t> most(tiles.number(), 0);
  parallel_ranges(tiles, [&](CellRange range, std::int64_t i) {
    for (auto tile = range.begin; tile < range.end; ++tile) {
      const std::int32_t* first = blocks.data() + tile * size;
      const std::int32_t* last = blocks.data() + std::min((tile + 1) * size, count);
      most[i] = std::max(most[i], tile_faces(grid, first, last));
    }
  });
  return most.empty() ? 0 : static_cast<int>(*std::max_element(most.begin(), most.end()));
}

}  // namespace solenoid::cuda
