#pragma once
/// \file
/// What solves begin with.

#include <functional>
#include <memory>

#include "engine/engine.hpp"
#include "solenoid/solver.hpp"
#include "solver/discretisation.hpp"

namespace solenoid {

/// An engine, and a problem's levels.
struct Prepared {
  std::unique_ptr<Engine> engine;
  Discretisation discretisation;
};

/// Of a valid problem. `need`: of the engine's memory. A GPU is ready after a quarter of a second, which levels of 10^8
/// unknowns take as well: they are made meanwhile, unless they need a good part of the host's memory, so that a problem
/// that is far too large for the GPU is refused before. \throws ResourceError if there is no such device or not enough
/// memory, and as Discretisation.
Prepared prepare(const Problem& problem, const SolverOptions& options,
                 const std::function<Estimate(const Engine&)>& need);

}  // namespace solenoid
