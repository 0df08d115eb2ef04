#pragma once
/// \file
/// The mass matrix of the velocity, or of Poisson's u.

#include <cstdint>
#include <memory>

#include "engine/engine.hpp"
#include "level/level.hpp"

namespace solenoid {

/// As the operator of a level with alpha = 1, where viscosity and pressure are lost in rounding: operators may divide
/// by their factors.
class MassMatrix {
 public:
  /// On the grid of a level, whose vectors are those of this one.
  MassMatrix(Engine& engine, const Level& like, LocalSolverKind local);

  /// y = M x for velocities; nothing, but for less than 1e-50 of the velocities, for pressures. x and y are different
  /// vectors.
  void apply(const double* x, double* y) { kernels_->apply(x, y); }

 private:
  static constexpr double nothing = 1e-60;

  Level level_;
  std::unique_ptr<Kernels<double>> kernels_;
};

/// The pressure in vectors of a level, to be moved often.
class PressurePart {
 public:
  PressurePart(Engine& engine, const Level& level);
  /// The pressure of y becomes that of x.
  void copy(Kernels<double>& kernels, const double* x, double* y);

 private:
  Vector<std::int64_t> places_;
  Vector<double> moved_;
};

/// x, a vector of the level, loses its pressure.
void clear_pressure(Engine& engine, Kernels<double>& kernels, const Level& level, double* x);

}  // namespace solenoid
