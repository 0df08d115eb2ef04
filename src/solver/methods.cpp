#include "solver/methods.hpp"

namespace solenoid {

void zero_end(Engine& engine, const Level& level, double* y) {
  const std::int64_t begin = level.index(level.grid.layout().cells().last() / interleave * interleave, 0);
  engine.zero(y + begin, (level.size() - begin) * sizeof(double));
}

std::unique_ptr<LinearSolver> make_solver(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options) {
  if (options.precision == Precision::mixed) return std::make_unique<Solve<float>>(engine, hierarchy, options);
  return std::make_unique<Solve<double>>(engine, hierarchy, options);
}

VectorNeeds solver_needs(const SolverOptions& options) {
  return options.precision == Precision::mixed ? Solve<float>::needs(options) : Solve<double>::needs(options);
}

}  // namespace solenoid
