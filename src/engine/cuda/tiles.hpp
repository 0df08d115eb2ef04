#pragma once
/// \file
/// Tiles of the operator (kernels/operator.cuh).

#include <cstdint>
#include <vector>

#include "mesh/grid.hpp"

namespace solenoid::cuda {

/// ApplyArguments::boundary_sides of all records.
std::vector<std::uint8_t> boundary_sides(const Grid& grid);

/// How many faces the tile with most of them has for one component: tangential sides of cells whose neighbour is
/// outside of the tile or missing, and all of irregular cells. A tile has `tile_blocks` blocks of the list.
int most_tile_faces(const Grid& grid, const std::vector<std::int32_t>& blocks, int tile_blocks);

}  // namespace solenoid::cuda
