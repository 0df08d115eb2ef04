#pragma once
/// \file
/// Errors of scalar fields that are known up to a constant in some parts of the domain.

#include <span>

#include "base/statistics.hpp"
#include "mesh/grid.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// L2 norm of the error of the pressure, or of Poisson's u, from what it is in each part of the domain (Grid::part):
/// its mean counts where nothing leaves a constant free.
double error_norm(const Problem& problem, const Grid& grid, std::span<const Variance> of_parts);

}  // namespace solenoid
