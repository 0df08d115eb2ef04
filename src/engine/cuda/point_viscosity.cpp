#include "engine/cuda/point_viscosity.hpp"

#include <algorithm>
#include <vector>

#include "element/basis.hpp"
#include "engine/cuda/upper_hats.hpp"
#include "engine/point_weights.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

ViscosityTables make_tables(const Level& level) {
  ViscosityTables tables{};
  const int order = level.equation.order;
  const auto copy = [](const std::vector<double>& from, double* to) { std::copy(from.begin(), from.end(), to); };
  const Quadrature rule = gauss(viscosity_points(order));
  copy(rule.weights, tables.weight);
  for (std::size_t q = 0; q < rule.points.size(); ++q) {
    copy(legendre(order, rule.points[q]), tables.value[0][q]);
    copy(legendre(order, rule.points[q], 1), tables.slope[0][q]);
    copy(continuous(order, rule.points[q]), tables.value[1][q]);
    copy(continuous(order, rule.points[q], 1), tables.slope[1][q]);
  }
  copy(legendre(order, 1.0), tables.end);
  copy(legendre(order, 1.0, 1), tables.end_slope);
  tables.penalty = level.equation.penalty(1.0);
  for (int a = 0; a < level.equation.dim; ++a) tables.inverse_h[a] = 1.0 / level.grid.metric().uniform_width()[a];
  return tables;
}

}  // namespace

PointViscosityTerm::PointViscosityTerm(Shared& shared, const Level& level)
    : shared_(shared),
      level_(level),
      device_(shared.level(level)),
      kernel_(kernel_table<double>(level.equation.kind, level.equation.dim, level.equation.order).add_point_viscosity),
      tables_(make_tables(level)),
      cells_(level.grid.layout().near_cells().size()),
      upper_(shared.engine,
             whole_blocks(cells_) * level.equation.dim * power(level.equation.n(), level.equation.dim - 1)) {}

std::shared_ptr<const DevicePointWeights> PointViscosityTerm::weights(
    const std::shared_ptr<const DevicePointWeights>& now) const {
  const auto& points = level_.coefficients.by_cell->points;
  if (now != nullptr && now->points == points) return now;
  return std::make_shared<const DevicePointWeights>(
      DevicePointWeights{points, Array<float>(shared_.engine, point_weights(level_))});
}

void PointViscosityTerm::add(const DevicePointWeights& weights, double sign, const double* x, double* y) {
  const Equation& equation = level_.equation;
  kernel_({&tables_, device_->topology(), cells_, equation.form == ViscousForm::stress, weights.weights.data(), sign, x,
           y, upper_.data()},
          shared_.stream);
  add_upper_hats({device_->topology(), equation.dim, equation.order, cells_, upper_.data(), y, false}, shared_.stream);
}

}  // namespace solenoid::cuda
