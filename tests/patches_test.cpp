/// \file
/// Who writes what in a smoothing step: over the index maps of patches, colours and batches that kernels follow.

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "engine/cuda/smoother/parity_plan.hpp"
#include "levels.hpp"

namespace solenoid {
namespace {

/// Counts the writers of every value. Values of one component (or of the pressure) of a record have the same ones.
class Writers {
 public:
  explicit Writers(const Grid& grid)
      : grid_(grid), parts_(grid.dim() + 1), count_(static_cast<std::size_t>(grid.layout().storage()) * parts_, 0) {}

  void record(Record r) {
    for (int part = 0; part < parts_; ++part) ++at(r, part);
  }
  /// All values of the patch's cells, and the normal unknowns at its open upper ends.
  void patch(Record lower, const PatchKind& kind) {
    const auto cells = patch_cells(grid_, lower);
    for (int bits = 0; bits < 1 << grid_.dim(); ++bits) {
      record(cells[bits]);
      for (int c = 0; c < grid_.dim(); ++c) {
        if ((bits >> c & 1) != 0 && kind[c].hat[1]) ++at(grid_.neighbour(cells[bits], 2 * c + 1), c);
      }
    }
  }
  /// Every value has one writer; what is always zero (the null record, what hat-only records do not use) at most one.
  [[nodiscard]] bool one_each() const {
    for (Record r = 0; r < grid_.layout().storage(); ++r) {
      for (int part = 0; part < parts_; ++part) {
        const bool used =
            grid_.layout().is_cell(r) || (grid_.layout().records().contains(r) && grid_.hat_direction(r) == part);
        const int writers = count_[static_cast<std::size_t>(r) * parts_ + part];
        if (used ? writers != 1 : writers > (grid_.layout().records().contains(r) ? 1 : 0)) return false;
      }
    }
    return true;
  }

 private:
  int& at(Record r, int part) { return count_[static_cast<std::size_t>(r) * parts_ + part]; }

  const Grid& grid_;
  int parts_;
  std::vector<int> count_;
};

/// Patches run by run, as the cpu engine and the general smoother take them.
void check_runs(const Level& level, const std::string& what) {
  const Patches& patches = level.patches;
  for (std::size_t colour = 0; colour < patches.colours.size(); ++colour) {
    Writers writers(level.grid);
    for (const PatchRun& run : patches.colours[colour]) {
      for (auto i = run.begin; i < run.end; ++i) writers.patch(patches.lower_cell[i], patches.kinds[run.kind]);
    }
    for (const Record r : patches.uncovered[colour]) writers.record(r);
    EXPECT_TRUE(writers.one_each()) << what << ", colour " << colour;
  }
}

/// Patches that split by parity batch by batch, the others run by run.
void check_plan(const Level& level, int batch_size, const std::string& what) {
  const cuda::ParityPlan plan(level, batch_size);
  const Patches& patches = level.patches;
  const PatchKind closed{};
  for (std::size_t colour = 0; colour < patches.colours.size(); ++colour) {
    Writers writers(level.grid);
    for (const cuda::PatchBatch& batch : plan.colours[colour]) {
      EXPECT_LE(batch.count, batch_size) << what;
      for (auto i = batch.begin; i < batch.begin + batch.count; ++i) writers.patch(plan.patches[i].cells[0], closed);
      for (auto i = batch.copy_begin; i < batch.copy_begin + batch.copy_count; ++i) {
        writers.record(plan.uncovered[colour][i]);
      }
    }
    for (const PatchRun& run : patches.colours[colour]) {
      if (plan.covered[run.kind] != 0) continue;
      for (auto i = run.begin; i < run.end; ++i) writers.patch(patches.lower_cell[i], patches.kinds[run.kind]);
    }
    if (plan.colours[colour].empty()) {
      for (const Record r : plan.uncovered[colour]) writers.record(r);
    }
    EXPECT_TRUE(writers.one_each()) << what << ", batches of " << batch_size << ", colour " << colour;
  }
}

/// A grid and the coarser ones, but for extents that have been seen on another way down.
void check_levels(const Equation& equation, const Grid& grid, const PatchRules& rules, const std::string& what,
                  std::set<std::array<int, 3>>& seen) {
  const auto& extent = grid.extent();
  if (!seen.insert({extent[0], extent[1], extent[2]}).second) return;
  const Level level(equation, Coefficients{}, grid, rules);
  const std::string here =
      what + ", " + std::to_string(extent[0]) + " x " + std::to_string(extent[1]) + " x " + std::to_string(extent[2]);
  check_runs(level, here);
  for (const int size : {8, 16, 32}) check_plan(level, size, here);
  for (const auto& pairs : test::coarsenings(grid)) {
    check_levels(equation, grid.coarsen(pairs), rules, here, seen);
  }
}
void check_levels(const Equation& equation, const Grid& grid, const PatchRules& rules, const std::string& what) {
  std::set<std::array<int, 3>> seen;
  check_levels(equation, grid, rules, what, seen);
}

TEST(Patches, OfAColourWriteEveryValueOnce) {
  for (const int dim : {2, 3}) {
    for (auto mesh : test::mesh_cases(dim)) {
      mesh.mesh.refine = dim == 2 ? 2 : 1;
      const Grid grid(mesh.mesh, mesh.boundary);
      const Equation equation{.dim = dim, .order = 0};
      for (const PatchProblem problem : {PatchProblem::symmetric, PatchProblem::galerkin}) {
        for (const ColourOrder order : {ColourOrder::diagonal, ColourOrder::lexicographic}) {
          check_levels(equation, grid, {problem, order}, std::to_string(dim) + "D " + mesh.name);
        }
      }
      // Not refined: odd numbers of cells.
      mesh.mesh.refine = 0;
      check_levels(equation, Grid(mesh.mesh, mesh.boundary), {}, std::to_string(dim) + "D " + mesh.name);
    }
  }
}

TEST(Patches, AnOverlapIsFound) {
  const auto level = test::mesh_cases(2).front().level(0);
  Writers writers(level.grid);
  for (const Record r : level.grid.layout().records()) writers.record(r);
  EXPECT_TRUE(writers.one_each());
  writers.patch(level.patches.lower_cell.front(), level.patches.kinds.front());
  EXPECT_FALSE(writers.one_each());
}

}  // namespace
}  // namespace solenoid
