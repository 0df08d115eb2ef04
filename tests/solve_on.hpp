#pragma once
/// \file
/// The solve of the program on an engine of the test's choice, with the vectors that it leaves.

#include "engine/engine.hpp"
#include "solenoid/solver.hpp"
#include "solver/discretisation.hpp"
#include "solver/methods.hpp"

namespace solenoid::test {

struct Solved {
  Vector<double> b;
  Vector<double> x;
  Convergence convergence;
};

template <class T>
Solved solve_on(Engine& engine, Discretisation& discretisation, const SolverOptions& options) {
  Solved result{Vector<double>(engine, discretisation.room()), Vector<double>(engine, discretisation.room()), {}};
  auto& [b, x, convergence] = result;
  convergence.rtol = options.rtol;
  convergence.max_iterations = options.max_iterations;
  Solve<T> solve(engine, discretisation.hierarchy(), options);
  discretisation.load(engine, solve.outer(), x, b);
  solve.reserve();
  solve.run(b.data(), x.data(), true, convergence);
  solve.outer().project(x.data());
  solve.assess(x.data(), discretisation.lifted(), convergence);
  return result;
}

}  // namespace solenoid::test
