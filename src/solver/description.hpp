#pragma once
/// \file
/// What a report says of who solves what, whatever the method.

#include "engine/engine.hpp"
#include "solenoid/solver.hpp"
#include "solver/discretisation.hpp"

namespace solenoid {

/// The most that was allocated at a time, with what the host has of the levels where it solves.
std::int64_t peak_memory(const Engine& engine, const Discretisation& discretisation);

/// Sizes, device, ranks and memory so far. Of several ranks all call this.
void describe(const Engine& engine, const Discretisation& discretisation, const SolverOptions& options, Report& report);

}  // namespace solenoid
