#include "level/level.hpp"

namespace solenoid {
namespace {

/// The constant velocity of component c is in the kernel of A if no face fixes it and no face penalises it.
bool free_constant(const Grid& grid, int c) {
  for (Grid::Record cell = 0; cell < grid.cells(); ++cell) {
    for (int side = 0; side < 2 * grid.dim(); ++side) {
      const Face face = grid.face(cell, side);
      if (side / 2 == c ? normal_fixed(face) : face == Face::velocity) return false;
    }
  }
  return true;
}

}  // namespace

Level::Level(const Equation& equation_, Grid grid_, const PatchRules& rules) : Level(equation_, std::move(grid_)) {
  patches = Patches(grid, rules);
}

Level::Level(const Equation& equation_, Grid grid_) : equation(equation_), grid(std::move(grid_)) {
  constants.pressure = !grid.has_face(Face::outflow);
  for (int c = 0; c < equation.dim; ++c) {
    constants.velocity[c] = equation.mass == 0.0 && free_constant(grid, c);
  }
}

std::int64_t Level::dofs() const {
  const int face_unknowns = power(equation.n(), equation.dim - 1);
  std::int64_t count = static_cast<std::int64_t>(grid.cells()) * equation.record();
  for (Grid::Record cell = 0; cell < grid.cells(); ++cell) {
    for (int a = 0; a < equation.dim; ++a) {
      if (normal_fixed(grid.face(cell, 2 * a))) count -= face_unknowns;
      if (grid.face(cell, 2 * a + 1) == Face::outflow) count += face_unknowns;
    }
  }
  return count;
}

}  // namespace solenoid
