#include "solver/mass_matrix.hpp"

#include <cstdint>
#include <iterator>
#include <vector>

#include "mesh/record.hpp"

namespace solenoid {

MassMatrix::MassMatrix(Engine& engine, const Level& like, LocalSolverKind local)
    : level_(like.equation, {.viscosity = no_viscosity, .reaction = 1.0}, Grid(like.grid)),
      kernels_(make_kernels<double>(engine, level_, local)) {
  if (level_.equation.velocities() == 0) return;
  const int first = level_.equation.velocities() * power(level_.equation.n(), level_.equation.dim);
  std::vector<std::int64_t> places;
  for (const Record cell : level_.grid.layout().owned_cells()) {
    for (int i = first; i < level_.equation.record(); ++i) places.push_back(level_.index(cell, i));
  }
  velocity_ = Vector<double>(engine, level_.size());
  pressures_ = on_device(engine, places);
  zeros_ = Vector<double>(engine, pressures_.size());
}

void MassMatrix::apply(const double* x, double* y) {
  if (pressures_.size() == 0) return kernels_->apply(x, y);
  kernels_->copy(x, velocity_.data());
  clear_pressure(velocity_.data());
  kernels_->apply(velocity_.data(), y);
  clear_pressure(y);
}

void MassMatrix::clear_pressure(double* x) {
  kernels_->scatter(pressures_.size(), pressures_.data(), zeros_.data(), x);
}

}  // namespace solenoid
