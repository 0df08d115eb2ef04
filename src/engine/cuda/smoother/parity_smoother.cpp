#include "engine/cuda/kernels/smoother/parity.hpp"

#include <algorithm>
#include <utility>

#include "engine/cuda/smoother/colour_smoother.hpp"
#include "engine/cuda/smoother/device_inverses.hpp"
#include "engine/cuda/smoother/parity_plan.hpp"
#include "engine/cuda/smoother/parity_tables.hpp"

namespace solenoid::cuda {
namespace {

/// Cells longer than this in one direction have the old pressure corrected. Measured: at a ratio of 64 rounding in
/// single precision costs up to half of the iterations again, in proportion to its square.
constexpr double longest_cell = 4.0;

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
  ParitySmoother(const SmoothedLevel<T>& level, const ParityKernel<T>& kernel)
      : level_(level), kernel_(kernel), stretched_(is_stretched(level)) {
    Engine& engine = level.shared.engine;
    const ParityPlan plan(level.level, kernel.patches);
    patches_ = {engine, plan.patches};
    kinds_ = plan.kinds;
    for (std::size_t i = 0; i < plan.colours.size(); ++i) {
      bool rest = false;
      for (const PatchRun& run : level.level.patches.colours[i]) rest = rest || plan.covered[run.kind] == 0;
      colours_.push_back({{engine, plan.colours[i]},
                          static_cast<std::int32_t>(plan.colours[i].size()),
                          {engine, plan.uncovered[i]},
                          static_cast<std::int32_t>(plan.uncovered[i].size()),
                          rest});
    }
    ParitySmoother::use_tables(ParitySmoother::make_tables());
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() const override {
    const ParityTables<T> tables(level_.level, kinds_);
    auto on_device = tables_by<Tables>(this);
    Engine& engine = level_.shared.engine;
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
    const ParityArguments<T> arguments{
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
        .keeps_pressure = stretched_ && colour.x != nullptr,
        .followed = mine.rest,
    };
    kernel_.smooth(arguments, level_.shared.stream);
  }

 private:
  struct Tables final : CoefficientTables {
    Array<T> univariate;
    Vector<T> schur;
  };
  struct OfColour {
    Array<PatchBatch> batches;
    std::int32_t batch_count;
    Array<std::int32_t> uncovered;
    std::int32_t uncovered_count;
    bool rest;  ///< there are patches that do not split by parity
  };

  SmoothedLevel<T> level_;
  ParityKernel<T> kernel_;
  Array<ParityPatch> patches_;
  std::vector<int> kinds_;  // ParityPlan::kinds
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
