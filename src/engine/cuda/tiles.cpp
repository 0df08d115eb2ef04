#include "engine/cuda/tiles.hpp"

#include <algorithm>

namespace solenoid::cuda {

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
    most = std::max(most, *std::max_element(faces, faces + 3));
  }
  return static_cast<int>(most);
}

}  // namespace solenoid::cuda
