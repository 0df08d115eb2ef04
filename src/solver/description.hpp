#pragma once
/// \file
/// What a report says of who solves what, whatever the method.

#include "engine/engine.hpp"
#include "solenoid/solver.hpp"
#include "solver/discretisation.hpp"

namespace solenoid {

/// Sizes, device, ranks and memory so far. Of several ranks all call this.
void describe(const Engine& engine, const Discretisation& discretisation, const SolverOptions& options, Report& report);

}  // namespace solenoid
