#pragma once
/// \file
/// The operator on boundary velocities, which the vectors of a solve have no room for.

#include <cstdint>
#include <memory>

#include "engine/engine.hpp"
#include "level/level.hpp"
#include "solver/boundary_hats.hpp"
#include "solver/load.hpp"

namespace solenoid {

/// A u_g in the vectors of a grid, where u_g are velocities on its boundary: hats that only `all`, the same grid with
/// all boundary hats stored, has records for. With the coefficients that `all` has when this is made.
class LiftOperator {
 public:
  /// Both levels must outlive it, as must the engine.
  LiftOperator(Engine& engine, const Level& all, const Level& some, LocalSolverKind local);

  [[nodiscard]] bool is_of(const Engine& engine) const { return &engine == &engine_; }
  /// image = A u_g; `work` and `image` have room for vectors of both levels.
  void apply(const SparseVector& velocities, double* work, double* image);

 private:
  Engine& engine_;
  std::unique_ptr<Kernels<double>> kernels_;  // of `all`
  BoundaryHats hats_;
};

}  // namespace solenoid
