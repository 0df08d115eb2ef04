#include "engine/cuda/device_level.hpp"

#include <numeric>
#include <utility>

#include "base/parallel.hpp"
#include "base/parallel_sort.hpp"
#include "engine/cuda/tiles.hpp"
#include "engine/mac_stencil.hpp"
#include "engine/tables.hpp"

namespace solenoid::cuda {
namespace {

using Key = std::uint64_t;

/// Slabs of rows; in these, pairs of planes; in these, 32 x 2 x 2 cells (one block at even and one at odd places in
/// each row): the slab, the pair of planes in it and so on, the first in the highest bits. Rows run along x here.
///
///     0b00SSSSSSSSSSSSSSSSSSPPPPPPPPPPPPPPPPPPPPRRRXXXXXXXXXXXXXXXXXXzyx
///         ^----------------^                                              S: slab
///                           ^------------------^                          P: pair of planes
///                                               ^-^                       R: pair of rows in the slab
///                                                  ^----------------^     X: 32 cells of a row
///                                                                    ^-^  z, y, x: which plane, row, block of these
Key key(const Grid& grid, std::int32_t block) {
  constexpr int slab = 16;
  const auto& position = grid.position(block * interleave);
  const auto [along, across, planes] = grid.numbering();
  const int x = position[along];
  const int y = position[across];
  const int z = position[planes];
  Key key = 0;
  const auto append = [&key](int value, int bits) { key = key << bits | static_cast<Key>(value); };
  append(y / slab, 18);
  append(z / 2, 20);
  append(y % slab / 2, 3);
  append(x / (2 * interleave), 18);
  append(z % 2, 1);
  append(y % 2, 1);
  append(x % 2, 1);
  return key;
}

/// Blocks of records in an order in which neighbours in space are near each other, so that kernels find in the caches
/// what they or others have loaded.
std::vector<std::int32_t> near_each_other(const Grid& grid, std::vector<std::int32_t> blocks) {
  std::vector<std::pair<Key, std::int32_t>> keyed(blocks.size());
  parallel_ranges({std::ssize(blocks)}, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) keyed[i] = {key(grid, blocks[i]), blocks[i]};
  });
  parallel_sort(keyed);
  std::transform(keyed.begin(), keyed.end(), blocks.begin(), [](const auto& entry) { return entry.second; });
  return blocks;
}

std::vector<std::int32_t> all_blocks(const Grid& grid) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(whole_blocks(grid.layout().cells().size()) / interleave));
  std::iota(blocks.begin(), blocks.end(), 0);
  return near_each_other(grid, std::move(blocks));
}

}  // namespace

DeviceTiles::DeviceTiles(Engine& engine, const Level& level, const std::vector<std::int32_t>& blocks) {
  const int cells = tile_cells(level.equation.dim, level.equation.order);
  const TileList list = find_tiles(level.grid, blocks, cells / interleave);
  lists_ = {engine, list.lists};
  patterns_ = {engine, list.patterns};
  tiles_ = {lists_.data(), patterns_.data(), list.count, list.most_blocks, list.most_faces};
}

DeviceLevel::DeviceLevel(Engine& engine, const Level& level) : engine_(engine), level_(level) {
  const Grid& grid = level.grid;
  const std::size_t records = static_cast<std::size_t>(grid.layout().null()) + 1;
  topology_ = {{}, {}, grid.layout().cells().size(), grid.layout().records().size(), grid.layout().null()};
  for (int side = 0; side < 2 * grid.dim(); ++side) {
    neighbours_[side] = {engine, {grid.neighbours(side), records}};
    faces_[side] = {engine, {grid.faces(side), records}};
    topology_.neighbour[side] = neighbours_[side].data();
    topology_.face[side] = faces_[side].data();
  }
  const auto blocks = all_blocks(grid);
  blocks_ = {engine, blocks};
  if (level.equation.kind == EquationKind::poisson) {
    boundary_sides_ = {engine, cuda::boundary_sides(grid)};
  } else if (!is_mac(level.equation) && !level.goes_by_elements()) {
    tiles_ = {engine, level, blocks};
  }
  const Patches& patches = level.patches;
  lower_cells_ = {engine, patches.lower_cell};
  for (const auto& records : patches.uncovered) {
    uncovered_.push_back({{engine, records}, static_cast<std::int64_t>(records.size())});
  }
  for (const Constant& constant : level.constants) {
    if (grid.parts() > 1) {
      const auto& records = constant_records_.emplace_back(engine, constant.records);
      carriers_.push_back({.list = records.data(), .below = nullptr, .count = std::ssize(constant.records)});
      continue;
    }
    MeanRecords all{.list = nullptr, .below = nullptr, .count = constant.carriers};
    // Its hats are those of hat-only records, too.
    if (constant.field < level.equation.velocities()) all.below = topology_.neighbour[2 * constant.field];
    carriers_.push_back(all);
  }
}

void DeviceLevel::prepare_transfer(const Level& coarse) {
  if (children_.data() != nullptr) return;
  const auto children = children_of(level_, coarse);
  std::vector<std::int32_t> parent(level_.grid.layout().cells().size(), 0);
  parallel_ranges({std::ssize(children)}, [&](CellRange range, std::int64_t) {
    for (auto i = range.begin; i < range.end; ++i) {
      if (children[i] != level_.grid.layout().null()) parent[children[i]] = static_cast<std::int32_t>(i);
    }
  });
  children_ = {engine_, children};
  parent_ = {engine_, parent};
}

}  // namespace solenoid::cuda
