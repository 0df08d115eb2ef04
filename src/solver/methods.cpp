#include "solver/methods.hpp"

namespace solenoid {

std::unique_ptr<LinearSolver> make_solver(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options) {
  if (options.precision == Precision::mixed) return std::make_unique<Solve<float>>(engine, hierarchy, options);
  return std::make_unique<Solve<double>>(engine, hierarchy, options);
}

VectorNeeds solver_needs(const SolverOptions& options) {
  return options.precision == Precision::mixed ? Solve<float>::needs(options) : Solve<double>::needs(options);
}

}  // namespace solenoid
