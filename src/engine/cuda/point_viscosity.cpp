#include "engine/cuda/point_viscosity.hpp"

#include "engine/cuda/upper_hats.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

ViscosityTables make_tables(const Level& level) {
  const Equation& equation = level.equation;
  ViscosityTables tables{
      make_point_tables(equation.order, viscosity_points(equation.order)), equation.penalty(1.0), {}};
  for (int a = 0; a < equation.dim; ++a) tables.inverse_h[a] = 1.0 / level.grid.metric().uniform_width()[a];
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
