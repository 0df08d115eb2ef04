#pragma once
/// \file
/// Problems on the unit square and cube with a known smooth solution, no-slip on all sides.
///
/// The velocity is made of first derivatives of psi(x) = prod_a phi(x_a), the pressure is a product too:
///
///     u_c = sum_a C_ca dpsi/dx_a,   C antisymmetric (so that div u = 0),   p = prod_a cos(m pi x_a),
///
/// with phi = phi' = 0 at 0 and 1.

#include "solenoid/problem.hpp"

namespace solenoid {

enum class ManufacturedKind {
  /// "Multigrid methods for the Stokes problem on GPU systems":
  /// phi(x) = x^2 (1-x)^2 exp(-(x - mu)^2 / (2 sigma^2)) / sqrt(2 pi sigma^2), mu = 0.65, sigma^2 = 1/3, m = 2;
  /// u = (psi_y, -psi_x) in 2D, (psi_y + psi_z, -psi_x - psi_z, psi_y - psi_x) in 3D.
  gaussian,
  /// deal.II's step-104: phi(x) = sin^2(pi x), m = 1; u = (psi_y, -psi_x), (psi_y - psi_z, psi_z - psi_x, psi_x -
  /// psi_y).
  trigonometric,
};

/// Velocity, pressure and the force f = -nu Laplace u + grad p that belongs to them, as expressions.
struct Manufactured {
  VectorField velocity;
  ScalarField pressure;
  VectorField force;

  Manufactured(ManufacturedKind kind, int dim, double viscosity = 1.0);

  [[nodiscard]] Exact exact() const { return {velocity, pressure, {}}; }
};

/// Poisson's equation for the pressure of ManufacturedKind::trigonometric, prescribed on all sides, on 2^refine cells
/// per direction.
Problem manufactured_poisson(int dim, int order, int refine);

/// The problem with the solution Manufactured(kind, dim, 1) on 2^refine cells per direction.
Problem manufactured_problem(ManufacturedKind kind, int dim, int order, int refine);

}  // namespace solenoid
