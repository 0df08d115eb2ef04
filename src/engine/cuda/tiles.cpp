#include "engine/cuda/tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <unordered_map>

#include "base/parallel.hpp"
#include "engine/cuda/kernels/arguments.hpp"
#include "solenoid/error.hpp"

namespace solenoid::cuda {
namespace {

using Pattern = std::vector<std::uint32_t>;

struct Hash {
  std::size_t operator()(const Pattern& pattern) const {
    std::size_t hash = 0;
    for (const std::uint32_t word : pattern) hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    return hash;
  }
};

/// Different patterns, by number.
class Patterns {
 public:
  std::int32_t add(Pattern pattern) {
    const auto [known, is_new] = number_.try_emplace(std::move(pattern), static_cast<std::int32_t>(all_.size()));
    if (is_new) all_.push_back(&known->first);
    return known->second;
  }
  [[nodiscard]] const std::vector<const Pattern*>& all() const { return all_; }

 private:
  std::unordered_map<Pattern, std::int32_t, Hash> number_;
  std::vector<const Pattern*> all_;
};

/// Signs of what a cell gets through a face: bit 0 for even, 1 for odd modes, set for minus. Neighbours above count
/// odd modes with a minus; a cell's own traces have the other parity, and the weight of the boundary face.
unsigned face_signs(Face face, unsigned upper) {
  if (face == Face::interior) return upper << 1;
  const unsigned minus = face_weight(face) == 2 ? 1 : 0;
  return minus | (minus ^ (upper ^ 1U)) << 1;
}

/// Looks at one tile after the other.
class Surveyor {
 public:
  Surveyor(const Grid& grid, int tile_blocks)
      : grid_(grid),
        cells_(tile_blocks * interleave),
        place_(static_cast<std::size_t>(grid.layout().null()) / interleave + 1, -1) {}

  /// Blocks in and around the tile, its own first, and most faces of a component.
  struct Tile {
    std::vector<std::int32_t> blocks;
    Pattern pattern;
    int faces;
  };
  Tile look_at(std::span<const std::int32_t> own) {
    blocks_.clear();
    for (const std::int32_t block : own) add(block);
    // Past the end of the list. They are not looked up: no face leads there.
    blocks_.resize(static_cast<std::size_t>(cells_) / interleave, grid_.layout().null() / interleave);
    own_blocks_ = static_cast<std::int32_t>(own.size());
    Tile tile{{}, Pattern(tile_header), 0};
    find_sides(tile.pattern);
    for (int c = 0; c < grid_.dim(); ++c) {
      const auto before = tile.pattern.size();
      for (int turn = 1; turn < grid_.dim(); ++turn) {
        const int t = (c + turn) % grid_.dim();
        for (const Side& side : faces_[t]) add_face(c, t, side, tile.pattern);
      }
      tile.faces = std::max(tile.faces, static_cast<int>((tile.pattern.size() - before) / 2));
    }
    if (blocks_.size() * interleave > 1U << name_bits) {
      throw ResourceError(
          "the cuda engine cannot name all records around 128 cells of this mesh, whose cells lie too "
          "scattered: use --device cpu");
    }
    for (const std::int32_t block : blocks_) place_[block] = -1;
    tile.blocks = blocks_;
    return tile;
  }

 private:
  struct Side {
    Record cell;
    unsigned upper;
  };

  std::uint32_t add(std::int32_t block) {
    if (place_[block] < 0) {
      place_[block] = static_cast<std::int32_t>(blocks_.size());
      blocks_.push_back(block);
    }
    return place_[block];
  }
  std::uint32_t name(Record record) { return add(record / interleave) * interleave + record % interleave; }
  [[nodiscard]] bool is_inside(Record record) const {
    const std::int32_t place = place_[record / interleave];
    return place >= 0 && place < own_blocks_;
  }

  /// Or a record that is no cell.
  [[nodiscard]] Record cell_at(int slot) const { return blocks_[slot / interleave] * interleave + slot % interleave; }

  /// What is behind the sides of the cells, and faces by direction.
  void find_sides(Pattern& pattern) {
    irregular_.resize(cells_);
    for (int slot = 0; slot < cells_; ++slot) {
      const Record cell = cell_at(slot);
      irregular_[slot] = grid_.layout().is_cell(cell) && is_irregular(cell);
    }
    for (int side = 0; side < 2 * grid_.dim(); ++side) {
      const int t = side / 2;
      if (side % 2 == 0) faces_[t].clear();
      for (int slot = 0; slot < cells_; ++slot) {
        const Record cell = cell_at(slot);
        if (!grid_.layout().is_cell(cell)) {
          pattern.push_back(tile_side(0, name(grid_.layout().null()), true));
          continue;
        }
        const Record other = grid_.neighbour(cell, side);
        const bool face = grid_.face(cell, side) != Face::interior || !is_inside(other) || irregular_[slot];
        const auto where = face ? cells_ + faces_[t].size() : name(other);
        pattern.push_back(
            tile_side(static_cast<std::uint32_t>(where), name(other), normal_fixed(grid_.face(cell, side))));
        if (face) faces_[t].push_back({cell, side % 2 != 0 ? 1U : 0U});
      }
      pattern[t] = static_cast<std::uint32_t>(faces_[t].size());
    }
  }

  void add_face(int c, int t, const Side& at, Pattern& pattern) {
    const int side = 2 * t + static_cast<int>(at.upper);
    const Record below = grid_.neighbour(at.cell, 2 * c);
    const Face own_face = grid_.face(at.cell, side);
    const Face below_face = grid_.face(below, side);
    const unsigned signs = face_signs(own_face, at.upper);
    const unsigned signs_below = face_signs(below_face, at.upper);
    const Record own = own_face == Face::interior ? grid_.neighbour(at.cell, side) : at.cell;
    const Record half = below_face == Face::interior ? grid_.neighbour(below, side) : below;
    const Record top = signs != signs_below || !grid_.layout().is_cell(half) ? grid_.neighbour(half, 2 * c + 1) : own;
    const TileFace face =
        tile_face(name(own), name(grid_.neighbour(own, 2 * c + 1)), name(half), name(top), signs | signs_below << 2);
    pattern.insert(pattern.end(), {face.own, face.below});
  }

  /// Some neighbour is not above the neighbour of the cell below.
  [[nodiscard]] bool is_irregular(Record cell) const {
    for (int side = 0; side < 2 * grid_.dim(); ++side) {
      if (grid_.face(cell, side) != Face::interior) continue;
      for (int c = 0; c < grid_.dim(); ++c) {
        if (c == side / 2) continue;
        const bool end = grid_.face(cell, 2 * c) != Face::interior;
        const bool aligned = end ? grid_.face(grid_.neighbour(cell, side), 2 * c) != Face::interior
                                 : grid_.face(grid_.neighbour(cell, 2 * c), side) == Face::interior;
        if (!aligned) return true;
      }
    }
    return false;
  }

  const Grid& grid_;
  int cells_;
  std::vector<std::int32_t> place_;   // of a block in blocks_
  std::vector<std::int32_t> blocks_;  // of the tile
  std::int32_t own_blocks_ = 0;
  std::vector<bool> irregular_;  // [slot]: is_irregular
  std::array<std::vector<Side>, 3> faces_;
};

}  // namespace

std::vector<std::uint8_t> boundary_sides(const Grid& grid) {
  std::vector<std::uint8_t> sides(static_cast<std::size_t>(grid.layout().null()) + 1, 0);
  parallel_ranges({grid.layout().cells().size()}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      for (int side = 0; side < 2 * grid.dim(); ++side) {
        if (grid.face(cell, side) != Face::interior) sides[cell] |= static_cast<std::uint8_t>(1U << side);
      }
    }
  });
  return sides;
}

TileList find_tiles(const Grid& grid, const std::vector<std::int32_t>& blocks, int tile_blocks) {
  struct Part {
    Patterns patterns;
    std::vector<std::int32_t> pattern;              // [tile]: its number
    std::vector<std::vector<std::int32_t>> blocks;  // [tile]
    int most_faces = 0;
  };
  const std::span<const std::int32_t> all(blocks);
  const Ranges ranges{std::ssize(blocks), std::int64_t{256} * tile_blocks};
  std::vector<Part> parts(ranges.number());
  parallel_for(ranges.number(), [&] {
    return [&, surveyor = Surveyor(grid, tile_blocks)](std::int64_t number) mutable {
      const CellRange range = ranges[number];
      Part& part = parts[number];
      for (auto begin = range.begin; begin < range.end; begin += tile_blocks) {
        auto tile = surveyor.look_at(all.subspan(begin, std::min<std::int64_t>(tile_blocks, range.end - begin)));
        part.pattern.push_back(part.patterns.add(std::move(tile.pattern)));
        part.blocks.push_back(std::move(tile.blocks));
        part.most_faces = std::max(part.most_faces, tile.faces);
      }
    };
  });
  TileList list;
  std::int64_t patterns_of_parts = 0;
  for (const Part& part : parts) {
    for (const auto& blocks : part.blocks) {
      list.most_blocks = std::max(list.most_blocks, static_cast<std::int32_t>(blocks.size()));
    }
    list.most_faces = std::max(list.most_faces, part.most_faces);
    list.count += static_cast<std::int32_t>(part.blocks.size());
    patterns_of_parts += std::ssize(part.patterns.all());
  }
  const int sides = 2 * grid.dim() * tile_blocks * interleave;
  const int size = tile_header + sides + 2 * grid.dim() * list.most_faces;

  // Parts of a regular mesh have the same patterns; in an image hardly any two tiles do, and nobody looks for them.
  const bool alike = patterns_of_parts <= list.count / 2;
  Patterns patterns;
  std::vector<const Pattern*> all_patterns;
  std::vector<std::vector<std::int64_t>> number(parts.size());  // [part][pattern]
  std::vector<std::int64_t> first_tile(parts.size());
  for (std::size_t i = 0, tiles = 0; i < parts.size(); ++i) {
    first_tile[i] = static_cast<std::int64_t>(tiles);
    tiles += parts[i].blocks.size();
    for (const Pattern* pattern : parts[i].patterns.all()) {
      number[i].push_back(alike ? patterns.add(*pattern) : std::ssize(all_patterns));
      if (!alike) all_patterns.push_back(pattern);
    }
  }
  if (alike) all_patterns = patterns.all();
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (size * std::ssize(all_patterns) > most) {
    throw ResourceError(
        fmt::format("the cuda engine cannot number what lies around {} groups of cells, as hardly any "
                    "two are alike: use an image of at most {} of the voxels, or --device cpu",
                    list.count, static_cast<double>(most) / (1.0 * size * std::ssize(all_patterns))));
  }

  list.lists.resize(static_cast<std::size_t>(list.count) * (1 + list.most_blocks));
  parallel_ranges({std::ssize(parts), 1}, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      for (std::size_t tile = 0; tile < parts[i].blocks.size(); ++tile) {
        auto to = list.lists.begin() + (first_tile[i] + static_cast<std::int64_t>(tile)) * (1 + list.most_blocks);
        *to = static_cast<std::int32_t>(size * number[i][parts[i].pattern[tile]]);
        const auto end = std::copy(parts[i].blocks[tile].begin(), parts[i].blocks[tile].end(), to + 1);
        std::fill(end, to + 1 + list.most_blocks, 0);
      }
    }
  });
  list.patterns.resize(static_cast<std::size_t>(size) * all_patterns.size());
  parallel_ranges({std::ssize(all_patterns), 64}, [&](CellRange range, std::int64_t) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      auto from = all_patterns[i]->begin();
      auto to = list.patterns.begin() + size * i;
      const auto append = [&](std::uint32_t words, std::uint32_t room) {
        std::fill(std::copy(from, from + words, to), to + room, 0);
        from += words;
        to += room;
      };
      append(tile_header + sides, tile_header + sides);
      for (int c = 0; c < grid.dim(); ++c) {
        std::uint32_t faces = 0;
        for (int turn = 1; turn < grid.dim(); ++turn) faces += (*all_patterns[i])[(c + turn) % grid.dim()];
        append(2 * faces, 2 * list.most_faces);
      }
    }
  });
  return list;
}

}  // namespace solenoid::cuda
