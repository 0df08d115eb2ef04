#include "engine/cuda/points/device_moments.hpp"

#include <memory>

#include "engine/cuda/kernels/flow_moments.hpp"
#include "engine/cuda/points/device_fields.hpp"
#include "engine/flow_sums.hpp"

namespace solenoid::cuda {
namespace {

class DeviceMoments final : public FlowMoments {
 public:
  DeviceMoments(Shared& shared, const Level& level)
      : shared_(shared),
        level_(level),
        device_(shared.level(level)),
        places_(shared.engine, level.grid),
        functions_(make_point_tables(level.equation.order, moment_points(level.equation.order))),
        map_(cell_map(level.grid)) {}

  void add(const double* u, const double* mean, double r, const Coefficients& coefficients, std::int64_t size,
           double* moments) override {
    const Equation& equation = level_.equation;
    const CellTopology topology = device_->topology();
    FlowMomentsArguments arguments{};
    arguments.tables = &functions_;
    arguments.places = places_.places();
    for (int c = 0; c < equation.dim; ++c) arguments.upper[c] = topology.neighbour[2 * c + 1];
    arguments.cells = static_cast<std::int32_t>(level_.grid.layout().owned_cells().size());
    arguments.map = map_;
    arguments.stress_form = equation.form == ViscousForm::stress;
    arguments.viscosity = device_->viscosity(coefficients);
    arguments.part = r;
    arguments.flow = u;
    arguments.mean = mean;
    arguments.moments = moments;
    arguments.size = size;
    arguments.multiprocessors = shared_.multiprocessors;
    kernel_table<double>(equation.kind, equation.dim, equation.order).add_flow_moments(arguments, shared_.stream);
  }

 private:
  Shared& shared_;
  const Level& level_;
  std::shared_ptr<DeviceLevel> device_;
  DevicePlaces places_;
  PointTables functions_;
  CellMap map_;
};

}  // namespace

std::unique_ptr<FlowMoments> make_flow_moments(Shared& shared, const Level& level) {
  return std::make_unique<DeviceMoments>(shared, level);
}

}  // namespace solenoid::cuda
