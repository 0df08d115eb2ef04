#pragma once
/// \file
/// What a solve needs, for who keeps more than that.

#include "solenoid/solver.hpp"

namespace solenoid {

/// estimate() with so many more vectors of the finest level in double precision.
Estimate estimate(const Problem& problem, const SolverOptions& options, double more_vectors);

/// \throws ResourceError if that is more than there is.
void require_memory(const Estimate& need);

}  // namespace solenoid
