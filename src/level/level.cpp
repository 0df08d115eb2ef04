#include "level/level.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "level/schur_inverses.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

/// [part]: whether there is a reaction in some cell.
std::vector<bool> parts_with_reaction(const Coefficients& coefficients, const Grid& grid) {
  if (coefficients.by_cell == nullptr) {
    return std::vector<bool>(static_cast<std::size_t>(grid.parts()), coefficients.reaction != 0.0);
  }
  std::vector<std::int64_t> cells(grid.parts(), 0);
  for (const Record cell : grid.layout().owned_cells()) {
    if (coefficients.by_cell->reaction[cell] != 0.0) ++cells[grid.part(cell)];
  }
  grid.add_up<std::int64_t>(cells);
  std::vector<bool> has(cells.size());
  std::transform(cells.begin(), cells.end(), has.begin(), [](std::int64_t count) { return count > 0; });
  return has;
}

/// True if the operator maps a field that is constant on a part of the domain, and zero elsewhere, to zero.
bool is_free(const Equation& equation, bool reaction, const Grid& grid, int part, int field) {
  const bool scalar = field == equation.velocities();
  if (scalar && equation.kind == EquationKind::stokes) return !grid.has_face(part, Face::outflow);
  if (reaction || grid.has_face(part, Face::velocity)) return false;
  // Slip sides fix what is normal to them.
  return scalar || (!grid.has_face(part, 2 * field, Face::slip) && !grid.has_face(part, 2 * field + 1, Face::slip));
}

/// Level::has_free_rotation with other coefficients.
bool rotation_is_free(const Equation& equation, const Coefficients& coefficients, const Grid& grid) {
  if (equation.form != ViscousForm::stress) return false;
  const auto may_turn = [&](int part, int a) {
    return !grid.periodic()[a] && !grid.has_face(part, 2 * a, Face::slip) &&
           !grid.has_face(part, 2 * a + 1, Face::slip);
  };
  const std::vector<bool> reaction = parts_with_reaction(coefficients, grid);
  for (int part = 0; part < grid.parts(); ++part) {
    if (grid.has_face(part, Face::velocity) || reaction[part]) continue;
    int directions = 0;
    for (int a = 0; a < equation.dim; ++a) directions += may_turn(part, a) ? 1 : 0;
    if (directions >= 2) return true;
  }
  return false;
}

/// The constants of all parts, without their records.
std::vector<Constant> constants_of(const Equation& equation, const Coefficients& coefficients, const Grid& grid) {
  const std::vector<bool> reaction = parts_with_reaction(coefficients, grid);
  std::vector<Constant> constants;
  for (int part = 0; part < grid.parts(); ++part) {
    for (int field = 0; field <= equation.velocities(); ++field) {
      if (is_free(equation, reaction[part], grid, part, field)) constants.push_back({part, field, {}});
    }
  }
  return constants;
}

/// How many records have a constant on all ranks.
void count_carriers(const Equation& equation, const Grid& grid, std::vector<Constant>& constants) {
  const VectorLayout& layout = grid.layout();
  std::vector<std::int64_t> counts;
  for (const auto& [part, field, records, carriers] : constants) {
    if (grid.parts() > 1) {
      counts.push_back(std::count_if(records.begin(), records.end(), [&](Record r) { return layout.is_owned(r); }));
      continue;
    }
    std::int64_t count = layout.owned_cells().size();
    for (const Record hat : layout.owned_hats()) {
      count += field < equation.velocities() && grid.hat_direction(hat) == field ? 1 : 0;
    }
    counts.push_back(count);
  }
  grid.add_up<std::int64_t>(counts);
  for (std::size_t i = 0; i < constants.size(); ++i) constants[i].carriers = counts[i];
}

/// Where there are several parts: the cells of a constant's part and, of a velocity, hat-only records.
void find_records(const Equation& equation, const Grid& grid, std::vector<Constant>& constants) {
  if (grid.parts() == 1) return;
  const int fields = equation.velocities() + 1;
  std::vector<Constant*> at(static_cast<std::size_t>(grid.parts()) * fields, nullptr);
  for (Constant& constant : constants) at[constant.part * fields + constant.field] = &constant;
  const auto add = [&](Record record, int part, int field) {
    Constant* const constant = at[part * fields + field];
    if (constant != nullptr) constant->records.push_back(record);
  };
  for (const Record cell : grid.layout().cells()) {
    for (int field = 0; field < fields; ++field) add(cell, grid.part(cell), field);
  }
  if (equation.velocities() == 0) return;
  for (const Record hat : grid.layout().hats()) {
    const int direction = grid.hat_direction(hat);
    add(hat, grid.part(grid.neighbour(hat, 2 * direction)), direction);
  }
}

}  // namespace

Level::Level(const Equation& equation_, const Coefficients& coefficients_, Grid grid_, const PatchRules& rules)
    : Level(equation_, coefficients_, std::move(grid_)) {
  if (const AffineMap* const map = grid.metric().map(); map != nullptr) {
    equation.weights = patch_weights(equation, *map, grid.metric().uniform_width(), has_coefficients_by_cell());
  }
  patches = Patches(grid, rules);
  small_patches = SmallPatches(grid, patches);
}

Level::Level(const Equation& equation_, const Coefficients& coefficients_, Grid grid_)
    : equation(equation_),
      coefficients(coefficients_),
      grid(std::move(grid_)),
      constants(constants_of(equation, coefficients, grid)),
      schur_inverses(std::make_shared<SchurInverses>()) {
  if (equation.form == ViscousForm::stress && coefficients.by_cell == nullptr) {
    throw std::logic_error("the stress form goes with coefficients by cell");
  }
  if (is_sheared() && (equation.kind != EquationKind::stokes || equation.order == 0)) {
    throw std::logic_error("cells that are parallelepipeds go with Stokes' equation, order 1 or higher");
  }
  find_records(equation, grid, constants);
  count_carriers(equation, grid, constants);
}

bool Level::has_free_rotation() const { return rotation_is_free(equation, coefficients, grid); }

void Level::require_constant_coefficients() const {
  if (has_coefficients_by_cell()) throw std::logic_error("coefficients by cell reached who knows constant ones alone");
}

void Level::require_boxes() const {
  if (is_sheared()) throw std::logic_error("cells that are parallelepipeds reached who knows boxes alone");
}

bool Level::has_constant(int field) const {
  return std::any_of(constants.begin(), constants.end(), [&](const Constant& c) { return c.field == field; });
}

void Level::set_coefficients(const Coefficients& others) {
  if ((others.by_cell == nullptr) != (coefficients.by_cell == nullptr)) {
    throw InputError(
        "coefficients that vary by cell cannot become constant ones, nor the other way round: set up a new solver");
  }
  if (has_coefficients_by_cell() && (others.by_cell->points == nullptr) != (coefficients.by_cell->points == nullptr)) {
    throw InputError("a viscosity of cells cannot become one at points, nor the other way round: set up a new solver");
  }
  const auto of_others = constants_of(equation, others, grid);
  const auto same = [](const Constant& a, const Constant& b) { return a.part == b.part && a.field == b.field; };
  if (!std::equal(of_others.begin(), of_others.end(), constants.begin(), constants.end(), same)) {
    throw InputError(fmt::format(
        "the reaction cannot {}: no side of the domain, or of a part of it, holds constants, so that "
        "they are solved for with a reaction and left out without; set up a new solver",
        others.by_cell != nullptr ? "come or go"
                                  : fmt::format("change from {} to {}", coefficients.reaction, others.reaction)));
  }
  if (rotation_is_free(equation, others, grid) && !has_free_rotation()) {
    throw InputError(
        "the reaction cannot go: in the stress form nothing else holds rotations of the domain, or of a part of it");
  }
  coefficients = others;
}

std::int64_t Level::dofs() const {
  const int face_unknowns = power(equation.n(), equation.dim - 1);
  std::int64_t count = grid.cell_count() * equation.record();
  for (int a = 0; a < equation.velocities(); ++a) {
    const std::int64_t fixed = grid.count_faces(2 * a, Face::velocity) + grid.count_faces(2 * a, Face::slip);
    count += face_unknowns * (grid.count_faces(2 * a + 1, Face::outflow) - fixed);
  }
  return count;
}

}  // namespace solenoid
