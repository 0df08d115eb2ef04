#pragma once
/// \file
/// The cells of a level as the operator's kernels want them: which thread has which, and in what order.

#include <array>
#include <cstddef>
#include <vector>

#include "engine/cpu/kernels/table.hpp"
#include "engine/cpu/team.hpp"
#include "level/level.hpp"

namespace solenoid::cpu {

/// What one thread does of the operator.
struct CellShare {
  Team::Range range;              ///< whole blocks of records, among which are its cells
  std::vector<CellBlock> blocks;  ///< these cells, in the order of its work
  /// [c]: other cells whose upper neighbour in direction c is one of these.
  std::array<std::vector<Record>, 3> carry;
};

using Locate = void (*)(const CellTopology&, std::int32_t, CellBlock&);

/// The shares of all threads, for numbers of so many bytes; `locate` is that of the kernels. The order of blocks is
/// that of their numbers or, where three layers of cells do not fit into the second-level cache, strip by strip of rows
/// that do.
std::vector<CellShare> share_cells(Team& team, const Level& level, std::size_t number_bytes, Locate locate);
/// The same of those blocks of records alone in which a group of small patches has cells.
std::vector<CellShare> share_cells_of(const SmallGroup& group, Team& team, const Level& level, std::size_t number_bytes,
                                      Locate locate);

}  // namespace solenoid::cpu
