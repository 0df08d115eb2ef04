#include "level/level.hpp"

#include <fmt/format.h>

#include "solenoid/error.hpp"

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

Constants constants_of(const Equation& equation, const Coefficients& coefficients, const Grid& grid) {
  Constants constants;
  constants.pressure = equation.kind == EquationKind::stokes
                           ? !grid.has_face(Face::outflow)
                           : coefficients.reaction == 0.0 && !grid.has_face(Face::velocity);
  for (int c = 0; c < equation.velocities(); ++c) {
    constants.velocity[c] = coefficients.reaction == 0.0 && free_constant(grid, c);
  }
  return constants;
}

}  // namespace

Level::Level(const Equation& equation_, const Coefficients& coefficients_, Grid grid_, const PatchRules& rules)
    : Level(equation_, coefficients_, std::move(grid_)) {
  patches = Patches(grid, rules);
}

Level::Level(const Equation& equation_, const Coefficients& coefficients_, Grid grid_)
    : equation(equation_),
      coefficients(coefficients_),
      grid(std::move(grid_)),
      constants(constants_of(equation, coefficients, grid)) {}

void Level::set_coefficients(const Coefficients& others) {
  if (constants_of(equation, others, grid) != constants) {
    throw InputError(fmt::format(
        "the reaction cannot change from {} to {}: no side of this domain holds constants, so that they are solved "
        "for with a reaction and left out without; set up a new solver",
        coefficients.reaction, others.reaction));
  }
  coefficients = others;
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
