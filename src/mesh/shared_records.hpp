#pragma once
/// \file
/// Who sends which records to whom. Both sides of a message derive its records by themselves, in the order of their
/// positions in the whole lattice: nothing is negotiated.

#include <array>
#include <cstdint>
#include <vector>

#include "mesh/grid.hpp"

namespace solenoid {

/// Ghosts and their owners.
struct ExchangePlan {
  struct Neighbour {
    int rank = 0;
    std::vector<Record> sends;     ///< owned records that are ghosts there
    std::vector<Record> receives;  ///< ghosts that are owned there
  };
  explicit ExchangePlan(const Grid& grid);

  std::vector<Neighbour> neighbours;  ///< in the order of their ranks
};

/// From a distributed grid to the same grid that every rank has all of, and back.
struct GatherPlan {
  GatherPlan(const Grid& distributed, const Grid& whole);

  std::vector<Record> mine;         ///< owned records of the distributed grid
  std::vector<std::size_t> counts;  ///< [rank]: how many each has
  std::vector<Record> all;          ///< records of the whole grid, those of one rank after those of another
  std::vector<Record> known;        ///< all records of the distributed grid, ghosts too,
  std::vector<Record> same;         ///< and which they are of the whole one
};

/// Whether ghosts lie within `reach` cells of the block of cells from `first` to `first` + `size` - 1 in each
/// direction; `mine` is grid.owned_box().
bool near_ghosts(const Grid& grid, const LatticeBox& mine, const std::array<std::int32_t, 3>& first, int size,
                 int reach);

/// The records of cells in a box of a grid, in the order of their positions, then those of the hat-only records above
/// them.
std::vector<Record> records_in(const Grid& grid, const LatticeBox& box);

}  // namespace solenoid
