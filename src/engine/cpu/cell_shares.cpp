#include "engine/cpu/cell_shares.hpp"

#include <algorithm>
#include <utility>

#include "base/caches.hpp"
#include "engine/tables.hpp"

namespace solenoid::cpu {
namespace {

/// Rows of a strip, three layers of which fit into the second-level cache.
std::int64_t strip_rows(const Level& level, std::size_t number_bytes) {
  const std::int64_t row =
      std::int64_t{level.grid.extent()[0]} * level.equation.record() * static_cast<std::int64_t>(number_bytes);
  constexpr int fewest = 4;  // those at the ends of a strip are read twice
  return std::max<std::int64_t>(fewest, cache_bytes(2) / 2 / (3 * row));
}

/// `wanted`: [block of records].
void order_blocks(const Level& level, std::int64_t rows, const std::vector<bool>& wanted, CellShare& share) {
  std::vector<std::pair<std::int64_t, Record>> order;  // strip, first cell
  for (auto cell = static_cast<Record>(share.range.begin); cell < share.range.end; cell += interleave) {
    if (!wanted[cell / interleave]) continue;
    order.emplace_back(level.equation.dim == 3 ? level.grid.position(cell)[1] / rows : 0, cell);
  }
  std::sort(order.begin(), order.end());
  share.blocks.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) share.blocks[i].first = order[i].second;
}

/// What the order means for the shares of hats, and which of them come from other cells. `turn`: of a block of records,
/// in its thread; of blocks that are not wanted -1.
void find_waits(const Level& level, const std::vector<std::int32_t>& turn, CellShare& share, CellBlock& block) {
  const Grid& grid = level.grid;
  const auto inside = [&](Record r) {
    return r >= share.range.begin && r < share.range.end && turn[r / interleave] >= 0;
  };
  const std::int32_t here = turn[block.first / interleave];
  for (Record cell = block.first; cell < std::min<std::int64_t>(block.first + interleave, share.range.end); ++cell) {
    const auto lane = static_cast<std::uint16_t>(1U << (cell - block.first));
    for (int c = 0; c < level.equation.velocities(); ++c) {
      const Record below = grid.neighbour(cell, 2 * c);
      const Record next = grid.neighbour(cell, 2 * c + 1);
      const bool carried = grid.layout().is_cell(below) && !inside(below);
      if (carried) share.carry[c].push_back(below);
      if (carried || (inside(below) && turn[below / interleave] < here)) block.share_waits[c] |= lane;
      if (inside(next)) (turn[next / interleave] > here ? block.next_is_later : block.next_is_done)[c] |= lane;
    }
  }
}

/// Of the blocks of records in `wanted`.
std::vector<CellShare> share_blocks(Team& team, const Level& level, std::size_t number_bytes, Locate locate,
                                    const std::vector<bool>& wanted) {
  const CellTopology topology = topology_of(level.grid);
  const std::int64_t rows = strip_rows(level, number_bytes);
  std::vector<CellShare> shares(team.size());
  std::vector<std::int32_t> turn(wanted.size(), -1);
  team.run([&](int t) {
    CellShare& share = shares[t];
    share.range = team.range(level.grid.layout().near_cells().size(), t, interleave);
    order_blocks(level, rows, wanted, share);
    for (std::size_t i = 0; i < share.blocks.size(); ++i) {
      turn[share.blocks[i].first / interleave] = static_cast<std::int32_t>(i);
    }
    for (CellBlock& block : share.blocks) {
      locate(topology, static_cast<Record>(share.range.end), block);
      find_waits(level, turn, share, block);
    }
  });
  return shares;
}

}  // namespace

std::vector<CellShare> share_cells(Team& team, const Level& level, std::size_t number_bytes, Locate locate) {
  const std::vector<bool> all(level.grid.layout().storage() / interleave, true);
  return share_blocks(team, level, number_bytes, locate, all);
}

std::vector<CellShare> share_cells_of(const SmallGroup& group, Team& team, const Level& level, std::size_t number_bytes,
                                      Locate locate) {
  std::vector<bool> wanted(level.grid.layout().storage() / interleave, false);
  for (const SmallRecords& patch : group.patches) {
    for (const Record record : patch) {
      if (level.grid.layout().is_cell(record)) wanted[record / interleave] = true;
    }
  }
  return share_blocks(team, level, number_bytes, locate, wanted);
}

}  // namespace solenoid::cpu
