#include "level/patches.hpp"

#include <algorithm>
#include <map>

namespace solenoid {
namespace {

/// Colour of a patch per direction: the parity of its lower cell; the patch that closes an odd periodic ring is a
/// third.
std::array<int, 3> colour_of(const Grid& grid, Grid::Record lower) {
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

/// What lies behind one end of a patch in direction `a`: the weights of its faces, and whether all are outflow.
struct End {
  int lowest = 2;
  int highest = 0;
  bool outflow = true;
};

End end_of(const Grid& grid, const std::array<Grid::Record, 8>& cells, int a, int upper) {
  End end;
  for (int bits = 0; bits < 1 << grid.dim(); ++bits) {
    if (((bits >> a) & 1) != upper) continue;
    const Face face = grid.face(cells[bits], 2 * a + upper);
    end.lowest = std::min(end.lowest, face_weight(face));
    end.highest = std::max(end.highest, face_weight(face));
    end.outflow = end.outflow && face == Face::outflow;
  }
  return end;
}

PatchKind kind_of(const Grid& grid, const std::array<Grid::Record, 8>& cells, PatchProblem problem) {
  PatchKind kind{};
  for (int a = 0; a < grid.dim(); ++a) {
    PatchEnds& ends = kind[a];
    for (int upper = 0; upper < 2; ++upper) {
      const End end = end_of(grid, cells, a, upper);
      ends.face[upper] = end.lowest == end.highest ? end.highest : PatchEnds::mixed;
      ends.weight[upper] = end.highest;  // a local matrix weaker than the exact block is dangerous, a stronger one not
      ends.hat[upper] = end.outflow;
    }
    const bool touches_wall = ends.weight[0] == 2 || ends.weight[1] == 2;
    const bool natural_end = ends.weight[0] == 0 || ends.weight[1] == 0;
    if (problem == PatchProblem::symmetric && touches_wall && !natural_end) ends.weight = {2, 2};
  }
  return kind;
}

}  // namespace

std::array<Grid::Record, 8> patch_cells(const Grid& grid, Grid::Record lower) {
  std::array<Grid::Record, 8> cells;
  cells.fill(grid.null());
  for (int bits = 0; bits < 1 << grid.dim(); ++bits) {
    Grid::Record cell = lower;
    for (int a = 0; a < grid.dim(); ++a) {
      if ((bits >> a & 1) != 0) cell = grid.neighbour(cell, 2 * a + 1);
    }
    cells[bits] = cell;
  }
  return cells;
}

Patches::Patches(const Grid& grid, const PatchRules& rules) {
  const int dim = grid.dim();
  const int corners = 1 << dim;
  const auto order = smoothing_order(dim, rules.colour_order);
  std::map<std::array<int, 3>, int> colour_index;
  for (const auto& colour : order) colour_index.emplace(colour, static_cast<int>(colour_index.size()));

  struct Entry {
    int colour;
    int kind;
    Grid::Record lower;
  };
  std::vector<Entry> entries;
  std::map<PatchKind, int> kind_index;
  // covered[r] bit 7: the cell is in a patch; bit a: its lower normal unknown in direction a is inside a patch.
  constexpr std::uint8_t cell_bit = 128;
  std::vector<std::uint8_t> covered(grid.records(), 0);
  const bool room = [&] {
    for (int a = 0; a < dim; ++a) {
      if (grid.extent()[a] < 2) return false;
    }
    return true;
  }();
  for (Grid::Record lower = 0; room && lower < grid.cells(); ++lower) {
    const auto cells = patch_cells(grid, lower);
    if (std::any_of(cells.begin(), cells.begin() + corners, [&](auto cell) { return cell >= grid.cells(); })) continue;
    const PatchKind kind = kind_of(grid, cells, rules.problem);
    const int kind_number = kind_index.emplace(kind, static_cast<int>(kind_index.size())).first->second;
    entries.push_back({colour_index.at(colour_of(grid, lower)), kind_number, lower});
    for (int bits = 0; bits < corners; ++bits) {
      const Grid::Record cell = cells[bits];
      covered[cell] |= cell_bit;
      for (int a = 0; a < dim; ++a) {
        const bool upper = (bits >> a & 1) != 0;
        if (upper || kind[a].hat[0]) covered[cell] |= 1 << a;
        if (upper && kind[a].hat[1]) covered[grid.neighbour(cell, 2 * a + 1)] |= cell_bit | 1 << a;
      }
    }
  }
  kinds.resize(kind_index.size());
  for (const auto& [kind, number] : kind_index) kinds[number] = kind;

  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.colour, a.kind) < std::pair(b.colour, b.kind);
  });
  lower_cell.reserve(entries.size());
  int last_colour = -1;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& [colour, kind, lower] = entries[i];
    const auto position = static_cast<std::int64_t>(i);
    if (colour != last_colour) colours.emplace_back();
    if (colours.back().empty() || colours.back().back().kind != kind)
      colours.back().push_back({kind, position, position});
    colours.back().back().end = position + 1;
    lower_cell.push_back(lower);
    last_colour = colour;
  }

  std::vector<std::uint8_t> touched(grid.records());
  for (const auto& runs : colours) {
    std::fill(touched.begin(), touched.end(), 0);
    for (const auto& run : runs) {
      for (auto i = run.begin; i < run.end; ++i) {
        const auto cells = patch_cells(grid, lower_cell[i]);
        for (int bits = 0; bits < corners; ++bits) {
          touched[cells[bits]] = 1;
          for (int a = 0; a < dim; ++a) {
            const bool upper = (bits >> a & 1) != 0;
            if (upper && kinds[run.kind][a].hat[1]) touched[grid.neighbour(cells[bits], 2 * a + 1)] = 1;
          }
        }
      }
    }
    uncovered.emplace_back();
    for (Grid::Record record = 0; record < grid.records(); ++record) {
      if (touched[record] == 0) uncovered.back().push_back(record);
    }
  }

  cover_everything = grid.cells() > 0;
  for (Grid::Record record = 0; record < grid.records() && cover_everything; ++record) {
    if ((covered[record] & cell_bit) == 0) cover_everything = false;
    if (record >= grid.cells()) continue;
    for (int a = 0; a < dim; ++a) {
      const bool free = !normal_fixed(grid.face(record, 2 * a));
      if (free && (covered[record] >> a & 1) == 0) cover_everything = false;
    }
  }
}

std::int64_t Patches::bytes() const {
  std::size_t sum = lower_cell.size() * sizeof(lower_cell[0]);
  for (const auto& list : uncovered) sum += list.size() * sizeof(list[0]);
  return static_cast<std::int64_t>(sum);
}

}  // namespace solenoid
