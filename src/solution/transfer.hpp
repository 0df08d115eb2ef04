#pragma once
/// \file
/// Solutions on other grids of their domain.

#include <string>
#include <vector>

#include "base/host_vector.hpp"
#include "mesh/grid.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {

/// The unknowns of a grid and an order, of the equation of `solution`, as a vector of the grid: copies where lattice
/// and order are those of the solution, otherwise its interpolation. In each direction the cells of one lattice must be
/// whole cells of the other, or cut into such. Normal velocities that the grid's boundary prescribes are zero.
///
/// Of a velocity hats have the same moments on faces against Q_k, bubbles the same moments of the derivative, so that
/// the divergence is projected: what has none has none afterwards. Scalars are projected in L2.
///
/// \throws InputError, which begins with `what`, if the domains differ or a coefficient is not finite.
HostVector unknowns_on(const Solution& solution, const Grid& grid, int order, const std::string& what);

/// All coefficients of a solution as a vector of a grid of the same lattice that may have the part of a rank, ghosts
/// included: what Solution::gathered() has brought together. Prescribed normal velocities are among them.
/// \throws InputError, which begins with `what`, if lattices or orders differ, or a coefficient is not finite.
HostVector coefficients_on(const Solution& solution, const Grid& grid, int order, const std::string& what);

}  // namespace solenoid
