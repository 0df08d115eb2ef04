#include "solver/mass_matrix.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "mesh/record.hpp"

namespace solenoid {
namespace {

std::vector<std::int64_t> pressures(const Level& level) {
  const int first = level.equation.velocities() * power(level.equation.n(), level.equation.dim);
  std::vector<std::int64_t> places;
  for (const Record cell : level.grid.layout().owned_cells()) {
    for (int i = first; i < level.equation.record(); ++i) places.push_back(level.index(cell, i));
  }
  return places;
}

/// The form of the viscous term does not matter where that is lost.
Equation in_gradient_form(Equation equation) {
  equation.form = ViscousForm::gradient;
  return equation;
}

}  // namespace

MassMatrix::MassMatrix(Engine& engine, const Level& like, LocalSolverKind local)
    : level_(in_gradient_form(like.equation), {.viscosity = nothing, .reaction = 1.0, .coupling = nothing},
             Grid(like.grid)),
      kernels_(make_kernels<double>(engine, level_, local)) {}

PressurePart::PressurePart(Engine& engine, const Level& level)
    : places_(on_device(engine, pressures(level))), moved_(engine, places_.size()) {}

void PressurePart::copy(Kernels<double>& kernels, const double* x, double* y) {
  kernels.gather(places_.size(), places_.data(), x, moved_.data());
  kernels.scatter(places_.size(), places_.data(), moved_.data(), y);
}

void clear_pressure(Engine& engine, Kernels<double>& kernels, const Level& level, double* x) {
  const std::vector<std::int64_t> all = pressures(level);
  // Part by part: memory is what steps take, and not a vector's quarter more for once.
  const auto most = static_cast<std::int64_t>(1) << 18;
  const std::int64_t count = std::ssize(all);
  Vector<std::int64_t> places(engine, std::min(most, count));
  const Vector<double> zeros(engine, places.size());
  for (std::int64_t first = 0; first < count; first += most) {
    const std::int64_t number = std::min(most, count - first);
    engine.upload(&all[first], places.data(), number * sizeof(std::int64_t));
    kernels.scatter(number, places.data(), zeros.data(), x);
  }
}

}  // namespace solenoid
