#include "engine/cpu/convection.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/host_vector.hpp"
#include "engine/cpu/cell_shares.hpp"
#include "engine/cpu/kernels/points_table.hpp"
#include "engine/point_tables.hpp"
#include "engine/tables.hpp"
#include "level/upper_hats.hpp"
#include "mesh/record.hpp"

namespace solenoid::cpu {
namespace {

ConvectionData make_data(const Level& level) {
  const int order = level.equation.order;
  ConvectionData data{make_point_tables(order, convection_points(order)), {}, {}};
  const std::array<double, 3> scale = convection_scale(level.grid);
  std::copy(scale.begin(), scale.end(), data.scale);
  if (const AffineMap* const map = level.grid.metric().map(); map != nullptr) {
    const Matrix3 metric = convection_metric(*map);
    for (int a = 0; a < 3; ++a) std::copy(metric[a].begin(), metric[a].end(), data.carried[a]);
  }
  return data;
}

auto kernel_of(const Level& level) {
  const PointsTable& table = points_table(level.equation.dim, level.equation.order);
  return level.grid.metric().map() == nullptr ? table.convect : table.convect_sheared;
}

class CpuConvection final : public Convection {
 public:
  CpuConvection(Team& team, const Level& level, ConvectiveFlux flux)
      : team_(team),
        level_(level),
        kernel_(kernel_of(level)),
        jacobian_(level.grid.metric().map() == nullptr ? 1.0 : level.grid.metric().map()->jacobian()),
        data_(make_data(level)),
        upwind_(flux == ConvectiveFlux::upwind ? 1.0 : 0.0),
        rates_(team.size()) {}

  /// `upper`: what cells have of the hats on their upper faces, fewer numbers than they have themselves.
  double apply(const double* u, double* y, double* upper) override {
    team_.run([&](int t) { rates_[t] = cells(t, u, y, upper); });
    team_.run([&](int t) { add_hats(t, upper, y); });
    return *std::max_element(rates_.begin(), rates_.end()) / jacobian_;
  }

 private:
  [[nodiscard]] RecordRange near_cells() const { return level_.grid.layout().near_cells(); }

  double cells(int t, const double* u, double* y, double* upper) {
    double rate = 0.0;
    Team::in_pieces(team_.range(near_cells().size(), t, interleave), 64 * interleave, [&](Team::Range piece) {
      ConvectionArguments arguments{&data_,
                                    topology_of(level_.grid),
                                    static_cast<Record>(piece.begin),
                                    static_cast<Record>(piece.end),
                                    upwind_,
                                    u,
                                    y,
                                    upper,
                                    0.0};
      kernel_(arguments);
      rate = std::max(rate, arguments.rate);
    });
    return rate;
  }

  /// Hat-only records have nothing of their own.
  void add_hats(int t, const double* upper, double* y) {
    const VectorLayout& layout = level_.grid.layout();
    const auto range = team_.range(layout.records().size(), t);
    for (auto r = static_cast<Record>(range.begin); r < range.end; ++r) {
      if (!layout.is_hat(r)) continue;
      for (int i = 0; i < level_.equation.record(); ++i) y[level_.index(r, i)] = 0.0;
    }
    add_upper_hats(level_, {static_cast<Record>(range.begin), static_cast<Record>(range.end)}, upper, y);
  }

  Team& team_;
  const Level& level_;
  void (*kernel_)(ConvectionArguments&);
  double jacobian_;
  ConvectionData data_;
  double upwind_;
  std::vector<double> rates_;  // [thread]
};

}  // namespace

std::unique_ptr<Convection> make_cpu_convection(Team& team, const Level& level, ConvectiveFlux flux) {
  return std::make_unique<CpuConvection>(team, level, flux);
}

}  // namespace solenoid::cpu
