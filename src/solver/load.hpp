#pragma once
/// \file
/// The right-hand side: force, boundary data and traction by quadrature, and the lifting of normal boundary velocities.

#include <cstdint>
#include <vector>

#include "base/host_vector.hpp"
#include "level/level.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// (f, v) + sum over velocity faces nu (2 gamma g v - g dv/dn) for tangential v + sum over outflow faces (traction, v),
/// for every basis function v of the level's grid, k + 2 Gauss points per direction. Poisson's u is tangential to all
/// faces. Size: level.size().
/// \throws InputError where an expression is not finite.
HostVector assemble_load(const Problem& problem, const Level& level);

/// Numbers at some places of a vector, each place once; the vector is zero elsewhere.
struct SparseVector {
  std::vector<std::int64_t> places;
  std::vector<double> values;

  void add(std::int64_t place, double value) {
    places.push_back(place);
    values.push_back(value);
  }
};

/// What assemble_load has of the boundary data: not zero near the boundary alone.
SparseVector assemble_boundary_load(const Problem& problem, const Level& level);

/// The function that carries the prescribed normal velocities: hats on boundary faces, by L2 projection of g.n there.
/// `lift` is the level of a grid that stores all boundary hats.
/// \throws InputError if the domain has no outflow side and the net flux through the boundary is not zero.
SparseVector boundary_lift(const Problem& problem, const Level& lift);

/// True if some side or hole has a velocity, or with Poisson's equation a value, that is not the constant zero.
bool has_boundary_values(const Problem& problem);
/// The same, or an outflow side or hole that has traction.
bool has_boundary_data(const Problem& problem);
/// True if some boundary velocity is not the constant zero: it has to be lifted. Poisson's boundary values have not.
bool has_boundary_velocity(const Problem& problem);

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

/// A reproducible random right-hand side: uniform in [-1, 1] on every unknown.
HostVector random_vector(const Level& level, std::uint64_t seed);

}  // namespace solenoid
