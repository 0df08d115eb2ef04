#include "engine/cuda/kernels/smoother/general.hpp"
#include "engine/cuda/smoother/colour_smoother.hpp"

namespace solenoid::cuda {
namespace {

template <class T>
class GeneralSmoother final : public ColourSmoother<T> {
 public:
  GeneralSmoother(const SmoothedLevel<T>& level, const std::vector<char>& take, bool beside_parity)
      : level_(level), kinds_(level, take), beside_parity_(beside_parity) {
    const Patches& all = level.level.patches;
    for (const auto& runs : all.colours) {
      std::vector<GeneralPatch> patches;
      bool others = false;
      for (const PatchRun& run : runs) {
        others = others || take[run.kind] == 0;
        if (take[run.kind] == 0) continue;
        for (auto i = run.begin; i < run.end; ++i) {
          const auto cells = patch_cells(level.level.grid, all.lower_cell[i]);
          patches.push_back({{cells[0], cells[2], cells[4], cells[6]}, run.kind});
        }
      }
      colours_.push_back({{level.shared.engine, patches}, static_cast<std::int32_t>(patches.size()), others});
    }
  }

  void smooth(const Colour<T>& colour) override {
    const OfColour& mine = colours_[colour.number];
    if (!beside_parity_ && !colour.add) copy_uncovered(level_, colour);
    const GeneralArguments<T> arguments{
        .cell = &level_.cell,
        .topology = level_.device.topology(),
        .kinds = kinds_.data(),
        .local = level_.local,
        .patches = mine.patches.data(),
        .count = mine.count,
        .beside = beside_parity_ && mine.others,
        .b = colour.b,
        .x = colour.x,
        .y = colour.y,
        .add = colour.add,
        .damping = colour.damping,
    };
    level_.table.smooth_general(arguments, level_.shared.stream);
  }

 private:
  struct OfColour {
    Array<GeneralPatch> patches;
    std::int32_t count;
    bool others;  ///< there are patches that it does not take
  };

  SmoothedLevel<T> level_;
  DeviceKinds<T> kinds_;
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
