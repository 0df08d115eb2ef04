#pragma once
/// \file
/// Normal boundary velocities, which are lifted: a function that has them is subtracted from the solution.

#include <cstdint>
#include <vector>

#include "level/level.hpp"
#include "solver/load.hpp"

namespace solenoid {

/// The function that carries the prescribed normal velocities: hats on boundary faces, by L2 projection of g.n there.
/// `lift` is the level of a grid that stores all boundary hats.
/// \throws InputError if the domain has no outflow side and the net flux through the boundary is not zero.
SparseVector boundary_lift(const Problem& problem, const Level& lift);

// Two grids of one mesh may differ in the hat-only records that they store; their cells have the same places. `all`: of
// a grid that stores all boundary hats; `some`: of one that does not.

/// Places of the hats in hat-only records that both have: number i is the same unknown. None with Poisson's equation.
struct SharedHats {
  std::vector<std::int64_t> all;
  std::vector<std::int64_t> some;
};
SharedHats shared_hats(const Level& all, const Level& some);

/// Places on `all` of the hats of hat-only records, of ghosts too, and of those in cells that are no unknowns: what a
/// vector of the operator there has and a vector of `some` has not, or elsewhere.
std::vector<std::int64_t> boundary_hats(const Level& all);
/// Places of the hats of hat-only records, of ghosts too.
std::vector<std::int64_t> hat_only(const Level& level);

}  // namespace solenoid
