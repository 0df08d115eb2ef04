#pragma once
/// \file
/// Vectors of a grid and of the same grid with all boundary hats stored, in each other's place.

#include <cstdint>

#include "engine/engine.hpp"
#include "level/level.hpp"
#include "solver/lift.hpp"

namespace solenoid {

/// Moves hats in vectors that have room for both grids: `all` stores all boundary hats, `some` those that are unknowns.
class BoundaryHats {
 public:
  /// All ranks that share the levels call this.
  BoundaryHats(Engine& engine, const Level& all, const Level& some);

  /// x, a vector of `all`, becomes one of `some`: without the hats that are no unknowns.
  void to_some(Kernels<double>& kernels, double* x);
  /// x, a vector of `some`, becomes one of `all`, whose other hats are zero.
  void to_all(Kernels<double>& kernels, double* x);

 private:
  // Places of hats on upper sides where they are unknowns, in vectors of either level,
  Vector<std::int64_t> shared_in_all_;
  Vector<std::int64_t> shared_in_some_;
  // and of those that are to be cleared, as the other level has something else there:
  Vector<std::int64_t> boundary_;  // in vectors of `all`
  Vector<std::int64_t> hat_only_;  // of `some`
  Vector<double> zeros_;
  Vector<double> moved_;
  bool are_same_ = false;  // both grids, of all ranks: there is no boundary
};

}  // namespace solenoid
