#pragma once
/// \file
/// The mass matrix of the velocity, or of Poisson's u.

#include <memory>

#include "engine/engine.hpp"
#include "level/level.hpp"

namespace solenoid {

/// As the operator of a level with alpha = 1 and a viscosity that is lost in rounding: operators may divide by it.
class MassMatrix {
 public:
  /// On the grid of a level, whose vectors are those of this one.
  MassMatrix(Engine& engine, const Level& like, LocalSolverKind local);

  /// y = M x for velocities; nothing for pressures. x and y are different vectors.
  void apply(const double* x, double* y);

  /// x without its pressure.
  void clear_pressure(double* x);

 private:
  static constexpr double no_viscosity = 1e-60;

  Level level_;
  std::unique_ptr<Kernels<double>> kernels_;
  Vector<double> velocity_;  // x without its pressure
  // Of a flow: where the pressure's unknowns are, and as many zeros.
  Vector<std::int64_t> pressures_;
  Vector<double> zeros_;
};

}  // namespace solenoid
