#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/parallel.hpp"
#include "engine/cuda/error.hpp"
#include "engine/cuda/kernels/varying.hpp"
#include "engine/cuda/smoother/colour_smoother.hpp"
#include "engine/cuda/smoother/patch_scaling.hpp"
#include "level/patch_scale.hpp"

namespace solenoid::cuda {
namespace {

/// Of all patches of a level, in their order.
std::vector<PatchScale> patch_scales(const Level& level) {
  const auto& lower_cell = level.patches.lower_cell;
  std::vector<PatchScale> scales(lower_cell.size());
  parallel_ranges({std::ssize(scales)}, [&](CellRange range, std::int64_t) {
    for (auto i = range.begin; i < range.end; ++i) scales[i] = patch_scale(level, lower_cell[i]);
  });
  return scales;
}

/// nu_p^(1/2) of each record in a patch of a colour, 0 in others: of its cells, and of the hats beyond its upper ends
/// that are unknowns.
template <class T>
std::vector<T> roots_of(const Level& level, int colour, const std::vector<PatchScale>& scales) {
  const Grid& grid = level.grid;
  std::vector<T> roots(grid.layout().storage(), T(0));
  for (const PatchRun& run : level.patches.colours[colour]) {
    parallel_ranges({run.end - run.begin}, [&](CellRange range, std::int64_t) {
      for (auto i = run.begin + range.begin; i < run.begin + range.end; ++i) {
        const auto root = static_cast<T>(std::sqrt(scales[i].viscosity));
        const auto cells = patch_cells(grid, level.patches.lower_cell[i]);
        for (int bits = 0; bits < 1 << grid.dim(); ++bits) {
          roots[cells[bits]] = root;
          for (int a = 0; a < grid.dim(); ++a) {
            if ((bits >> a & 1) != 0 && grid.face(cells[bits], 2 * a + 1) == Face::outflow) {
              roots[grid.neighbour(cells[bits], 2 * a + 1)] = root;
            }
          }
        }
      }
    });
  }
  return roots;
}

/// The local problems of patches: kinds, with the reactions that some patch of the kind has.
LocalProblems problems_of(const Level& level, const std::vector<PatchScale>& scales) {
  std::map<double, std::map<int, int>> numbers;  // [reaction][kind]
  for (const auto& runs : level.patches.colours) {
    for (const PatchRun& run : runs) {
      for (auto i = run.begin; i < run.end; ++i) numbers[scales[i].reaction][run.kind] = 0;
    }
  }
  LocalProblems problems;
  for (auto& [reaction, of_kinds] : numbers) {
    for (auto& [kind, number] : of_kinds) {
      number = static_cast<int>(problems.all.size());
      problems.all.push_back({kind, {.reaction = reaction}});
    }
  }
  for (const auto& runs : level.patches.colours) {
    std::map<int, std::vector<Record>> of_problems;
    for (const PatchRun& run : runs) {
      for (auto i = run.begin; i < run.end; ++i) {
        of_problems[numbers[scales[i].reaction][run.kind]].push_back(level.patches.lower_cell[i]);
      }
    }
    auto& mine = problems.colours.emplace_back();
    for (auto& [number, lower_cells] : of_problems) mine.push_back({number, std::move(lower_cells)});
  }
  return problems;
}

/// Coefficients that vary by cell. For each colour the true residual times T, local problems of nu = 1 by whatever
/// kernels these have elsewhere, and their solution times T.
template <class T>
class VaryingSmoother final : public ColourSmoother<T> {
 public:
  explicit VaryingSmoother(const SmoothedLevel<T>& level)
      : level_(level),
        residual_(level.shared.engine, level.level.size()),
        correction_(level.shared.engine, level.level.size()) {
    VaryingSmoother::use_tables(VaryingSmoother::make_tables());
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() const override {
    const Level& level = level_.level;
    const std::vector<PatchScale> scales = patch_scales(level);
    auto tables = tables_by<Tables>(this);
    for (int colour = 0; colour < std::ssize(level.patches.colours); ++colour) {
      tables->roots.emplace_back(level_.shared.engine, roots_of<T>(level, colour, scales));
    }
    const bool reacts =
        std::any_of(scales.begin(), scales.end(), [](const PatchScale& scale) { return scale.reaction != 0.0; });
    if (reacts) {
      tables->local = std::make_shared<ColourSmoothers<T>>();
      tables->local->push_back(make_general_smoother(level_, problems_of(level, scales), false));
    } else if (tables_ != nullptr && !tables_->reacts) {
      tables->local = tables_->local;  // depends on no viscosity
    } else {
      tables->local = std::make_shared<ColourSmoothers<T>>(make_constant_smoothers(level_, false));
    }
    tables->reacts = reacts;
    return tables;
  }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override {
    return std::exchange(tables_, made_as<Tables>(tables, this));
  }

  void smooth(const Colour<T>& colour) override {
    const Level& level = level_.level;
    const Stream stream = level_.shared.stream;
    const int record = level.equation.record();
    const PatchScaling<T> scaling{tables_->roots[colour.number].data(), level.size(), record,
                                  record - power(level.equation.n(), level.equation.dim)};
    if (colour.x != nullptr || Rehearsal::active()) {
      level_.table.apply_varying({.cell = &level_.cell,
                                  .varying = level_.varying,
                                  .topology = level_.device.topology(),
                                  .blocks = level_.device.blocks(),
                                  .patch_root = scaling.root,
                                  .x = colour.x,
                                  .b = Rehearsal::active() ? level_.cell.value : colour.b,  // one that is there
                                  .y = residual_.data()},
                                 stream);
    }
    if (colour.x == nullptr) scale_by_patch(scaling, colour.b, residual_.data(), stream);
    for (auto& smoother : *tables_->local) {
      smoother->smooth({colour.number, residual_.data(), nullptr, correction_.data(), false, T(1)});
    }
    add_by_patch(scaling, colour.factor(), correction_.data(), colour.add ? colour.y : colour.x, colour.y, stream);
  }

 private:
  struct Tables final : CoefficientTables {
    std::vector<Array<T>> roots;  // by colour
    std::shared_ptr<ColourSmoothers<T>> local;
    bool reacts = false;
  };

  SmoothedLevel<T> level_;
  Vector<T> residual_;
  Vector<T> correction_;
  std::shared_ptr<Tables> tables_;
};

}  // namespace

template <class T>
std::unique_ptr<ColourSmoother<T>> make_varying_smoother(const SmoothedLevel<T>& level) {
  return std::make_unique<VaryingSmoother<T>>(level);
}
template std::unique_ptr<ColourSmoother<float>> make_varying_smoother(const SmoothedLevel<float>&);
template std::unique_ptr<ColourSmoother<double>> make_varying_smoother(const SmoothedLevel<double>&);

}  // namespace solenoid::cuda
