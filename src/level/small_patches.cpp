#include "level/small_patches.hpp"

#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "base/unset.hpp"

namespace solenoid {
namespace {

using Kind = SmallShape::Kind;

/// [cell]: bit `side` if a vertex patch has the unknowns on this face; 0 for a cell in no vertex patch.
Unset<std::uint8_t> faces_inside(const Grid& grid, const Patches& patches) {
  const int dim = grid.dim();
  Unset<std::uint8_t> inside(grid.layout().cells().size());
  std::fill(inside.begin(), inside.end(), std::uint8_t{0});
  for (const auto& colour : patches.colours) {
    for (const PatchRun& run : colour) {
      const PatchKind& kind = patches.kinds[run.kind];
      // Patches of a colour share no cell.
      parallel_ranges(Ranges{run.end - run.begin}, [&](CellRange range, std::int64_t) {
        for (auto i = run.begin + range.begin; i < run.begin + range.end; ++i) {
          const auto cells = patch_cells(grid, patches.lower_cell[i]);
          for (int bits = 0; bits < 1 << dim; ++bits) {
            for (int a = 0; a < dim; ++a) {
              const int outer = bits >> a & 1;  // the side that is an end of the patch
              inside[cells[bits]] |= 1 << (2 * a + 1 - outer);
              if (kind[a].hat[outer]) inside[cells[bits]] |= 1 << (2 * a + outer);
            }
          }
        }
      });
    }
  }
  return inside;
}

/// Shapes of all groups that there may be, in the order of smoothing. Pairs of a direction have a group for each
/// colour.
std::vector<SmallShape> shapes_of_groups(int dim) {
  constexpr std::size_t colours = 3;
  std::vector<SmallShape> shapes;
  for (int a = 0; a < dim; ++a) shapes.insert(shapes.end(), colours, {Kind::pair, a});
  for (int a = 0; a < dim; ++a) shapes.push_back({Kind::ring, a});
  for (int a = 0; a < dim; ++a) {
    shapes.push_back({Kind::lower_outflow, a});
    shapes.push_back({Kind::upper_outflow, a});
  }
  shapes.push_back({Kind::cell, 0});
  return shapes;
}

}  // namespace

SmallPatches::SmallPatches(const Grid& grid, const Patches& patches) {
  if (patches.cover_everything || grid.partition() != nullptr) return;
  const Unset<std::uint8_t> inside = faces_inside(grid, patches);
  const Record null = grid.layout().null();
  const std::vector<SmallShape> all = shapes_of_groups(grid.dim());
  const Ranges ranges{grid.layout().cells().size()};
  std::vector<std::vector<std::vector<SmallRecords>>> found(ranges.number());  // [range][group]
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    found[i].resize(all.size());
    const auto add = [&](const SmallShape& shape, int colour, const SmallRecords& patch) {
      found[i][std::find(all.begin(), all.end(), shape) - all.begin() + colour].push_back(patch);
    };
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      bool alone = inside[cell] == 0;
      for (int side = 0; side < 2 * grid.dim(); ++side) {
        const Face face = grid.face(cell, side);
        if (normal_fixed(face) || (inside[cell] >> side & 1) != 0) continue;
        alone = false;
        const int a = side / 2;
        const bool upper = side % 2 == 1;
        const Record behind = grid.neighbour(cell, side);
        if (face == Face::outflow) {
          add({upper ? Kind::upper_outflow : Kind::lower_outflow, a}, 0, {cell, upper ? behind : null});
        } else if (upper && behind == cell) {
          add({Kind::ring, a}, 0, {cell, null});
        } else if (upper) {
          add({Kind::pair, a}, colour_along(grid, cell, a), {cell, behind});
        }
      }
      if (alone) add({Kind::cell, 0}, 0, {cell, null});
    }
  });
  for (std::size_t number = 0; number < all.size(); ++number) {
    SmallGroup group;
    for (const auto& lists : found) {
      group.patches.insert(group.patches.end(), lists[number].begin(), lists[number].end());
    }
    if (group.patches.empty()) continue;
    if (shapes.empty() || shapes.back() != all[number]) shapes.push_back(all[number]);
    group.shape = static_cast<int>(shapes.size()) - 1;
    groups.push_back(std::move(group));
  }
}

}  // namespace solenoid
