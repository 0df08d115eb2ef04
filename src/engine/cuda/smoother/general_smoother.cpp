#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "engine/cuda/kernels/smoother/general.hpp"
#include "engine/cuda/smoother/colour_smoother.hpp"

namespace solenoid::cuda {
namespace {

template <class T>
class GeneralSmoother final : public ColourSmoother<T> {
 public:
  GeneralSmoother(const SmoothedLevel<T>& level, const LocalProblems& problems, bool beside_parity)
      : level_(level),
        problems_(problems.all),
        layout_{level.level.equation.dim, level.level.equation.n()},
        beside_parity_(beside_parity) {
    GeneralSmoother::use_tables(GeneralSmoother::make_tables());
    for (std::size_t colour = 0; colour < problems.colours.size(); ++colour) {
      std::vector<const Run*> mine;
      for (const Run& run : problems.colours[colour]) mine.push_back(&run);
      std::stable_sort(mine.begin(), mine.end(),
                       [&](const Run* a, const Run* b) { return symmetric_directions(*a) < symmetric_directions(*b); });
      const std::int64_t count = patches_of(mine);
      std::int64_t all = 0;
      for (const PatchRun& run : level.level.patches.colours[colour]) all += run.end - run.begin;
      const int together = together_of(count);
      const std::vector<GeneralPatches> blocks = blocks_of(mine, together);
      colours_.push_back(
          {{level.shared.engine, blocks}, static_cast<std::int32_t>(blocks.size()), together, count < all});
    }
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() const override {
    auto tables = tables_by<Tables>(this);
    std::vector<T> rows(problems_.size() * layout_.size());
    // Those of a level whose coefficients are constant have others by now.
    std::vector<LocalProblems::Problem> problems = problems_;
    if (!level_.level.has_coefficients_by_cell()) {
      for (auto& problem : problems) problem.coefficients = level_.level.coefficients;
    }
    tables->kinds = {level_, problems, [&](std::size_t problem, const PatchData<T>& of) {
                       lay_out(of, rows.data() + problem * layout_.size());
                     }};
    tables->rows = {level_.shared.engine, rows};
    return tables;
  }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override {
    return std::exchange(tables_, made_as<Tables>(tables, this));
  }

  void smooth(const Colour<T>& colour) override {
    const OfColour& mine = colours_[colour.number];
    if (!beside_parity_ && !colour.add) copy_uncovered(level_, colour);
    const GeneralArguments<T> arguments{
        .cell = &level_.cell,
        .topology = level_.device.topology(),
        .kinds = tables_->kinds.data(),
        .tables = tables_->rows.data(),
        .local = level_.local,
        .patches = mine.blocks.data(),
        .count = mine.count,
        .together = mine.together,
        .beside = beside_parity_ && mine.others,
        .colour = colour,
    };
    level_.table.general.smooth(arguments, level_.shared.stream);
  }

 private:
  using Run = LocalProblems::Run;
  struct Tables final : CoefficientTables {
    DeviceProblems<T> kinds;
    Array<T> rows;  // GeneralTables of each
  };

  /// S^-1 halves with each. Those with the largest begin, so that nobody waits for them in the end.
  [[nodiscard]] int symmetric_directions(const Run& run) const {
    const PatchKind& kind = level_.level.patches.kinds[problems_[run.problem].kind];
    return static_cast<int>(std::count_if(kind.begin(), kind.begin() + layout_.dim,
                                          [](const PatchEnds& ends) { return ends.symmetric(); }));
  }
  static std::int64_t patches_of(const std::vector<const Run*>& runs) {
    return std::transform_reduce(runs.begin(), runs.end(), std::int64_t{0}, std::plus<>(),
                                 [](const Run* run) { return std::ssize(run->lower_cells); });
  }
  /// Patches of a thread block.
  [[nodiscard]] int together_of(std::int64_t count) const {
    const GeneralKernel<T>& kernel = level_.table.general;
    if (level_.local != LocalSolverKind::direct || level_.shared.smoother == one_by_one) return 1;
    if (level_.shared.smoother == in_pairs) return kernel.together;
    return count > std::int64_t{kernel.many} * level_.shared.multiprocessors ? kernel.together : 1;
  }
  [[nodiscard]] std::vector<GeneralPatches> blocks_of(const std::vector<const Run*>& runs, int together) const {
    std::vector<GeneralPatches> blocks;
    for (const Run* run : runs) {
      for (std::size_t i = 0; i < run->lower_cells.size(); ++i) {
        if (i % together == 0) blocks.push_back({.cells = {}, .count = 0, .kind = run->problem});
        GeneralPatches& block = blocks.back();
        const auto cells = patch_cells(level_.level.grid, run->lower_cells[i]);
        std::copy(cells.begin(), cells.end(), block.cells[block.count++]);
      }
    }
    return blocks;
  }

  void lay_out(const PatchData<T>& kind, T* to) const {
    const int modes = layout_.modes();
    const int functions = layout_.functions();
    const int row = layout_.row_length();
    const auto put = [row](const T* table, int rows, int length, T* at) {
      for (int i = 0; i < rows; ++i) std::copy_n(table + i * length, length, at + i * row);
    };
    for (int a = 0; a < layout_.dim; ++a) {
      const int count = kind.last[a] - kind.first[a] + 1;
      T* const of_a = to + a * layout_.direction();
      put(kind.eigen_o[a], modes, modes, of_a);
      put(kind.eigen_p[a], count, count, of_a + (modes + kind.first[a]) * row);
      put(kind.divergence[a], modes, count, of_a + (modes + functions) * row);
      std::copy_n(kind.inverse_lambda[a], count * layout_.columns(),
                  to + layout_.inverse_lambda_at() + a * functions * layout_.columns());
    }
  }

  struct OfColour {
    Array<GeneralPatches> blocks;
    std::int32_t count;
    int together;
    bool others;  ///< there are patches that it does not take
  };

  SmoothedLevel<T> level_;
  std::vector<LocalProblems::Problem> problems_;
  GeneralTables layout_;
  std::shared_ptr<Tables> tables_;
  bool beside_parity_;
  std::vector<OfColour> colours_;
};

}  // namespace

template <class T>
std::unique_ptr<ColourSmoother<T>> make_general_smoother(const SmoothedLevel<T>& level, const LocalProblems& problems,
                                                         bool beside_parity) {
  return std::make_unique<GeneralSmoother<T>>(level, problems, beside_parity);
}
template std::unique_ptr<ColourSmoother<float>> make_general_smoother(const SmoothedLevel<float>&, const LocalProblems&,
                                                                      bool);
template std::unique_ptr<ColourSmoother<double>> make_general_smoother(const SmoothedLevel<double>&,
                                                                       const LocalProblems&, bool);

}  // namespace solenoid::cuda
