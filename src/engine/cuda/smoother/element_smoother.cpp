#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "base/parallel.hpp"
#include "engine/cuda/error.hpp"
#include "engine/cuda/kernels/elements.hpp"
#include "engine/cuda/smoother/colour_smoother.hpp"
#include "engine/cuda/smoother/patch_scaling.hpp"
#include "engine/cuda/vector.hpp"
#include "level/patch_scale.hpp"

namespace solenoid::cuda {
namespace {

/// Colour::root, of all colours.
template <class T>
std::vector<T> roots_of(const Level& level, const std::vector<PatchScale>& scales) {
  std::vector<T> roots(level.grid.layout().storage(), T(0));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    roots[level.patches.lower_cell[i]] = static_cast<T>(std::sqrt(scales[i].viscosity));
  }
  return roots;
}

/// PatchesOfColour::hats.
std::vector<std::uint8_t> hats_of(const Level& level, int colour) {
  const Grid& grid = level.grid;
  std::vector<std::uint8_t> hats(grid.layout().storage(), 0);
  const auto mark = [&](const PatchKind& kind, Record lower) {
    const auto cells = patch_cells(grid, lower);
    for (int bits = 0; bits < 1 << grid.dim(); ++bits) {
      std::uint8_t all = 0;
      for (int a = 0; a < grid.dim(); ++a) {
        const bool upper = (bits >> a & 1) != 0;
        const bool open = kind[a].hat[0];
        const HatOfPatch what =
            upper ? (open ? HatOfPatch::joined : HatOfPatch::whole) : (open ? HatOfPatch::open : HatOfPatch::share);
        all = static_cast<std::uint8_t>(all | hats_of_patch(a, what));
      }
      hats[cells[bits]] = all;
    }
  };
  for (const PatchRun& run : level.patches.colours[colour]) {
    parallel_ranges({run.end - run.begin}, [&](CellRange range, std::int64_t) {
      for (auto i = run.begin + range.begin; i < run.begin + range.end; ++i) {
        mark(level.patches.kinds[run.kind], level.patches.lower_cell[i]);
      }
    });
  }
  return hats;
}
/// PatchesOfColour::joined.
bool has_joined_hats(const Level& level, int colour) {
  const auto& runs = level.patches.colours[colour];
  return std::any_of(runs.begin(), runs.end(), [&](const PatchRun& run) {
    const PatchKind& kind = level.patches.kinds[run.kind];
    return std::any_of(kind.begin(), kind.end(), [](const PatchEnds& ends) { return ends.hat[0]; });
  });
}

/// The local problems of the patches that are taken, take[kind]: kinds, with the reactions that some patch of the kind
/// has.
LocalProblems problems_of(const Level& level, const std::vector<PatchScale>& scales, const std::vector<char>& take) {
  std::map<double, std::map<int, int>> numbers;  // [reaction][kind]
  for (const auto& runs : level.patches.colours) {
    for (const PatchRun& run : runs) {
      if (take[run.kind] == 0) continue;
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
      if (take[run.kind] == 0) continue;
      for (auto i = run.begin; i < run.end; ++i) {
        of_problems[numbers[scales[i].reaction][run.kind]].push_back(level.patches.lower_cell[i]);
      }
    }
    auto& mine = problems.colours.emplace_back();
    for (auto& [number, lower_cells] : of_problems) mine.push_back({number, std::move(lower_cells)});
  }
  return problems;
}

/// Levels whose local problems are not the exact ones, where coefficients vary by cell or cells are parallelepipeds.
/// For each colour the true residual times T, then the kernels that local problems of constant coefficients have
/// elsewhere, for T times the solution as a correction. On parallelepipeds with one viscosity T is 1.
template <class T>
class ElementSmoother final : public ColourSmoother<T> {
 public:
  ElementSmoother(const SmoothedLevel<T>& level, bool additive)
      : level_(level), residual_(level.shared.engine, level.level.size()) {
    if (additive) correction_ = Vector<T>(level.shared.engine, level.level.size());
    for (int colour = 0; colour < std::ssize(level.level.patches.colours); ++colour) {
      joined_.push_back(has_joined_hats(level.level, colour) ? 1 : 0);
      hats_.emplace_back(level.shared.engine, hats_of(level.level, colour));
    }
    const auto& kinds = level.level.patches.kinds;
    rest_.assign(kinds.size(), 1);
    if (const ParityKernel<T>* const kernel = parity_kernel_for(level, false)) {
      parity_ = make_parity_smoother(level, *kernel);
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        rest_[i] = splits_by_parity(kinds[i], level.level.equation.dim) ? 0 : 1;
      }
    }
    ElementSmoother::use_tables(ElementSmoother::make_tables());
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() const override {
    const Level& level = level_.level;
    const std::vector<PatchScale> scales = patch_scales(level);
    auto tables = tables_by<Tables>(this);
    tables->root = {level_.shared.engine, roots_of<T>(level, scales)};
    // Without reactions local problems of nu = 1 depend on nothing.
    tables->alike =
        level.has_coefficients_by_cell() &&
        std::all_of(scales.begin(), scales.end(), [](const PatchScale& scale) { return scale.reaction == 0.0; });
    if (tables_ != nullptr && tables->alike && tables_->alike) {
      tables->of_parity = tables_->of_parity;
      tables->rest = tables_->rest;
      return tables;
    }
    if (parity_ != nullptr) tables->of_parity = parity_->make_tables();
    if (parity_ == nullptr || std::count(rest_.begin(), rest_.end(), 1) > 0) {
      const LocalProblems problems =
          level.has_coefficients_by_cell() ? problems_of(level, scales, rest_) : problems_of_kinds(level, rest_);
      tables->rest = make_general_smoother(level_, problems, parity_ != nullptr);
    }
    return tables;
  }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override {
    const auto mine = made_as<Tables>(tables, this);
    if (parity_ != nullptr) parity_->use_tables(mine->of_parity);
    return std::exchange(tables_, mine);
  }

  void smooth(const Colour<T>& colour) override {
    const Level& level = level_.level;
    const Stream stream = level_.shared.stream;
    const T* const root = tables_->root.data();
    const PatchesOfColour<T> patches{root, hats_[colour.number].data(), joined_[colour.number] != 0};
    if (colour.x != nullptr || Rehearsal::active()) {
      const auto apply = level.is_sheared() ? level_.table.apply_sheared : level_.table.apply_varying;
      apply({.cell = &level_.cell,
             .varying = level_.varying,
             .sheared = level_.sheared,
             .topology = level_.device.topology(),
             .blocks = level_.device.blocks(),
             .patches = patches,
             .x = colour.x,
             .b = colour.b,
             .y = residual_.data()},
            stream);
    }
    if (colour.x == nullptr) {
      const Equation& equation = level.equation;
      const int block = power(equation.n(), equation.dim);
      const RecordShape records{level.size(),
                                equation.dim,
                                equation.record(),
                                equation.record() - block,
                                block,
                                power(equation.n(), equation.dim - 1)};
      scale_by_patch(patches, level_.device.topology(), records, colour.b, residual_.data(), stream);
    }
    Colour<T> corrects{colour.number, residual_.data(), colour.x, colour.y, false, T(1), root};
    if (colour.add) {
      corrects.x = nullptr;
      corrects.y = correction_.data();
    }
    if (parity_ != nullptr) parity_->smooth(corrects);
    if (tables_->rest != nullptr) tables_->rest->smooth(corrects);
    if (colour.add) cuda::add(level.size(), colour.damping, correction_.data(), colour.y, stream);
  }

 private:
  struct Tables final : CoefficientTables {
    Array<T> root;
    std::shared_ptr<CoefficientTables> of_parity;  // or nullptr,
    std::shared_ptr<ColourSmoother<T>> rest;       // as this
    bool alike = false;
  };

  SmoothedLevel<T> level_;
  Vector<T> residual_;
  Vector<T> correction_;                       // of the additive smoother
  std::vector<Array<std::uint8_t>> hats_;      // by colour
  std::vector<char> joined_;                   // by colour
  std::unique_ptr<ColourSmoother<T>> parity_;  // of the patches that split by parity, or nullptr
  std::vector<char> rest_;                     // [kind]: it does not take them
  std::shared_ptr<Tables> tables_;
};

}  // namespace

template <class T>
std::unique_ptr<ColourSmoother<T>> make_element_smoother(const SmoothedLevel<T>& level, bool additive) {
  return std::make_unique<ElementSmoother<T>>(level, additive);
}
template std::unique_ptr<ColourSmoother<float>> make_element_smoother(const SmoothedLevel<float>&, bool);
template std::unique_ptr<ColourSmoother<double>> make_element_smoother(const SmoothedLevel<double>&, bool);

}  // namespace solenoid::cuda
