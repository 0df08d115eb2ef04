#pragma once
/// \file
/// The coefficients of an equation on a level.

#include <memory>
#include <vector>

#include "level/viscosity_points.hpp"
#include "mesh/coarsening.hpp"
#include "mesh/grid.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// nu > 0 and alpha >= 0 of each cell of a level, [cell].
struct CellCoefficients {
  std::vector<double> viscosity;
  std::vector<double> reaction;
  /// On a finest level: nu inside of cells, where the operator of the problem has that (Kernels::take_points), or
  /// nullptr. `viscosity` has the means.
  std::shared_ptr<const ViscosityPoints> points{};

  bool operator==(const CellCoefficients& other) const;
};

/// nu and alpha in - div(nu grad u) + alpha u + grad p = f, or with the viscous term in its stress form
/// (Equation::form); in Poisson's equation in - div(nu grad u) + alpha u = f. They are two numbers, or numbers for each
/// cell of a level. Who has a level takes them from there (Level::coefficients).
struct Coefficients {
  double viscosity = 1.0;  ///< nu > 0
  double reaction = 0.0;   ///< alpha >= 0: Problem::mass
  double coupling = 1.0;   ///< factor > 0 of grad p and of div u; tiny: they are lost in rounding
  /// Where they vary: then the numbers above are 1, 0 and 1, those of local problems before they are scaled
  /// (level/patch_scale.hpp).
  std::shared_ptr<const CellCoefficients> by_cell{};
};

/// Whether they are the same numbers, wherever they are kept, on all ranks that share the grid: what follows from it is
/// collective, and one rank's cells may have changed alone. Collective where they are by cell.
bool are_same(const Coefficients& a, const Coefficients& b, const Grid& grid);
/// The largest alpha of the cells that ranks share. Collective where they are by cell.
double largest_reaction(const Coefficients& coefficients, const Grid& grid);

/// Of a problem whose coefficients are constant.
Coefficients coefficients_of(const Problem& problem);
/// Of a problem on its finest grid: the numbers that it has, or means over the cells by k + 2 Gauss points in each
/// direction, and the values there if the problem asks for them. \throws InvalidEntry where a viscosity is not
/// positive, or a reaction negative.
Coefficients coefficients_of(const Problem& problem, const Grid& grid);

/// Those of `fine` on the grid made from its own: of a coarse cell the arithmetic mean of its children's. Collective
/// where ranks share the fine grid; the coarse one is shared as that is, or whole.
Coefficients coarse_coefficients(const Coefficients& fine, const Grid& fine_grid, const Coarsening& pairs,
                                 const Grid& coarse);
/// Those of a grid that ranks share on the same grid that every rank has all of. Collective.
Coefficients whole_coefficients(const Coefficients& coefficients, const Grid& shared, const Grid& whole);

/// The same on Grid::copies.
Coefficients copied(const Coefficients& coefficients, int count);

}  // namespace solenoid
