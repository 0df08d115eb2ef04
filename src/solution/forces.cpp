#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "element/convection_points.hpp"
#include "level/level.hpp"
#include "mesh/grid.hpp"
#include "problem/names.hpp"
#include "problem/parts.hpp"
#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solution.hpp"
#include "solution/body_forces.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/cell_rule.hpp"
#include "solution/cells_of.hpp"
#include "solution/field_evaluator.hpp"
#include "solution/joined.hpp"
#include "solution/viscosity_of_forces.hpp"

namespace solenoid {

namespace {

constexpr int sides_of_box = 6;

// u and its gradient at the points of a rule, and p where it is asked for.
struct FlowValues {
  std::vector<double> u;
  std::vector<double> gradient;
  std::vector<double> p;

  void evaluate(CellEvaluator& evaluator, std::int64_t cell, bool with_pressure) {
    const std::size_t dim = evaluator.dim();
    u.resize(evaluator.points() * dim);
    gradient.resize(evaluator.points() * dim * dim);
    p.assign(evaluator.points(), 0.0);
    evaluator.velocity_and_gradient(cell, u.data(), gradient.data());
    if (with_pressure) evaluator.pressure(cell, p.data());
  }
  [[nodiscard]] FlowThere at(std::size_t q, int dim) const {
    FlowThere there{.p = p[q]};
    for (int c = 0; c < dim; ++c) {
      there.u[c] = u[q * dim + c];
      for (int a = 0; a < dim; ++a) there.gradient[c][a] = gradient[(q * dim + c) * dim + a];
    }
    return there;
  }
};

// Forces on the boundary faces of one cell after the other (tested_flow.hpp). One object serves one thread.
class BoundaryForces {
 public:
  /// `acceleration`: du/dt, or nullptr.
  BoundaryForces(const Solution& solution, const Solution* acceleration, const Point& about, const Bodies& bodies)
      : grid_(&solution.grid()),
        bodies_(&bodies),
        dim_(grid_->dim()),
        tested_(tested_flow(solution.problem(), *grid_, about)),
        physics_(solution),
        force_(force_field(solution.problem())),
        data_(data_of_conditions(solution.problem())),
        volume_(solution, CellRule::inside) {
    if (acceleration != nullptr) {
      acceleration_.emplace(*acceleration);
      acceleration_->set_points(volume_.rule.xi());
    }
    for (int side = 0; side < 2 * dim_; ++side) sides_.emplace_back(solution, side);
  }

  void add(std::int64_t cell, SumsOfBodies& bodies) {
    const auto record = static_cast<Record>(cell);
    const auto on_boundary = [&](int side) { return grid_->face(record, side) != Face::interior; };
    int side = 0;
    while (side < 2 * dim_ && !on_boundary(side)) ++side;
    if (side == 2 * dim_) return;
    move_to(record);
    for (; side < 2 * dim_; ++side) {
      if (on_boundary(side)) add_face(side, bodies.of_body[bodies_->at(record, side)]);
    }
  }

 private:
  // A rule in a cell, or on a side of it, with the values at its points.
  struct Place {
    Place(const Solution& solution, int side)
        : rule(solution.grid(), force_points(solution.problem()), side),
          evaluator(solution),
          behind(solution),
          viscosity(solution.equation_coefficients(), solution.grid(), rule.xi(), side) {
      evaluator.set_points(rule.xi(), CellEvaluator::Tables::values_and_derivatives);
      if (side == CellRule::inside) return;
      behind.set_points(ViscosityOfForces::seen_from_behind(rule.xi(), side),
                        CellEvaluator::Tables::values_and_derivatives);
    }

    CellRule rule;
    CellEvaluator evaluator;
    CellEvaluator behind;  // at the same points in the cell behind the side
    FlowValues values;
    FlowValues values_behind;
    // Of the force in the cell; on a side of the prescribed velocity or traction.
    std::array<std::vector<double>, 3> data;
    Face face = Face::interior;
    double penalty = 0.0;
    ViscosityOfForces viscosity;
    const std::vector<double>* nu = nullptr;

    void evaluate(const VectorField& field, int dim) {
      for (int c = 0; c < dim; ++c) {
        data[c].assign(rule.size(), 0.0);
        if (!field[c].is_zero()) rule.evaluate(field[c], data[c]);
      }
    }
    [[nodiscard]] Point data_at(std::size_t q, int dim) const {
      Point result{};
      for (int c = 0; c < dim; ++c) result[c] = data[c][q];
      return result;
    }
    [[nodiscard]] Point reference(std::size_t q) const {
      return {rule.reference(0, q), rule.reference(1, q), rule.reference(2, q)};
    }
    // On a side.
    [[nodiscard]] SideThere there(std::size_t q, int dim) const {
      SideThere there{.face = face, .penalty = penalty, .viscosity = (*nu)[q]};
      if (face == Face::interior) {
        there.behind = values_behind.at(q, dim);
      } else {
        there.data = data_at(q, dim);
      }
      return there;
    }
  };

  void move_to(Record cell) {
    corner_ = grid_->corner(cell);
    widths_ = grid_->widths(cell);
    mass_ = physics_.mass(cell);
    volume_.rule.move_to(cell);
    volume_.values.evaluate(volume_.evaluator, cell, true);
    volume_.nu = &volume_.viscosity.of(cell);
    volume_.evaluate(force_, dim_);
    changes_.assign(volume_.rule.size() * dim_, 0.0);
    if (acceleration_) acceleration_->velocity(cell, changes_.data());
    for (int side = 0; side < 2 * dim_; ++side) {
      Place& place = sides_[side];
      place.face = grid_->face(cell, side);
      place.penalty = tested_.penalty_of(side, widths_[side / 2]);
      place.rule.move_to(cell);
      place.values.evaluate(place.evaluator, cell, place.face != Face::interior);
      place.nu = &place.viscosity.of(cell);
      if (place.face == Face::interior) {
        place.values_behind.evaluate(place.behind, grid_->neighbour(cell, side), false);
      } else {
        place.evaluate(data_[condition_at(*grid_, cell, side)], dim_);
      }
    }
  }

  void add_face(int side, ForceSums& sums) const {
    const Place& place = sides_[side];
    for (std::size_t q = 0; q < place.rule.size(); ++q) {
      const Point xi = place.reference(q);
      Point box{};
      for (int a = 0; a < dim_; ++a) box[a] = xi[a] * widths_[a] + corner_[a];
      tested_.add(sums, side, place.values.at(q, dim_), place.there(q, dim_), place.rule.weights()[q],
                  tested_.lever(box));
    }
    if (place.face != Face::outflow) tested_.add(sums, side, rows_of(side), corner_, widths_);
  }

  [[nodiscard]] Rows rows_of(int side) const {
    const Point& edge = tested_.edge[side / 2];
    Rows rows;
    for (std::size_t q = 0; q < volume_.rule.size(); ++q) {
      InsideThere with{.force = volume_.data_at(q, dim_), .mass = mass_, .viscosity = (*volume_.nu)[q]};
      std::copy_n(&changes_[q * dim_], dim_, with.change.begin());
      const Tested tested = tested_.inside(edge, volume_.values.at(q, dim_), with);
      tested_.add(rows, side, tested, volume_.rule.weights()[q], volume_.reference(q), widths_);
    }
    for (int other = 0; other < 2 * dim_; ++other) {
      const Place& place = sides_[other];
      for (std::size_t q = 0; q < place.rule.size(); ++q) {
        const Tested tested =
            tested_.on(other, edge, other / 2 == side / 2, place.values.at(q, dim_), place.there(q, dim_));
        tested_.add(rows, side, tested, place.rule.weights()[q], place.reference(q), widths_);
      }
    }
    return rows;
  }

  const Grid* grid_;
  const Bodies* bodies_;
  int dim_;
  TestedFlow tested_;
  CellPhysics physics_;
  // Of the cell:
  Point corner_{};
  Point widths_{};
  double mass_ = 0.0;
  VectorField force_;
  std::vector<VectorField> data_;  // of conditions
  Place volume_;
  std::vector<Place> sides_;
  std::optional<CellEvaluator> acceleration_;
  std::vector<double> changes_;  // du/dt at the points in the cell
};

}  // namespace

Bodies::Bodies(const Mesh& mesh, const Grid& grid) : mesh_(&mesh), grid_(&grid), holes_(holes_of_boxes(mesh)) {}

int Bodies::at(Record cell, int side) const {
  if (grid_->hole(cell, side) < 0) return side;
  std::array<int, 3> box{};
  for (int a = 0; a < grid_->dim(); ++a) {
    const int extent = grid_->extent()[a];
    int i = grid_->position(cell)[a];
    if (a == side / 2) i = (i + (side % 2 == 0 ? -1 : 1) + extent) % extent;
    box[a] = i / (extent / mesh_->cells[a]);
  }
  return sides_of_box + holes_[number_of_box(*mesh_, box)];
}

int condition_at(const Grid& grid, Record cell, int side) {
  const int hole = grid.hole(cell, side);
  return hole < 0 ? side : sides_of_box + hole;
}

std::vector<VectorField> data_of_conditions(const Problem& problem) {
  std::vector<VectorField> data(sides_of_box);
  for (int side = 0; side < 2 * problem.mesh.dim; ++side) data[side] = data_on(problem.boundary, side);
  for (int i = 0; i <= std::ssize(problem.boundary.single_holes); ++i) {
    data.push_back(hole_side(problem.boundary, i).data);
  }
  return data;
}

int force_points(const Problem& problem) {
  return std::max(problem.order + 2, problem.convection ? convection_points(problem.order) : 0);
}

TestedFlow tested_flow(const Problem& problem, const Grid& grid, const Point& about) {
  const int dim = grid.dim();
  const AffineMap map = grid.metric().map() != nullptr ? *grid.metric().map() : AffineMap::identity(dim);
  TestedFlow result{.dim = dim,
                    .stress_form = form_of(problem) == ViscousForm::stress,
                    .convection = problem.convection,
                    .linear = problem.order > 0,
                    .penalty = Equation{dim, problem.order}.penalty(1.0),
                    .origin = map.at({})};
  for (int a = 0; a < dim; ++a) {
    result.origin[a] -= about[a];
    result.edge[a] = map.direction(a);
    result.across[a] = map.inverse()[a];
    result.height[a] = map.height(a, 1.0);
    for (const int side : {2 * a, 2 * a + 1}) {
      add_times(result.normal[side], TestedFlow::outward(side) * result.height[a], result.across[a]);
    }
  }
  return result;
}

std::vector<BoundaryForce> forces_on_bodies(const Problem& problem, const Grid& grid, const SumsOfBodies& sums) {
  std::vector<BoundaryForce> result;
  const auto add = [&](std::string name, int body) {
    const auto found = sums.of_body.find(body);
    ForceSums s = found == sums.of_body.end() ? ForceSums{} : found->second;
    for (Point* const part : {&s.force, &s.torque, &s.pressure, &s.viscous}) grid.add_up(std::span<double>(*part));
    result.push_back({std::move(name), s.force, s.torque, s.pressure, s.viscous});
  };
  for (int side = 0; side < 2 * grid.dim(); ++side) {
    if (problem.boundary.sides[side].kind != SideKind::periodic) add(std::string(side_names[side]), side);
  }
  for (int i = 0; i < hole_count(problem.mesh); ++i) {
    add(fmt::format("holes[{}]", i), sides_of_box + i);
  }
  return result;
}

std::vector<Record> cells_of_forces(const Grid& grid) {
  const int sides = 2 * grid.dim();
  std::vector<Record> cells;
  for (const Record cell : grid.layout().owned_cells()) {
    const auto is_inside = [&](int side) { return grid.face(cell, side) == Face::interior; };
    int inside = 0;
    for (int side = 0; side < sides; ++side) inside += is_inside(side) ? 1 : 0;
    if (inside == sides) continue;
    cells.push_back(cell);
    for (int side = 0; side < sides; ++side) {
      if (is_inside(side)) cells.push_back(grid.neighbour(cell, side));
    }
  }
  return cells;
}

std::vector<BoundaryForce> Solution::forces(const Point& about) const {
  if (problem_.equation == EquationKind::poisson) {
    throw InputError("forces: the solution of Poisson's equation has no velocity");
  }
  if (!has_forces()) {
    throw InputError(
        "forces: before its first step a flow in time has neither a pressure nor an acceleration, and a mean flow has "
        "none");
  }
  const Bodies bodies(problem_.mesh, *grid_);
  const auto sums = reduce_owned_cells<SumsOfBodies>(*grid_, [&] {
    return [forces = BoundaryForces(*this, acceleration_.get(), about, bodies)](CellRange range,
                                                                                SumsOfBodies& of_bodies) mutable {
      for (std::int64_t cell = range.begin; cell < range.end; ++cell) forces.add(cell, of_bodies);
    };
  });
  return forces_on_bodies(problem_, *grid_, sums);
}

}  // namespace solenoid
