#include "engine/cuda/point_viscosity.hpp"

#include <vector>

#include "engine/cuda/upper_hats.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

auto kernel_of(const Level& level) {
  const Equation& equation = level.equation;
  const KernelTable<double>& kernels = kernel_table<double>(equation.kind, equation.dim, equation.order);
  return level.is_sheared() ? kernels.add_sheared_point_viscosity : kernels.add_point_viscosity;
}

}  // namespace

PointViscosityTerm::PointViscosityTerm(Shared& shared, const Level& level)
    : shared_(shared),
      level_(level),
      device_(shared.level(level)),
      kernel_(kernel_of(level)),
      tables_(make_viscosity_tables(level)),
      cells_(level.grid.layout().near_cells().size()),
      upper_(shared.engine,
             whole_blocks(cells_) * level.equation.dim * power(level.equation.n(), level.equation.dim - 1)) {}

std::shared_ptr<const DevicePointWeights> PointViscosityTerm::weights(
    const std::shared_ptr<const DevicePointWeights>& now) const {
  return weights_of(level_, now, [&](const Unset<float>& weights) { return Array<float>(shared_.engine, weights); });
}

void PointViscosityTerm::add(const DevicePointWeights& weights, double sign, const double* x, double* y) {
  const Equation& equation = level_.equation;
  kernel_({&tables_, device_->topology(), cells_, equation.form == ViscousForm::stress, weights.weights.data(), sign, x,
           y, upper_.data()},
          shared_.stream);
  add_upper_hats({device_->topology(), equation.dim, equation.order, cells_, upper_.data(), y}, shared_.stream);
}

}  // namespace solenoid::cuda
