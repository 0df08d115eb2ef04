#pragma once
/// \file
/// The continuous problem and its element:
///
///     alpha u - nu Laplace u + grad p = f,   div u = 0   in the domain,
///
/// with velocity, slip, outflow or periodic sides, discretised by RT_k x Q_k, or
///
///     alpha u - nu Laplace u = f
///
/// for a scalar u with prescribed or periodic values, discretised by discontinuous Q_k (symmetric interior penalty).

#include <array>
#include <optional>
#include <vector>

#include "solenoid/choices.hpp"
#include "solenoid/error.hpp"
#include "solenoid/field.hpp"
#include "solenoid/mesh.hpp"

namespace solenoid {

/// Boundary condition on one side of the bounding box or on all holes.
struct Side {
  SideKind kind = SideKind::velocity;
  VectorField data{};  ///< g for `velocity`, the traction for `outflow`
};

/// Another condition on some faces of a side of the bounding box: those where `where` is not 0. It must be so on whole
/// faces of the finest cells, and, if the kind is not that of the rest of the side, on whole faces of coarse boxes.
struct SideRegion {
  int side = 0;  ///< of Boundary::sides
  ScalarField where{1.0};
  Side condition{};
};

/// Another condition on the sides of one hole.
struct HoleSide {
  int hole = 0;  ///< of Mesh::holes
  Side condition{};
};

/// Sides in the order xmin, xmax, ymin, ymax, zmin, zmax; side 2a + 1 is the upper side of direction a.
struct Boundary {
  std::array<Side, 6> sides{};
  Side holes{};                       ///< of all holes but those in `single_holes`
  std::vector<SideRegion> regions{};  ///< where two overlap, the later one holds
  std::vector<HoleSide> single_holes{};
};

/// A known solution, to measure errors against.
struct Exact {
  std::optional<VectorField> velocity;
  std::optional<ScalarField> pressure;
  std::optional<ScalarField> value;  ///< of Poisson's u
};

struct Problem {
  Mesh mesh;
  int order = 2;  ///< k of RT_k x Q_k, or of Q_k
  /// With order 0 and Stokes' equation: the mass matrix of the velocities is diagonal, so that the element is the
  /// marker-and-cell scheme.
  bool lumped = false;
  double viscosity = 1.0;  ///< nu > 0
  double mass = 0.0;       ///< alpha >= 0
  VectorField force{};     ///< Poisson's f is its first component
  Boundary boundary{};
  EquationKind equation = EquationKind::stokes;
  bool convection = false;  ///< with div(u (x) u): of flows in time alone (time_stepper.hpp)
};

/// The parameters that expressions of a problem depend on, with the values that they have. With other values a problem
/// has other data; `where` of a SideRegion may say something else, too. \throws InputError for a name that no
/// expression depends on, and as ScalarField::at.
Parameters parameters_of(const Problem& problem);
Problem with_parameters(Problem problem, const Parameters& values);

/// The orders k that this build has in 2D or 3D, ascending.
std::vector<int> available_orders(int dim, EquationKind equation = EquationKind::stokes);

/// \throws InputError if mesh, order, coefficients or boundary kinds are not valid together
/// (empty domain, one periodic side alone, order outside this build, ...).
void validate(const Problem& problem);

}  // namespace solenoid
