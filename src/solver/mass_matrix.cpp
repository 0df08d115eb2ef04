#include "solver/mass_matrix.hpp"

#include <cstdint>
#include <vector>

#include "mesh/record.hpp"

namespace solenoid {

MassMatrix::MassMatrix(Engine& engine, const Level& like, LocalSolverKind local)
    : level_(like.equation, {.viscosity = nothing, .reaction = 1.0, .coupling = nothing}, Grid(like.grid)),
      kernels_(make_kernels<double>(engine, level_, local)) {}

void clear_pressure(Engine& engine, Kernels<double>& kernels, const Level& level, double* x) {
  const int first = level.equation.velocities() * power(level.equation.n(), level.equation.dim);
  std::vector<std::int64_t> places;
  for (const Record cell : level.grid.layout().owned_cells()) {
    for (int i = first; i < level.equation.record(); ++i) places.push_back(level.index(cell, i));
  }
  kernels.scatter(std::ssize(places), on_device(engine, places).data(),
                  Vector<double>(engine, std::ssize(places)).data(), x);
}

}  // namespace solenoid
