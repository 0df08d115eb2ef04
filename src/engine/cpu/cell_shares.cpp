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

void order_blocks(const Level& level, std::int64_t rows, CellShare& share) {
  std::vector<std::pair<std::int64_t, Record>> order;  // strip, first cell
  for (auto cell = static_cast<Record>(share.range.begin); cell < share.range.end; cell += interleave) {
    order.emplace_back(level.equation.dim == 3 ? level.grid.position(cell)[1] / rows : 0, cell);
  }
  std::sort(order.begin(), order.end());
  share.blocks.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) share.blocks[i].first = order[i].second;
}

void find_carry(const Level& level, CellShare& share) {
  const Grid& grid = level.grid;
  for (auto cell = static_cast<Record>(share.range.begin); cell < share.range.end; ++cell) {
    for (int c = 0; c < level.equation.velocities(); ++c) {
      const Record below = grid.neighbour(cell, 2 * c);
      if (grid.layout().is_cell(below) && (below < share.range.begin || below >= share.range.end)) {
        share.carry[c].push_back(below);
      }
    }
  }
}

/// What the order means for the shares of hats. `turn`: of a block of records, in its thread.
void find_waits(const Level& level, const std::vector<std::int32_t>& turn, const CellShare& share, CellBlock& block) {
  const Grid& grid = level.grid;
  const auto inside = [&](Record r) { return r >= share.range.begin && r < share.range.end; };
  const std::int32_t here = turn[block.first / interleave];
  for (Record cell = block.first; cell < std::min<std::int64_t>(block.first + interleave, share.range.end); ++cell) {
    const auto lane = static_cast<std::uint16_t>(1U << (cell - block.first));
    for (int c = 0; c < level.equation.velocities(); ++c) {
      const Record below = grid.neighbour(cell, 2 * c);
      const Record next = grid.neighbour(cell, 2 * c + 1);
      const bool waits = inside(below) ? turn[below / interleave] < here : grid.layout().is_cell(below);
      if (waits) block.share_waits[c] |= lane;
      if (inside(next)) (turn[next / interleave] > here ? block.next_is_later : block.next_is_done)[c] |= lane;
    }
  }
}

}  // namespace

std::vector<CellShare> share_cells(Team& team, const Level& level, std::size_t number_bytes,
                                   void (*locate)(const CellTopology&, std::int32_t, CellBlock&)) {
  const CellTopology topology = topology_of(level.grid);
  const std::int64_t rows = strip_rows(level, number_bytes);
  std::vector<CellShare> shares(team.size());
  std::vector<std::int32_t> turn(level.grid.layout().storage() / interleave);
  team.run([&](int t) {
    CellShare& share = shares[t];
    share.range = team.range(level.grid.layout().near_cells().size(), t, interleave);
    order_blocks(level, rows, share);
    find_carry(level, share);
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

}  // namespace solenoid::cpu
