#include "engine/cpu/convection.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/host_vector.hpp"
#include "element/basis.hpp"
#include "engine/cpu/cell_shares.hpp"
#include "engine/cpu/kernels/convection_table.hpp"
#include "mesh/record.hpp"

namespace solenoid::cpu {
namespace {

ConvectionData make_data(const Level& level) {
  ConvectionData data{};
  const int order = level.equation.order;
  const Quadrature rule = gauss(convection_points(order));
  for (std::size_t q = 0; q < rule.points.size(); ++q) {
    const auto enter = [&](int p, const std::vector<double>& values, const std::vector<double>& slopes) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        data.value[p][q][i] = values[i];
        data.slope[p][q][i] = slopes[i];
        data.test_value[p][q][i] = rule.weights[q] * values[i];
        data.test_slope[p][q][i] = rule.weights[q] * slopes[i];
      }
    };
    const double x = rule.points[q];
    enter(0, legendre(order, x), legendre(order, x, 1));
    enter(1, continuous(order, x), continuous(order, x, 1));
  }
  const auto end = legendre(order, 1.0);
  std::copy(end.begin(), end.end(), data.end);
  const Point h = level.grid.metric().uniform_width();
  double volume = 1.0;
  for (int a = 0; a < level.equation.dim; ++a) volume *= h[a];
  for (int a = 0; a < level.equation.dim; ++a) data.scale[a] = 1.0 / (h[a] * std::sqrt(volume));
  return data;
}

class CpuConvection final : public Convection {
 public:
  CpuConvection(Team& team, const Level& level, ConvectiveFlux flux)
      : team_(team),
        level_(level),
        kernel_(convection_kernel(level.equation.dim, level.equation.order)),
        data_(make_data(level)),
        upwind_(flux == ConvectiveFlux::upwind ? 1.0 : 0.0),
        hats_(level.equation.dim * power(level.equation.n(), level.equation.dim - 1)),
        upper_(zeros(whole_blocks(near_cells().size()) * hats_)),
        rates_(team.size()) {}

  double apply(const double* u, double* y) override {
    team_.run([&](int t) { rates_[t] = cells(t, u, y); });
    team_.run([&](int t) { add_upper_hats(t, y); });
    return *std::max_element(rates_.begin(), rates_.end());
  }

 private:
  [[nodiscard]] RecordRange near_cells() const { return level_.grid.layout().near_cells(); }

  double cells(int t, const double* u, double* y) {
    double rate = 0.0;
    Team::in_pieces(team_.range(near_cells().size(), t, interleave), 64 * interleave, [&](Team::Range piece) {
      ConvectionArguments arguments{&data_,
                                    topology_of(level_.grid),
                                    static_cast<Record>(piece.begin),
                                    static_cast<Record>(piece.end),
                                    upwind_,
                                    u,
                                    y,
                                    upper_.data(),
                                    0.0};
      kernel_(arguments);
      rate = std::max(rate, arguments.rate);
    });
    return rate;
  }

  /// Each hat gets what the cell below it has of it. Hat-only records have nothing else.
  void add_upper_hats(int t, double* y) {
    const Grid& grid = level_.grid;
    const VectorLayout& layout = grid.layout();
    const int block = power(level_.equation.n(), level_.equation.dim);
    const int columns = hats_ / level_.equation.dim;
    const auto range = team_.range(layout.records().size(), t);
    for (auto r = static_cast<Record>(range.begin); r < range.end; ++r) {
      if (layout.is_cell(r) && !near_cells().contains(r)) continue;
      double* const record = y + level_.index(r, 0);
      if (layout.is_hat(r)) {
        for (int i = 0; i < level_.equation.record(); ++i) record[i * interleave] = 0.0;
      }
      for (int c = 0; c < level_.equation.dim; ++c) {
        if (layout.is_hat(r) && grid.hat_direction(r) != c) continue;
        double* const hats = record + interleave * c * block;
        if (normal_fixed(layout.is_hat(r) ? grid.hat_face(r) : grid.face(r, 2 * c))) {
          for (int i = 0; i < columns; ++i) hats[i * interleave] = 0.0;
          continue;
        }
        const Record below = grid.neighbour(r, 2 * c);
        if (!near_cells().contains(below)) continue;
        const double* const share = upper_.data() + record_offset(below, hats_) + interleave * c * columns;
        for (int i = 0; i < columns; ++i) hats[i * interleave] += share[i * interleave];
      }
    }
  }

  Team& team_;
  const Level& level_;
  ConvectionKernel kernel_;
  ConvectionData data_;
  double upwind_;
  int hats_;  // of the upper faces of a cell
  HostVector upper_;
  std::vector<double> rates_;  // [thread]
};

}  // namespace

std::unique_ptr<Convection> make_cpu_convection(Team& team, const Level& level, ConvectiveFlux flux) {
  return std::make_unique<CpuConvection>(team, level, flux);
}

}  // namespace solenoid::cpu
