#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "engine/cuda/kernels/smoother/general.hpp"
#include "engine/cuda/smoother/colour_smoother.hpp"

namespace solenoid::cuda {
namespace {

template <class T>
class GeneralSmoother final : public ColourSmoother<T> {
 public:
  GeneralSmoother(const SmoothedLevel<T>& level, const std::vector<char>& take, bool beside_parity)
      : level_(level),
        take_(take),
        layout_{level.level.equation.dim, level.level.equation.n()},
        beside_parity_(beside_parity) {
    GeneralSmoother::use_tables(GeneralSmoother::make_tables());
    for (const auto& runs : level.level.patches.colours) {
      std::vector<PatchRun> mine;
      std::copy_if(runs.begin(), runs.end(), std::back_inserter(mine),
                   [&](const PatchRun& run) { return take[run.kind] != 0; });
      std::stable_sort(mine.begin(), mine.end(), [&](const PatchRun& a, const PatchRun& b) {
        return symmetric_directions(a) < symmetric_directions(b);
      });
      const int together = together_of(mine);
      const std::vector<GeneralPatches> blocks = blocks_of(mine, together);
      colours_.push_back({{level.shared.engine, blocks},
                          static_cast<std::int32_t>(blocks.size()),
                          together,
                          mine.size() < runs.size()});
    }
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() const override {
    auto tables = tables_by<Tables>(this);
    std::vector<T> rows(take_.size() * layout_.size());
    tables->kinds = {level_, take_, [&](std::size_t kind, const PatchData<T>& of) {
                       lay_out(of, rows.data() + kind * layout_.size());
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
  struct Tables final : CoefficientTables {
    DeviceKinds<T> kinds;
    Array<T> rows;  // GeneralTables of each kind
  };

  /// S^-1 halves with each. Those with the largest begin, so that nobody waits for them in the end.
  [[nodiscard]] int symmetric_directions(const PatchRun& run) const {
    const PatchKind& kind = level_.level.patches.kinds[run.kind];
    return static_cast<int>(std::count_if(kind.begin(), kind.begin() + layout_.dim,
                                          [](const PatchEnds& ends) { return ends.symmetric(); }));
  }
  /// Patches of a thread block.
  [[nodiscard]] int together_of(const std::vector<PatchRun>& runs) const {
    const GeneralKernel<T>& kernel = level_.table.general;
    if (level_.local != LocalSolverKind::direct || level_.shared.smoother == one_by_one) return 1;
    if (level_.shared.smoother == in_pairs) return kernel.together;
    const std::int64_t count = std::transform_reduce(runs.begin(), runs.end(), std::int64_t{0}, std::plus<>(),
                                                     [](const PatchRun& run) { return run.end - run.begin; });
    return count > std::int64_t{kernel.many} * level_.shared.multiprocessors ? kernel.together : 1;
  }
  [[nodiscard]] std::vector<GeneralPatches> blocks_of(const std::vector<PatchRun>& runs, int together) const {
    std::vector<GeneralPatches> blocks;
    for (const PatchRun& run : runs) {
      for (auto i = run.begin; i < run.end; ++i) {
        if ((i - run.begin) % together == 0) blocks.push_back({.cells = {}, .count = 0, .kind = run.kind});
        GeneralPatches& block = blocks.back();
        const auto cells = patch_cells(level_.level.grid, level_.level.patches.lower_cell[i]);
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
  std::vector<char> take_;
  GeneralTables layout_;
  std::shared_ptr<Tables> tables_;
  bool beside_parity_;
  std::vector<OfColour> colours_;
};

}  // namespace

template <class T>
std::unique_ptr<ColourSmoother<T>> make_general_smoother(const SmoothedLevel<T>& level, const std::vector<char>& take,
                                                         bool beside_parity) {
  return std::make_unique<GeneralSmoother<T>>(level, take, beside_parity);
}
template std::unique_ptr<ColourSmoother<float>> make_general_smoother(const SmoothedLevel<float>&,
                                                                      const std::vector<char>&, bool);
template std::unique_ptr<ColourSmoother<double>> make_general_smoother(const SmoothedLevel<double>&,
                                                                       const std::vector<char>&, bool);

}  // namespace solenoid::cuda
