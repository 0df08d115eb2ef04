#pragma once
/// \file
/// Numbers that say what a flow is like as a whole, and how far it is from a known one.

#include <optional>
#include <string>

#include "solenoid/mesh.hpp"

namespace solenoid {

/// Of a velocity u over the domain, by k + 2 Gauss points per direction: integrals are those of the discrete velocity,
/// maxima those over the points. Derivatives are taken in cells.
struct FlowIntegrals {
  Point velocity{};               ///< integral of u
  double velocity_square = 0.0;   ///< integral of |u|^2: twice the kinetic energy
  double gradient_square = 0.0;   ///< integral of |grad u|^2; times nu the dissipation
  double vorticity_square = 0.0;  ///< integral of |curl u|^2: twice the enstrophy
  double max_speed = 0.0;         ///< max |u|
  double max_divergence = 0.0;    ///< max |div u|
};

/// What people follow of a flow, as the functions of Solution of these names have it.
struct FlowSummary {
  double kinetic_energy = 0.0;
  double dissipation = 0.0;
  double enstrophy = 0.0;
  double divergence_max = 0.0;
};

/// L2 norms of errors, as Solution::velocity_error() and so on have them: of the fields that are known.
struct Errors {
  std::optional<double> velocity;
  std::optional<double> pressure;
  std::optional<double> value;  ///< of Poisson's u
  std::string not_measured;     ///< why none could be: a known field is not finite somewhere
};

}  // namespace solenoid
