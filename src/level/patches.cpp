#include "level/patches.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/parallel.hpp"

namespace solenoid {
namespace {

/// Colour of a patch per direction: the parity of its lower cell; the patch that closes an odd periodic ring is a
/// third.
std::array<int, 3> colour_of(const Grid& grid, Record lower) {
  std::array<int, 3> colour{};
  for (int a = 0; a < grid.dim(); ++a) {
    const int i = grid.position(lower)[a];
    const bool closes_odd_ring = grid.periodic()[a] && grid.extent()[a] % 2 == 1 && i == grid.extent()[a] - 1;
    colour[a] = closes_odd_ring ? 2 : i % 2;
  }
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

/// The faces at the ends of a patch, packed into a number: for each direction and end the lowest and the highest weight
/// (two bits each) and whether all are outflow.
using PatchFaces = std::uint32_t;
constexpr PatchFaces no_patch = ~PatchFaces{0};

PatchFaces faces_of(const Grid& grid, const std::array<Record, 8>& cells) {
  PatchFaces faces = 0;
  for (int side = 0; side < 2 * grid.dim(); ++side) {
    int lowest = 2;
    int highest = 0;
    bool outflow = true;
    for (int bits = 0; bits < 1 << grid.dim(); ++bits) {
      if ((bits >> side / 2 & 1) != side % 2) continue;
      const Face face = grid.face(cells[bits], side);
      lowest = std::min(lowest, face_weight(face));
      highest = std::max(highest, face_weight(face));
      outflow = outflow && face == Face::outflow;
    }
    faces |= static_cast<PatchFaces>(lowest | highest << 2 | (outflow ? 16 : 0)) << 5 * side;
  }
  return faces;
}

PatchKind kind_of(int dim, PatchFaces faces, PatchProblem problem) {
  PatchKind kind{};
  bool mixed = false;
  for (int a = 0; a < dim; ++a) {
    PatchEnds& ends = kind[a];
    for (int upper = 0; upper < 2; ++upper) {
      const PatchFaces end = faces >> 5 * (2 * a + upper);
      const int lowest = end & 3;
      const int highest = end >> 2 & 3;
      ends.face[upper] = lowest == highest ? highest : PatchEnds::mixed;
      ends.weight[upper] = highest;  // a local matrix weaker than the exact block is dangerous, a stronger one not
      ends.hat[upper] = (end & 16) != 0;
      mixed = mixed || lowest != highest;
    }
  }
  // Where an edge of a hole juts into the domain, patches with a mixed end correct the traces there or none do: they
  // are not cut.
  const bool cut = problem == PatchProblem::fused && !mixed;
  for (int a = 0; a < dim; ++a) {
    PatchEnds& ends = kind[a];
    for (int upper = 0; upper < 2; ++upper) {
      ends.cut[upper] = cut && ends.face[upper] < 2;
      if (ends.cut[upper]) ends.weight[upper] = 0;
    }
    const bool touches_wall = ends.weight[0] == 2 || ends.weight[1] == 2;
    const bool natural_end = ends.weight[0] == 0 || ends.weight[1] == 0;
    if (problem == PatchProblem::symmetric && touches_wall && !natural_end) ends.weight = {2, 2};
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

/// The lower cell of the patch in which `cell` has the place `bits`; anything if there is no such patch.
Record lower_of(const Grid& grid, Record cell, int bits) {
  for (int a = 0; a < grid.dim(); ++a) {
    if ((bits >> a & 1) != 0) cell = grid.neighbour(cell, 2 * a);
  }
  return cell;
}

}  // namespace

std::array<Record, 8> patch_cells(const Grid& grid, Record lower) {
  std::array<Record, 8> cells;
  cells.fill(grid.layout().null());
  for (int bits = 0; bits < 1 << grid.dim(); ++bits) {
    Record cell = lower;
    for (int a = 0; a < grid.dim(); ++a) {
      if ((bits >> a & 1) != 0) cell = grid.neighbour(cell, 2 * a + 1);
    }
    cells[bits] = cell;
  }
  return cells;
}

Patches::Patches(const Grid& grid, const PatchRules& rules) {
  const int dim = grid.dim();
  for (int a = 0; a < dim; ++a) {
    if (grid.extent()[a] < 2) return;
  }
  cover(grid, sort(grid, rules));
}

Patches::Slots Patches::sort(const Grid& grid, const PatchRules& rules) {
  const int dim = grid.dim();
  const int corners = 1 << dim;
  const Record cells_there = grid.layout().cells().size();
  const Ranges ranges{cells_there};

  // The faces of the patches, and which combinations there are, in the order of cells.
  std::vector<PatchFaces> faces(cells_there);
  std::vector<std::vector<PatchFaces>> found(ranges.number());
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    PatchFaces last = no_patch;
    for (auto lower = static_cast<Record>(range.begin); lower < range.end; ++lower) {
      const auto cells = patch_cells(grid, lower);
      const bool patch =
          std::all_of(cells.begin(), cells.begin() + corners, [&](auto cell) { return grid.layout().is_cell(cell); });
      faces[lower] = patch ? faces_of(grid, cells) : no_patch;
      if (!patch || faces[lower] == last) continue;
      last = faces[lower];
      index_in(found[i], last);
    }
  });
  std::vector<PatchFaces> known;
  for (const auto& list : found) {
    for (const PatchFaces f : list) index_in(known, f);
  }
  std::vector<int> kind_number;  // of known combinations
  for (const PatchFaces f : known) kind_number.push_back(index_in(kinds, kind_of(dim, f, rules.problem)));

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
  std::vector<std::vector<std::int64_t>> place(ranges.number());  // [range][slot]: patches, then place of the next one
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    place[i].assign(slot_count, 0);
    PatchFaces last = no_patch;
    int kind = -1;
    for (auto lower = static_cast<Record>(range.begin); lower < range.end; ++lower) {
      slots.of[lower] = -1;
      if (faces[lower] == no_patch) continue;
      if (faces[lower] != last) {
        last = faces[lower];
        kind = kind_number[std::find(known.begin(), known.end(), last) - known.begin()];
      }
      const auto [x, y, z] = colour_of(grid, lower);
      slots.of[lower] = colour_index[x][y][z] * kind_count + kind;
      ++place[i][slots.of[lower]];
    }
  });
  std::int64_t total = 0;
  for (std::size_t colour = 0; colour < order.size(); ++colour) {
    std::vector<PatchRun> runs;
    for (int kind = 0; kind < kind_count; ++kind) {
      const std::int64_t begin = total;
      for (auto& counts : place) {
        std::int64_t& count = counts[colour * kind_count + kind];
        total += std::exchange(count, total);
      }
      if (total > begin) runs.push_back({kind, begin, total});
    }
    if (runs.empty()) continue;
    colours.push_back(std::move(runs));
    slots.colours.push_back(static_cast<int>(colour));
  }
  lower_cell.resize(total);
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    for (auto lower = static_cast<Record>(range.begin); lower < range.end; ++lower) {
      if (slots.of[lower] >= 0) lower_cell[place[i][slots.of[lower]]++] = lower;
    }
  });
  return slots;
}

void Patches::cover(const Grid& grid, const Slots& slots) {
  const int dim = grid.dim();
  const int kind_count = static_cast<int>(kinds.size());
  const VectorLayout& layout = grid.layout();
  const Ranges ranges{layout.records().size()};
  std::vector<std::uint32_t> touched(layout.records().size(), 0);  // bit c: a patch of colour c has the record
  std::atomic<bool> everything{!layout.cells().empty()};
  parallel_ranges(ranges, [&](CellRange range, std::int64_t) {
    for (auto record = static_cast<Record>(range.begin); record < range.end; ++record) {
      const bool is_cell = layout.is_cell(record);
      const int hat = is_cell ? -1 : grid.hat_direction(record);
      const Record cell = is_cell ? record : grid.neighbour(record, 2 * hat);
      std::uint32_t colours_here = 0;
      int hats = 0;  // bit a: the lower normal unknown in direction a is inside a patch
      for (int bits = 0; bits < 1 << dim; ++bits) {
        const Record lower = lower_of(grid, cell, bits);
        const std::int32_t slot = layout.is_cell(lower) ? slots.of[lower] : -1;
        if (slot < 0) continue;
        const PatchKind& kind = kinds[slot % kind_count];
        if (!is_cell && ((bits >> hat & 1) == 0 || !kind[hat].hat[1])) continue;
        colours_here |= std::uint32_t{1} << slot / kind_count;
        for (int a = 0; a < dim; ++a) {
          if ((bits >> a & 1) != 0 || kind[a].hat[0]) hats |= 1 << a;
        }
      }
      touched[record] = colours_here;
      bool whole = colours_here != 0;
      for (int a = 0; a < dim && is_cell; ++a) {
        whole = whole && (normal_fixed(grid.face(record, 2 * a)) || (hats >> a & 1) != 0);
      }
      if (!whole) everything = false;
    }
  });
  cover_everything = everything;

  uncovered.resize(colours.size());
  parallel_for(static_cast<std::int64_t>(colours.size()), [&] {
    return [&](std::int64_t colour) {
      for (const Record record : layout.records()) {
        if ((touched[record] >> slots.colours[colour] & 1) == 0) uncovered[colour].push_back(record);
      }
    };
  });
}

std::int64_t Patches::bytes() const {
  std::size_t sum = lower_cell.size() * sizeof(lower_cell[0]);
  for (const auto& list : uncovered) sum += list.size() * sizeof(list[0]);
  return static_cast<std::int64_t>(sum);
}

}  // namespace solenoid
