#include "engine/cpu/flow_sums.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "engine/cpu/kernels/points_table.hpp"
#include "engine/flow_sums.hpp"
#include "engine/tables.hpp"

namespace solenoid::cpu {
namespace {

constexpr std::int64_t piece = 16 * interleave;  // cells, whose sums are one

FlowData make_data(const Level& level) {
  const int order = level.equation.order;
  FlowData data{.functions = make_point_tables(order, flow_points(order)),
                .inverse_h = {},
                .root_volume = 1.0,
                .map = cell_map(level.grid),
                .stress = level.equation.form == ViscousForm::stress};
  const Point h = level.grid.metric().uniform_width();
  for (int a = 0; a < level.equation.dim; ++a) {
    data.inverse_h[a] = 1.0 / h[a];
    data.root_volume *= std::sqrt(h[a]);
  }
  return data;
}

std::int64_t owned_cells(const Level& level) { return level.grid.layout().owned_cells().size(); }

class CpuFlowMoments final : public FlowMoments {
 public:
  CpuFlowMoments(Team& team, const Level& level)
      : team_(team),
        level_(level),
        kernel_(points_table(level.equation.dim, level.equation.order).add_flow_moments),
        data_(make_data(level)) {}

  void add(const double* u, const double* mean, double r, const Coefficients& coefficients, std::int64_t size,
           double* moments) override {
    team_.run([&](int t) {
      Team::in_pieces(team_.range(owned_cells(level_), t, interleave), piece, [&](Team::Range cells) {
        kernel_({&data_, viscosity_of_cells(coefficients), topology_of(level_.grid), static_cast<Record>(cells.begin),
                 static_cast<Record>(cells.end), r, u, mean, moments, size});
      });
    });
  }

 private:
  Team& team_;
  const Level& level_;
  void (*kernel_)(const FlowMomentsArguments&);
  FlowData data_;
};

class CpuIntegrator final : public Integrator {
 public:
  CpuIntegrator(Team& team, const Level& level)
      : team_(team),
        level_(level),
        kernel_(points_table(level.equation.dim, level.equation.order).integrate_flow),
        data_(make_data(level)),
        shares_(static_cast<std::size_t>((owned_cells(level) + piece - 1) / piece)) {}

  [[nodiscard]] FlowIntegrals flow(const double* x) override {
    sum(x, {});
    return integrals_of(shares_, level_.grid);
  }
  [[nodiscard]] double dissipation(const double* x, const Coefficients& coefficients) override {
    sum(x, viscosity_of_cells(coefficients));
    return dissipation_of(shares_, level_.grid);
  }

 private:
  void sum(const double* x, const ViscosityOfCells& viscosity) {
    team_.run([&](int t) {
      Team::in_pieces(team_.range(owned_cells(level_), t, piece), piece, [&](Team::Range cells) {
        shares_[cells.begin / piece] = kernel_({&data_, viscosity, topology_of(level_.grid),
                                                static_cast<Record>(cells.begin), static_cast<Record>(cells.end), x});
      });
    });
  }

  Team& team_;
  const Level& level_;
  FlowPartial (*kernel_)(const FlowIntegralsArguments&);
  FlowData data_;
  std::vector<FlowPartial> shares_;  // of pieces
};

}  // namespace

std::unique_ptr<FlowMoments> make_cpu_flow_moments(Team& team, const Level& level) {
  return std::make_unique<CpuFlowMoments>(team, level);
}

std::unique_ptr<Integrator> make_cpu_integrator(Team& team, const Level& level) {
  if (level.equation.kind != EquationKind::stokes) return nullptr;
  return std::make_unique<CpuIntegrator>(team, level);
}

}  // namespace solenoid::cpu
