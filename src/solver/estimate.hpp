#pragma once
/// \file
/// What a solve needs, for who keeps more than that.

#include "engine/engine.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {

/// Vectors of the finest level in double precision.
struct MoreVectors {
  double always = 0.0;
  double beside_krylov = 0.0;  ///< where Krylov methods take part in solving the coarsest level
};
/// estimate() with so many more, on an engine of the options' device.
Estimate estimate(const Problem& problem, const SolverOptions& options, const MoreVectors& more);
Estimate estimate(const Problem& problem, const SolverOptions& options, const MoreVectors& more, const Engine& engine);

/// \throws ResourceError if that is more than there is.
void require_memory(const Estimate& need);

}  // namespace solenoid
