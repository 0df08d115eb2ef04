#include "solver/methods.hpp"

#include "problem/affine_map.hpp"

namespace solenoid {

void zero_end(Engine& engine, const Level& level, double* y) {
  const std::int64_t begin = level.index(level.grid.layout().cells().last() / interleave * interleave, 0);
  engine.zero(y + begin, (level.size() - begin) * sizeof(double));
}

double sine_of(const Level& level) {
  const AffineMap* const map = level.grid.metric().map();
  return map == nullptr ? 1.0 : map->sine();
}

std::unique_ptr<LinearSolver> make_solver(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options) {
  if (options.precision == Precision::mixed) return std::make_unique<Solve<float>>(engine, hierarchy, options);
  return std::make_unique<Solve<double>>(engine, hierarchy, options);
}

VectorNeeds solver_needs(const SolverOptions& options, double sine) {
  return options.precision == Precision::mixed ? Solve<float>::needs(options, sine)
                                               : Solve<double>::needs(options, sine);
}

}  // namespace solenoid
