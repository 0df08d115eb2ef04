#pragma once
/// \file
/// The coefficients of an equation on a level.

namespace solenoid {

/// nu and alpha in - div(nu grad u) + alpha u + grad p = f on the cells of a level; in Poisson's equation in
/// - div(nu grad u) + alpha u = f. Constant so far; who has a level takes them from there (Level::coefficients), so
/// that they may become a number for each cell.
struct Coefficients {
  double viscosity = 1.0;  ///< nu > 0
  double reaction = 0.0;   ///< alpha >= 0: Problem::mass
  double coupling = 1.0;   ///< factor > 0 of grad p and of div u; tiny: they are lost in rounding

  bool operator==(const Coefficients&) const = default;
};

}  // namespace solenoid
