#pragma once
/// \file
/// The continuous problem and its element:
///
///     alpha u - nu Laplace u + grad p = f,   div u = 0   in the domain,
///
/// with velocity, slip, outflow or periodic sides, discretised by RT_k x Q_k; nu and alpha may vary,
///
///     alpha u - div(2 nu eps(u)) + grad p = f,   div u = 0,   eps(u) = (grad u + grad u^T) / 2,
///
/// or with div(nu grad u) in the gradient form. Or
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

/// Other coefficients, or another force, where `inside` is not 0: in a part of the domain. Quadrature points lie inside
/// of cells, so that what jumps on faces is integrated exactly.
struct Region {
  ScalarField inside{1.0};
  std::optional<ScalarField> viscosity{};
  std::optional<ScalarField> mass{};
  std::optional<VectorField> force{};  ///< all components
};

struct Problem {
  Mesh mesh;
  int order = 2;  ///< k of RT_k x Q_k, or of Q_k
  /// With order 0 and Stokes' equation: the mass matrix of the velocities is diagonal, so that the element is the
  /// marker-and-cell scheme.
  bool lumped = false;
  double viscosity = 1.0;  ///< nu > 0
  double mass = 0.0;       ///< alpha >= 0
  /// nu and alpha that vary, in place of these numbers: each cell has the mean over its (k + 2)^dim Gauss points, or
  /// the viscosity is taken at these (`viscosity_points`).
  std::optional<ScalarField> varying_viscosity{};
  std::optional<ScalarField> varying_mass{};
  std::vector<Region> regions{};  ///< where two overlap, the later one holds
  /// Values of a viscosity that varies below or above these count as these.
  std::optional<std::array<double, 2>> viscosity_cap{};
  /// One that is smooth in cells, at Gauss points, leaves velocities their order k + 1; with means it is 2.
  ViscosityPlaces viscosity_points = ViscosityPlaces::cell;
  /// nullopt: the stress form where the viscosity varies, otherwise the gradient form.
  std::optional<ViscousForm> form{};
  VectorField force{};  ///< Poisson's f is its first component
  Boundary boundary{};
  EquationKind equation = EquationKind::stokes;
  bool convection = false;  ///< with div(u (x) u): of flows in time alone (time_stepper.hpp)
};

/// Whether a coefficient is not one number.
bool viscosity_varies(const Problem& problem);
bool mass_varies(const Problem& problem);
/// Viscosity, mass and force with those of the regions, as of the values that parameters have now.
ScalarField viscosity_field(const Problem& problem);
ScalarField mass_field(const Problem& problem);
VectorField force_field(const Problem& problem);
/// Another force everywhere, in regions too.
void set_force(Problem& problem, const VectorField& force);
/// The form of the viscous term that a problem has.
ViscousForm form_of(const Problem& problem);
/// Whether its operator is that of coefficients by cell, which holds for the stress form even if they are all the same.
bool has_coefficients_by_cell(const Problem& problem);

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
