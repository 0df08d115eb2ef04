#include "engine/cuda/kernels/smoother/parity.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "engine/cuda/smoother/colour_smoother.hpp"
#include "engine/cuda/smoother/device_inverses.hpp"
#include "engine/cuda/smoother/parity_plan.hpp"
#include "engine/cuda/smoother/parity_tables.hpp"
#include "level/patch_scale.hpp"

namespace solenoid::cuda {
namespace {

/// Cells longer than this in one direction have the old pressure corrected. Measured: at a ratio of 64 rounding in
/// single precision costs up to half of the iterations again, in proportion to its square.
constexpr double longest_cell = 4.0;

/// Of a colour for each multiprocessor, where its kernel brings ghosts. With fewer, most blocks run at the same time,
/// and those that wait for ghosts end later than those of a kernel that starts when the ghosts are there. Measured on
/// four H200, k = 2, 64^3 and 32^3 cells on each: 8 batches win 4 % of a cycle, 1 loses 2 %.
constexpr std::int32_t fewest_batches = 4;

template <class T>
bool is_stretched(const SmoothedLevel<T>& level) {
  const T* const inverse_h = level.cell.inverse_h;
  const auto [least, most] = std::minmax_element(inverse_h, inverse_h + level.level.grid.dim());
  return *most > T(longest_cell) * *least;
}

template <class T>
class ParitySmoother final : public ColourSmoother<T> {
 public:
  [[nodiscard]] bool from_halo() const override { return true; }
  /// Always with a variant that was asked for by name.
  [[nodiscard]] bool brings_ghosts() const override {
    const std::int32_t fewest = fewest_batches * level_.shared.multiprocessors;
    return !level_.shared.smoother.empty() ||
           std::all_of(colours_.begin(), colours_.end(),
                       [&](const OfColour& colour) { return colour.batch_count >= fewest; });
  }
  ParitySmoother(const SmoothedLevel<T>& level, const ParityKernel<T>& kernel)
      : level_(level), kernel_(kernel), stretched_(is_stretched(level)) {
    Engine& engine = level.shared.engine;
    const ParityPlan plan(level.level, kernel.patches);
    patches_ = {engine, plan.patches};
    kinds_ = plan.kinds;
    schur_number_ = plan.schur_number;
    for (std::size_t i = 0; i < plan.colours.size(); ++i) {
      bool rest = false;
      for (const PatchRun& run : level.level.patches.colours[i]) rest = rest || plan.covered[run.kind] == 0;
      colours_.push_back({{engine, plan.colours[i]},
                          static_cast<std::int32_t>(plan.colours[i].size()),
                          plan.first_with_ghosts[i],
                          {engine, plan.uncovered[i]},
                          static_cast<std::int32_t>(plan.uncovered[i].size()),
                          rest});
    }
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() const override {
    const Level& level = level_.level;
    Engine& engine = level_.shared.engine;
    auto on_device = tables_by<Tables>(this);
    std::vector<ParityProblem> problems;
    // Nothing that grows with the mesh where coefficients are constant.
    const auto scales = level.has_coefficients_by_cell() ? patch_scales(level) : std::vector<PatchScale>();
    const bool vary =
        std::any_of(scales.begin(), scales.end(), [](const auto& scale) { return scale.reaction != 0.0; });
    if (vary) {
      problems = problems_of(scales);
      std::vector<T> reactions;
      for (const ParityProblem& problem : problems) reactions.push_back(static_cast<T>(problem.reaction));
      on_device->reaction_of_problem = {engine, reactions};
      on_device->problem = {engine, numbers_of(scales, problems)};
    } else {
      for (const int kind : kinds_) problems.push_back({level.coefficients.reaction, kind});
    }
    const ParityTables<T> tables(level, problems);
    const Equation& equation = level.equation;
    for (int c = 0; c < equation.dim && (vary || level.is_sheared()); ++c) {
      on_device->reaction[c] = static_cast<T>((vary ? 1.0 : level.coefficients.reaction) * equation.weights.mass[c]);
    }
    on_device->univariate = {engine, tables.univariate};
    on_device->schur = Vector<T>(engine, tables.schur_size);
    make_inverses(engine, tables.missing, InverseForm::operands, on_device->schur.data(), level_.shared.stream);
    return on_device;
  }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override {
    return std::exchange(tables_, made_as<Tables>(tables, this));
  }

  void smooth(const Colour<T>& colour) override {
    const OfColour& mine = colours_[colour.number];
    ParityArguments<T> arguments{
        .cell = &level_.cell,
        .topology = level_.device.topology(),
        .patches = patches_.data(),
        .batches = mine.batches.data(),
        .batch_count = mine.batch_count,
        .uncovered = mine.uncovered.data(),
        .uncovered_count = mine.uncovered_count,
        .tables = tables_->univariate.data(),
        .schur = tables_->schur.data(),
        .b = colour.b,
        .x = colour.x,
        .y = colour.y,
        .root = colour.root,
        .eigenvalue_factor = {},
        .reaction = {},
        .problem = tables_->problem.data(),
        .reaction_of_problem = tables_->reaction_of_problem.data(),
        .keeps_pressure = stretched_ && colour.x != nullptr,
        .followed = mine.rest,
        .bringing = colour.bringing,
        .first_waiting = colour.bringing.blocks > 0 ? mine.first_with_ghosts : std::numeric_limits<std::int32_t>::max(),
    };
    const Equation& equation = level_.level.equation;
    for (int c = 0; c < equation.dim; ++c) {
      for (int a = 0; a < equation.dim; ++a) {
        arguments.eigenvalue_factor[c][a] = static_cast<T>(equation.weights.viscous[c][(c + a) % equation.dim]);
      }
      arguments.reaction[c] = tables_->reaction[c];
    }
    (colour.root != nullptr ? kernel_.correct : kernel_.smooth)(arguments, level_.shared.stream);
  }

 private:
  struct Tables final : CoefficientTables {
    Array<T> univariate;
    Vector<T> schur;
    T reaction[3]{};  // ParityArguments::reaction
    // Where reactions vary:
    Array<std::int32_t> problem;
    Array<T> reaction_of_problem;
  };
  /// visit(i, its problem) for all patches that split.
  template <class Visit>
  void for_patches(const std::vector<PatchScale>& scales, const Visit& visit) const {
    for (const auto& runs : level_.level.patches.colours) {
      for (const PatchRun& run : runs) {
        const std::int32_t number = schur_number_[run.kind];
        if (number < 0) continue;
        for (auto i = run.begin; i < run.end; ++i) visit(i, ParityProblem{scales[i].reaction, kinds_[number]});
      }
    }
  }
  [[nodiscard]] std::vector<ParityProblem> problems_of(const std::vector<PatchScale>& scales) const {
    std::set<ParityProblem> found;
    ParityProblem last{-1.0, -1};
    for_patches(scales, [&](std::int64_t, const ParityProblem& problem) {
      if (problem != last) found.insert(problem);
      last = problem;
    });
    return {found.begin(), found.end()};
  }
  /// ParityArguments::problem
  [[nodiscard]] std::vector<std::int32_t> numbers_of(const std::vector<PatchScale>& scales,
                                                     const std::vector<ParityProblem>& problems) const {
    const Level& level = level_.level;
    std::vector<std::int32_t> numbers(level.grid.layout().storage(), 0);
    for_patches(scales, [&](std::int64_t i, const ParityProblem& problem) {
      const auto at = std::lower_bound(problems.begin(), problems.end(), problem);
      numbers[level.patches.lower_cell[i]] = static_cast<std::int32_t>(at - problems.begin());
    });
    return numbers;
  }
  struct OfColour {
    Array<PatchBatch> batches;
    std::int32_t batch_count;
    std::int32_t first_with_ghosts;
    Array<std::int32_t> uncovered;
    std::int32_t uncovered_count;
    bool rest;  ///< there are patches that do not split by parity
  };

  SmoothedLevel<T> level_;
  ParityKernel<T> kernel_;
  Array<ParityPatch> patches_;
  // Of ParityPlan.
  std::vector<int> kinds_;
  std::vector<std::int32_t> schur_number_;
  std::shared_ptr<Tables> tables_;
  bool stretched_;
  std::vector<OfColour> colours_;
};

}  // namespace

template <class T>
std::unique_ptr<ColourSmoother<T>> make_parity_smoother(const SmoothedLevel<T>& level, const ParityKernel<T>& kernel) {
  return std::make_unique<ParitySmoother<T>>(level, kernel);
}
template std::unique_ptr<ColourSmoother<float>> make_parity_smoother(const SmoothedLevel<float>&,
                                                                     const ParityKernel<float>&);
template std::unique_ptr<ColourSmoother<double>> make_parity_smoother(const SmoothedLevel<double>&,
                                                                      const ParityKernel<double>&);

}  // namespace solenoid::cuda
