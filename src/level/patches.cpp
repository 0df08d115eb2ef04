#include "level/patches.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "base/parallel.hpp"

namespace solenoid {
namespace {

/// Colour of a patch per direction.
std::array<int, 3> colour_of(const Grid& grid, Record lower) {
  std::array<int, 3> colour{};
  for (int a = 0; a < grid.dim(); ++a) colour[a] = colour_along(grid, lower, a);
  return colour;
}

/// Colours in the order in which the smoother takes them. `diagonal`: successive colours touch by corners only.
std::vector<std::array<int, 3>> smoothing_order(int dim, ColourOrder order) {
  std::vector<std::array<int, 3>> colours;
  if (order == ColourOrder::diagonal) {
    if (dim == 2) {
      colours = {{0, 0, 0}, {1, 1, 0}, {1, 0, 0}, {0, 1, 0}};
    } else {
      colours = {{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    }
  }
  for (int z = 0; z < (dim == 3 ? 3 : 1); ++z) {
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 3; ++x) {
        const std::array<int, 3> colour{x, y, z};
        if (std::find(colours.begin(), colours.end(), colour) == colours.end()) colours.push_back(colour);
      }
    }
  }
  return colours;
}

/// The faces of a cell, or those at the ends of a patch, bit 4 side + kind: there is a face of this kind on this side.
using Faces = std::uint32_t;
constexpr Faces no_cell = Faces{1} << 24;

Unset<Faces> faces_of_cells(const Grid& grid) {
  Unset<Faces> faces(grid.layout().null() + 1);
  parallel_ranges({std::ssize(faces)}, [&](CellRange range, std::int64_t) {
    for (auto record = static_cast<Record>(range.begin); record < range.end; ++record) {
      faces[record] = grid.layout().is_cell(record) ? 0 : no_cell;
      for (int side = 0; side < 2 * grid.dim(); ++side) {
        faces[record] |= Faces{1} << (4 * side + static_cast<int>(grid.face(record, side)));
      }
    }
  });
  return faces;
}

/// [lower cell]: faces at the ends of its patch, with no_cell if there is none or none of its cells is owned.
Unset<Faces> faces_of_patches(const Grid& grid) {
  const int corners = 1 << grid.dim();
  std::array<Faces, 8> ends{};  // the sides of a patch's cells that are its ends
  for (int bits = 0; bits < corners; ++bits) {
    ends[bits] = no_cell;
    for (int a = 0; a < grid.dim(); ++a) ends[bits] |= Faces{15} << 4 * (2 * a + (bits >> a & 1));
  }
  const Unset<Faces> of_cells = faces_of_cells(grid);
  Unset<Faces> faces(grid.layout().cells().size());
  parallel_ranges({std::ssize(faces)}, [&](CellRange range, std::int64_t) {
    for (auto lower = static_cast<Record>(range.begin); lower < range.end; ++lower) {
      const auto cells = patch_cells(grid, lower);
      bool mine = false;
      faces[lower] = 0;
      for (int bits = 0; bits < corners; ++bits) {
        faces[lower] |= of_cells[cells[bits]] & ends[bits];
        mine = mine || grid.layout().owned_cells().contains(cells[bits]);
      }
      if (!mine) faces[lower] |= no_cell;
    }
  });
  return faces;
}

PatchKind kind_of(int dim, Faces faces, const PatchRules& rules) {
  PatchKind kind{};
  bool mixed = false;
  for (int a = 0; a < dim; ++a) {
    PatchEnds& ends = kind[a];
    for (int upper = 0; upper < 2; ++upper) {
      const Faces end = faces >> 4 * (2 * a + upper) & 15;
      int lowest = 2;
      int highest = 0;
      for (const Face face : {Face::interior, Face::velocity, Face::slip, Face::outflow}) {
        if ((end >> static_cast<int>(face) & 1) == 0) continue;
        lowest = std::min(lowest, face_weight(face));
        highest = std::max(highest, face_weight(face));
      }
      ends.face[upper] = lowest == highest ? highest : PatchEnds::mixed;
      ends.weight[upper] = highest;  // a local matrix weaker than the exact block is dangerous, a stronger one not
      ends.hat[upper] = end == 1U << static_cast<int>(Face::outflow);
      mixed = mixed || lowest != highest;
    }
  }
  // Where an edge of a hole juts into the domain, patches with a mixed end correct the traces there or none do: they
  // are not cut.
  const bool cut = rules.problem == PatchProblem::fused && !mixed;
  for (int a = 0; a < dim; ++a) {
    PatchEnds& ends = kind[a];
    for (int upper = 0; upper < 2; ++upper) {
      ends.cut[upper] = cut && ends.face[upper] < 2;
      if (ends.cut[upper]) ends.weight[upper] = 0;
    }
    const bool touches_wall = ends.weight[0] == 2 || ends.weight[1] == 2;
    const bool natural_end = ends.weight[0] == 0 || ends.weight[1] == 0;
    if (rules.problem == PatchProblem::symmetric && touches_wall && !natural_end) ends.weight = {2, 2};
    for (int upper = 0; upper < 2 && rules.no_slip_ends; ++upper) {
      if (ends.weight[upper] == 1) ends.weight[upper] = 2;
    }
  }
  return kind;
}

/// Index of `value` in `list`, to which it is added if it is new.
template <class T>
int index_in(std::vector<T>& list, const T& value) {
  const auto index = std::find(list.begin(), list.end(), value) - list.begin();
  if (index == std::ssize(list)) list.push_back(value);
  return static_cast<int>(index);
}

/// The records around a corner of `cell`, [bits]: a step in each direction a whose bit is set, up or down.
std::array<Record, 8> around_corner(const Grid& grid, Record cell, bool up) {
  std::array<Record, 8> records;
  records.fill(grid.layout().null());
  records[0] = cell;
  for (int a = 0; a < grid.dim(); ++a) {
    const Record* const next = grid.neighbours(2 * a + (up ? 1 : 0));
    for (int bits = 0; bits < 1 << a; ++bits) records[bits | 1 << a] = next[records[bits]];
  }
  return records;
}

/// What ranges have of something, [range], becomes where the first of it goes if all of it is put one after the other
/// from `begin` on. Returns where that ends.
template <class CountOf>
std::int64_t place(std::int64_t begin, std::int64_t ranges, const CountOf& count_of) {
  for (std::int64_t i = 0; i < ranges; ++i) begin += std::exchange(count_of(i), begin);
  return begin;
}

}  // namespace

int colour_along(const Grid& grid, Record lower, int a) {
  const int i = grid.position(lower)[a];
  const bool closes_odd_ring = grid.periodic()[a] && grid.extent()[a] % 2 == 1 && i == grid.extent()[a] - 1;
  return closes_odd_ring ? 2 : i % 2;
}

std::array<Record, 8> patch_cells(const Grid& grid, Record lower) { return around_corner(grid, lower, true); }

Patches::Patches(const Grid& grid, const PatchRules& rules) {
  const int dim = grid.dim();
  for (int a = 0; a < dim; ++a) {
    if (grid.extent()[a] < 2) return;
  }
  cover(grid, sort(grid, rules));
}

Patches::Slots Patches::sort(const Grid& grid, const PatchRules& rules) {
  const int dim = grid.dim();
  const Record cells_there = grid.layout().cells().size();
  const Ranges ranges{cells_there};

  // The faces of the patches, and which combinations there are, in the order of cells.
  const Unset<Faces> faces = faces_of_patches(grid);
  std::vector<std::vector<Faces>> found(ranges.number());
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    Faces last = no_cell;
    for (auto lower = static_cast<Record>(range.begin); lower < range.end; ++lower) {
      if (faces[lower] >= no_cell || faces[lower] == last) continue;
      last = faces[lower];
      index_in(found[i], last);
    }
  });
  std::vector<Faces> known;
  for (const auto& list : found) {
    for (const Faces f : list) index_in(known, f);
  }
  std::vector<int> kind_number;  // of known combinations
  for (const Faces f : known) kind_number.push_back(index_in(kinds, kind_of(dim, f, rules)));

  // A counting sort by slots, one for each colour and kind; in a slot the order of cells.
  const auto order = smoothing_order(dim, rules.colour_order);
  std::array<std::array<std::array<int, 3>, 3>, 3> colour_index{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    colour_index[order[i][0]][order[i][1]][order[i][2]] = static_cast<int>(i);
  }
  const int kind_count = static_cast<int>(kinds.size());
  const std::size_t slot_count = order.size() * kinds.size();
  Slots slots;
  slots.of.resize(cells_there);
  std::vector<std::vector<std::int64_t>> next(ranges.number());  // [range][slot]: patches, then place of the next one
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    next[i].assign(slot_count, 0);
    Faces last = no_cell;
    int kind = -1;
    for (auto lower = static_cast<Record>(range.begin); lower < range.end; ++lower) {
      slots.of[lower] = -1;
      if (faces[lower] >= no_cell) continue;
      if (faces[lower] != last) {
        last = faces[lower];
        kind = kind_number[std::find(known.begin(), known.end(), last) - known.begin()];
      }
      const auto [x, y, z] = colour_of(grid, lower);
      slots.of[lower] = colour_index[x][y][z] * kind_count + kind;
      ++next[i][slots.of[lower]];
    }
  });
  // A colour is one on all ranks if some rank has patches of it.
  std::uint32_t used = 0;
  for (std::size_t slot = 0; slot < slot_count; ++slot) {
    const bool some = std::any_of(next.begin(), next.end(), [&](const auto& counts) { return counts[slot] > 0; });
    if (some) used |= std::uint32_t{1} << slot / kinds.size();
  }
  if (grid.partition() != nullptr) grid.partition()->communicator().any_bits({&used, 1});

  std::int64_t total = 0;
  for (std::size_t colour = 0; colour < order.size(); ++colour) {
    std::vector<PatchRun> runs;
    for (int kind = 0; kind < kind_count; ++kind) {
      const std::int64_t begin = total;
      const std::size_t slot = colour * kind_count + kind;
      total = place(
          begin, ranges.number(), [&](std::int64_t i) -> auto& { return next[i][slot]; });
      if (total > begin) runs.push_back({kind, begin, total});
    }
    if ((used >> colour & 1) == 0) continue;
    colours.push_back(std::move(runs));
    slots.colours.push_back(static_cast<int>(colour));
  }
  lower_cell.resize(total);
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    for (auto lower = static_cast<Record>(range.begin); lower < range.end; ++lower) {
      if (slots.of[lower] >= 0) lower_cell[next[i][slots.of[lower]]++] = lower;
    }
  });
  return slots;
}

void Patches::cover(const Grid& grid, const Slots& slots) {
  const int dim = grid.dim();
  const VectorLayout& layout = grid.layout();
  const auto colour_count = static_cast<int>(colours.size());
  const std::uint32_t all_colours = (std::uint32_t{1} << colour_count) - 1;
  struct OfSlot {
    std::uint32_t colour = 0;           // bit c: colours[c]
    std::array<std::uint32_t, 2> hats;  // bit a: the normal unknown at the lower, at the upper end of direction a
  };
  std::vector<OfSlot> of_slot(kinds.size() * (slots.colours.empty() ? 0 : slots.colours.back() + 1));
  for (int c = 0; c < colour_count; ++c) {
    for (const PatchRun& run : colours[c]) {
      OfSlot& slot = of_slot[slots.colours[c] * kinds.size() + run.kind];
      slot = {std::uint32_t{1} << c, {}};
      for (int end = 0; end < 2; ++end) {
        for (int a = 0; a < dim; ++a) slot.hats[end] |= (kinds[run.kind][a].hat[end] ? 1U : 0U) << a;
      }
    }
  }

  const Ranges ranges{layout.records().size()};
  Unset<std::uint32_t> untouched(layout.records().size());       // bit c: no patch of colours[c] has the record
  std::vector<std::vector<std::int64_t>> next(ranges.number());  // [range][colour]: untouched, then place of the next
  std::atomic<bool> everything{grid.cell_count() > 0};
  const auto for_colours = [](std::uint32_t colours, const auto& visit) {
    for (; colours != 0; colours &= colours - 1) visit(std::countr_zero(colours));
  };
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    next[i].assign(colour_count, 0);
    for (auto record = static_cast<Record>(range.begin); record < range.end; ++record) {
      const bool is_cell = layout.is_cell(record);
      const int hat = is_cell ? -1 : grid.hat_direction(record);
      const auto lower = around_corner(grid, is_cell ? record : grid.neighbour(record, 2 * hat), false);
      std::uint32_t colours_here = 0;
      std::uint32_t hats = 0;  // bit a: the lower normal unknown in direction a is inside a patch
      for (int bits = 0; bits < 1 << dim; ++bits) {
        const std::int32_t number = layout.is_cell(lower[bits]) ? slots.of[lower[bits]] : -1;
        if (number < 0) continue;
        const OfSlot& slot = of_slot[number];
        if (!is_cell && ((bits & slot.hats[1]) >> hat & 1) == 0) continue;
        colours_here |= slot.colour;
        hats |= bits | slot.hats[0];
      }
      bool whole = colours_here != 0;
      for (int a = 0; a < dim && is_cell; ++a) {
        whole = whole && (normal_fixed(grid.face(record, 2 * a)) || (hats >> a & 1) != 0);
      }
      if (!whole && layout.is_owned(record)) everything = false;
      untouched[record] = all_colours & ~colours_here;
      for_colours(untouched[record], [&](int c) { ++next[i][c]; });
    }
  });
  cover_everything = grid.partition() == nullptr ? everything.load() : grid.partition()->communicator().all(everything);

  uncovered.resize(colour_count);
  for (int c = 0; c < colour_count; ++c) {
    uncovered[c].resize(place(
        0, ranges.number(), [&](std::int64_t i) -> auto& { return next[i][c]; }));
  }
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    for (auto record = static_cast<Record>(range.begin); record < range.end; ++record) {
      for_colours(untouched[record], [&](int c) { uncovered[c][next[i][c]++] = record; });
    }
  });
}

std::int64_t Patches::bytes() const {
  std::size_t sum = lower_cell.size() * sizeof(lower_cell[0]);
  for (const auto& list : uncovered) sum += list.size() * sizeof(list[0]);
  return static_cast<std::int64_t>(sum);
}

}  // namespace solenoid
