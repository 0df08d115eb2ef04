#include "engine/cuda/kernels/smoother/poisson.hpp"

#include <algorithm>
#include <utility>

#include "engine/cuda/smoother/colour_smoother.hpp"

namespace solenoid::cuda {
namespace {

template <class T>
class PoissonSmoother final : public ColourSmoother<T> {
 public:
  explicit PoissonSmoother(const SmoothedLevel<T>& level) : level_(level) {
    PoissonSmoother::use_tables(PoissonSmoother::make_tables());
    const PoissonKernel<T>& kernel = level.table.poisson;
    for (const auto& runs : level.level.patches.colours) {
      std::vector<PoissonBatch> batches;
      for (const PatchRun& run : runs) {
        for (auto begin = run.begin; begin < run.end; begin += kernel.patches) {
          const auto count = std::min<std::int64_t>(kernel.patches, run.end - begin);
          batches.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(count), run.kind});
        }
      }
      batches_.emplace_back(level.shared.engine, batches);
      count_.push_back(static_cast<std::int32_t>(batches.size()));
    }
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() const override {
    auto tables = tables_by<Tables>(this);
    const std::vector<char> all(level_.level.patches.kinds.size(), 1);
    tables->kinds = {level_, problems_of_kinds(level_.level, all).all};
    return tables;
  }
  std::shared_ptr<CoefficientTables> use_tables(std::shared_ptr<CoefficientTables> tables) override {
    return std::exchange(tables_, made_as<Tables>(tables, this));
  }

  void smooth(const Colour<T>& colour) override {
    if (!colour.add) copy_uncovered(level_, colour);
    const PoissonArguments<T> arguments{
        .cell = &level_.cell,
        .topology = level_.device.topology(),
        .kinds = tables_->kinds.data(),
        .lower = level_.device.lower_cells(),
        .batches = batches_[colour.number].data(),
        .batch_count = count_[colour.number],
        .colour = colour,
    };
    level_.table.poisson.smooth(arguments, level_.shared.stream);
  }

 private:
  struct Tables final : CoefficientTables {
    DeviceProblems<T> kinds;
  };

  SmoothedLevel<T> level_;
  std::shared_ptr<Tables> tables_;
  std::vector<Array<PoissonBatch>> batches_;  // by colour
  std::vector<std::int32_t> count_;
};

}  // namespace

template <class T>
std::unique_ptr<ColourSmoother<T>> make_poisson_smoother(const SmoothedLevel<T>& level) {
  return std::make_unique<PoissonSmoother<T>>(level);
}
template std::unique_ptr<ColourSmoother<float>> make_poisson_smoother(const SmoothedLevel<float>&);
template std::unique_ptr<ColourSmoother<double>> make_poisson_smoother(const SmoothedLevel<double>&);

}  // namespace solenoid::cuda
