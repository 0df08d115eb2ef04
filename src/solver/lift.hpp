#pragma once
/// \file
/// Normal boundary velocities, which are lifted: a function that has them is subtracted from the solution.

#include <cstdint>
#include <vector>

#include "base/host_vector.hpp"
#include "level/level.hpp"
#include "solver/load.hpp"

namespace solenoid {

/// The function that carries the prescribed normal velocities: hats on boundary faces, by L2 projection of g.n there.
/// `lift` is the level of a grid that stores all boundary hats.
/// \throws InputError if the domain has no outflow side and the net flux through the boundary is not zero.
SparseVector boundary_lift(const Problem& problem, const Level& lift);

// Two grids of one mesh may differ in the hat-only records that they store; their cells have the same places.

/// What moves hats from a grid that stores all boundary hats to one that does not.
struct HatMoves {
  std::vector<std::int64_t> fixed;  ///< places of hats that the second grid has no unknowns for, and of all that move
  std::vector<std::int64_t> from;
  std::vector<std::int64_t> to;
};
HatMoves moves_of_hats(const Level& from, const Level& to);

/// Moves the values of hat-only records from their places on one grid to those on another that stores all boundary
/// hats; all other values stay. Size: to.size().
void move_hats(const Level& from, const Level& to, HostVector& values);

}  // namespace solenoid
