#include "level/level.hpp"

namespace solenoid {
namespace {

/// The constant velocity of component c is in the kernel of A if no face fixes it and no face penalises it.
bool free_constant(const Grid& grid, int c) {
  for (int side = 0; side < 2 * grid.dim(); ++side) {
    if (grid.count_faces(side, Face::velocity) > 0) return false;
    if (side / 2 == c && grid.count_faces(side, Face::slip) > 0) return false;
  }
  return true;
}

}  // namespace

Level::Level(const Equation& equation_, const Coefficients& coefficients_, Grid grid_, const PatchRules& rules)
    : Level(equation_, coefficients_, std::move(grid_)) {
  patches = Patches(grid, rules);
}

Level::Level(const Equation& equation_, const Coefficients& coefficients_, Grid grid_)
    : equation(equation_), coefficients(coefficients_), grid(std::move(grid_)) {
  constants.pressure = equation.kind == EquationKind::stokes
                           ? !grid.has_face(Face::outflow)
                           : coefficients.reaction == 0.0 && !grid.has_face(Face::velocity);
  for (int c = 0; c < equation.velocities(); ++c) {
    constants.velocity[c] = coefficients.reaction == 0.0 && free_constant(grid, c);
  }
}

std::int64_t Level::dofs() const {
  const int face_unknowns = power(equation.n(), equation.dim - 1);
  std::int64_t count = std::int64_t{grid.layout().owned_cells().size()} * equation.record();
  for (int a = 0; a < equation.velocities(); ++a) {
    const std::int64_t fixed = grid.count_faces(2 * a, Face::velocity) + grid.count_faces(2 * a, Face::slip);
    count += face_unknowns * (grid.count_faces(2 * a + 1, Face::outflow) - fixed);
  }
  return count;
}

}  // namespace solenoid
