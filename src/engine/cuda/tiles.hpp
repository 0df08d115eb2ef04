#pragma once
/// \file
/// Tiles of the operator (kernels/operator.cuh) and what lies around them.

#include <cstdint>
#include <vector>

#include "base/unset.hpp"
#include "mesh/grid.hpp"

namespace solenoid::cuda {

/// ApplyArguments::boundary_sides of all records.
std::vector<std::uint8_t> boundary_sides(const Grid& grid);

/// What Tiles (kernels/arguments.hpp) points to.
struct TileList {
  Unset<std::int32_t> lists;
  Unset<std::uint32_t> patterns;
  std::int32_t count = 0;
  std::int32_t most_blocks = 0;
  std::int32_t most_faces = 0;
};

/// Tiles of `tile_blocks` blocks of a list each; the last may have fewer.
TileList find_tiles(const Grid& grid, const std::vector<std::int32_t>& blocks, int tile_blocks);

}  // namespace solenoid::cuda
