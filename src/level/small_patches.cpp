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

/// All groups that there may be, in the order of smoothing. Pairs of a direction have one for each colour: the parity
/// of the lower cell, and a third for the pair that closes an odd periodic ring.
class Slots {
 public:
  explicit Slots(int dim) {
    for (int a = 0; a < dim; ++a) shapes_.insert(shapes_.end(), pair_colours, {Kind::pair, a});
    for (int a = 0; a < dim; ++a) shapes_.push_back({Kind::ring, a});
    for (int a = 0; a < dim; ++a) {
      shapes_.push_back({Kind::lower_outflow, a});
      shapes_.push_back({Kind::upper_outflow, a});
    }
    shapes_.push_back({Kind::cell, 0});
  }
  [[nodiscard]] const std::vector<SmallShape>& shapes() const { return shapes_; }
  [[nodiscard]] std::size_t of_pair(const Grid& grid, Record lower, int a) const {
    const int i = grid.position(lower)[a];
    const bool closes_odd_ring = grid.periodic()[a] && grid.extent()[a] % 2 == 1 && i == grid.extent()[a] - 1;
    return first({Kind::pair, a}) + (closes_odd_ring ? 2 : i % 2);
  }
  [[nodiscard]] std::size_t first(const SmallShape& shape) const {
    return std::find(shapes_.begin(), shapes_.end(), shape) - shapes_.begin();
  }

 private:
  static constexpr std::size_t pair_colours = 3;
  std::vector<SmallShape> shapes_;
};

}  // namespace

SmallPatches::SmallPatches(const Grid& grid, const Patches& patches) {
  if (patches.cover_everything || grid.partition() != nullptr) return;
  const Unset<std::uint8_t> inside = faces_inside(grid, patches);
  const Record null = grid.layout().null();
  const Slots slots(grid.dim());
  const Ranges ranges{grid.layout().cells().size()};
  std::vector<std::vector<std::vector<SmallRecords>>> found(ranges.number());  // [range][slot]
  parallel_ranges(ranges, [&](CellRange range, std::int64_t i) {
    auto& lists = found[i];
    lists.resize(slots.shapes().size());
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
          lists[slots.first({upper ? Kind::upper_outflow : Kind::lower_outflow, a})].push_back(
              {cell, upper ? behind : null});
        } else if (upper && behind == cell) {
          lists[slots.first({Kind::ring, a})].push_back({cell, null});
        } else if (upper) {
          lists[slots.of_pair(grid, cell, a)].push_back({cell, behind});
        }
      }
      if (alone) lists[slots.first({Kind::cell, 0})].push_back({cell, null});
    }
  });
  for (std::size_t slot = 0; slot < slots.shapes().size(); ++slot) {
    SmallGroup group;
    for (const auto& lists : found) {
      group.patches.insert(group.patches.end(), lists[slot].begin(), lists[slot].end());
    }
    if (group.patches.empty()) continue;
    if (shapes.empty() || shapes.back() != slots.shapes()[slot]) shapes.push_back(slots.shapes()[slot]);
    group.shape = static_cast<int>(shapes.size()) - 1;
    groups.push_back(std::move(group));
  }
}

}  // namespace solenoid
