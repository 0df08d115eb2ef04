#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "element/convection_points.hpp"
#include "level/level.hpp"
#include "mesh/grid.hpp"
#include "problem/names.hpp"
#include "problem/parts.hpp"
#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "problem/vectors.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solution.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/cell_rule.hpp"
#include "solution/cells_of.hpp"
#include "solution/field_evaluator.hpp"
#include "solution/joined.hpp"

namespace solenoid {

namespace {

// On a side or a hole.
struct Sums {
  Point force{};
  Point torque{};
  Point pressure{};
  Point viscous{};
  void merge(const Sums& other) {
    for (int c = 0; c < 3; ++c) {
      force[c] += other.force[c];
      torque[c] += other.torque[c];
      pressure[c] += other.pressure[c];
      viscous[c] += other.viscous[c];
    }
  }
};

struct SumsOfBodies {
  std::map<int, Sums> of_body;
  void merge(const SumsOfBodies& other) {
    for (const auto& [body, sums] : other.of_body) of_body[body].merge(sums);
  }
};

// Sides of the bounding box are bodies 0 to 5, holes[i] is body 6 + i.
constexpr int sides_of_box = 6;

// What upwinding lets through a face, of a component with u on this side and `other` behind; w is the normal velocity
// out.
double upwind_flux(double w, double u, double other) { return w * (w > 0.0 ? u : other); }

// u and its gradient at the points of a rule, and p where it is asked for.
struct FlowValues {
  std::vector<double> u;
  std::vector<double> gradient;
  std::vector<double> p;

  void evaluate(CellEvaluator& evaluator, std::int64_t cell, bool with_pressure) {
    const std::size_t dim = evaluator.dim();
    u.resize(evaluator.points() * dim);
    gradient.resize(evaluator.points() * dim * dim);
    evaluator.velocity_and_gradient(cell, u.data(), gradient.data());
    if (!with_pressure) return;
    p.resize(evaluator.points());
    evaluator.pressure(cell, p.data());
  }
};

// Forces on the boundary faces of one cell after the other; the quadrature is that of the load vector. One object
// serves one thread.
//
// Side e of a cell takes two kinds of test function. Along the edge F_e, across the side, velocities are prescribed
// strongly, and what holds them is the row of the discrete equation for the hat of the side. With n_e = row e of F^-1,
// of which n_e . F_e = 1, a velocity v has n_e . v along F_e, so that this force is a row for a velocity F_e there
// times n_e. What is left of v lies in the side, and the traction t, known there point by point, does not hold the part
// (t . F_e) n_e of it. On boxes these are the normal and the tangential components.
class BoundaryForces {
 public:
  /// `acceleration`: du/dt, or nullptr.
  BoundaryForces(const Solution& solution, const Solution* acceleration, const Point& about,
                 const std::vector<std::int32_t>& holes)
      : problem_(&solution.problem()),
        grid_(&solution.grid()),
        map_(grid_->metric().map() != nullptr ? *grid_->metric().map() : AffineMap::identity(grid_->dim())),
        holes_(&holes),
        about_(about),
        dim_(grid_->dim()),
        equation_{dim_, problem_->order},
        physics_(solution),
        force_(force_field(*problem_)),
        volume_(solution, physics_, CellRule::inside) {
    if (acceleration != nullptr) {
      acceleration_.emplace(*acceleration);
      acceleration_->set_points(volume_.rule.xi());
    }
    for (int side = 0; side < 2 * dim_; ++side) {
      sides_.emplace_back(solution, physics_, side);
      side_data_[side] = data_on(problem_->boundary, side);
      add_times(normals_[side], outward(side) * map_.height(side / 2, 1.0), inverse_row(side / 2));
    }
  }

  void add(std::int64_t cell, SumsOfBodies& bodies) {
    const auto record = static_cast<Record>(cell);
    const auto on_boundary = [&](int side) { return grid_->face(record, side) != Face::interior; };
    int side = 0;
    while (side < 2 * dim_ && !on_boundary(side)) ++side;
    if (side == 2 * dim_) return;
    move_to(record);
    for (; side < 2 * dim_; ++side) {
      if (on_boundary(side)) add_face(side, bodies.of_body[body(record, side)]);
    }
  }

 private:
  // A rule in a cell, or on a side of it, with the values at its points.
  struct Place {
    Place(const Solution& solution, const CellPhysics& physics, int side)
        : rule(solution.grid(), points(solution.problem()), side),
          evaluator(solution),
          behind(solution),
          viscosity_here(physics.viscosity_at(rule.xi(), solution.grid().dim())),
          viscosity_behind(physics.viscosity_at(seen_from_behind(rule.xi(), side), solution.grid().dim())) {
      evaluator.set_points(rule.xi(), CellEvaluator::Tables::values_and_derivatives);
      if (side == CellRule::inside) return;
      behind.set_points(seen_from_behind(rule.xi(), side), CellEvaluator::Tables::values_and_derivatives);
    }

    static TensorPoints seen_from_behind(TensorPoints xi, int side) {
      if (side != CellRule::inside) xi[side / 2] = {side % 2 == 0 ? 1.0 : 0.0};
      return xi;
    }

    static int points(const Problem& problem) {
      return std::max(problem.order + 2, problem.convection ? convection_points(problem.order) : 0);
    }

    CellRule rule;
    CellEvaluator evaluator;
    CellEvaluator behind;  // at the same points in the cell behind the side
    FlowValues values;
    FlowValues values_behind;
    // Of the force in the cell; on a side of the prescribed velocity or traction.
    std::array<std::vector<double>, 3> data;
    Face face = Face::interior;
    // nu in the cell and, of a side, nu_F.
    ViscosityInCells viscosity_here;
    ViscosityInCells viscosity_behind;
    std::vector<double> viscosity;
    std::vector<double> of_face;

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
  };

  [[nodiscard]] int body(Record cell, int side) const {
    if (grid_->hole(cell, side) < 0) return side;
    std::array<int, 3> box{};
    for (int a = 0; a < dim_; ++a) {
      const int extent = grid_->extent()[a];
      int i = grid_->position(cell)[a];
      if (a == side / 2) i = (i + (side % 2 == 0 ? -1 : 1) + extent) % extent;
      box[a] = i / (extent / problem_->mesh.cells[a]);
    }
    return sides_of_box + (*holes_)[number_of_box(problem_->mesh, box)];
  }

  void move_to(Record cell) {
    corner_ = grid_->corner(cell);
    widths_ = grid_->widths(cell);
    mass_ = physics_.mass(cell);
    volume_.rule.move_to(cell);
    volume_.values.evaluate(volume_.evaluator, cell, true);
    volume_.viscosity = volume_.viscosity_here.of(cell);
    volume_.evaluate(force_, dim_);
    changes_.assign(volume_.rule.size() * dim_, 0.0);
    if (acceleration_) acceleration_->velocity(cell, changes_.data());
    for (int side = 0; side < 2 * dim_; ++side) {
      Place& place = sides_[side];
      place.face = grid_->face(cell, side);
      place.rule.move_to(cell);
      place.values.evaluate(place.evaluator, cell, place.face != Face::interior);
      place.of_face = place.viscosity = place.viscosity_here.of(cell);
      if (place.face == Face::interior) {
        const Record behind = grid_->neighbour(cell, side);
        place.values_behind.evaluate(place.behind, behind, false);
        const std::vector<double>& its = place.viscosity_behind.of(behind);
        for (std::size_t q = 0; q < its.size(); ++q) place.of_face[q] = face_viscosity(place.viscosity[q], its[q]);
      } else {
        const int hole = grid_->hole(cell, side);
        place.evaluate(hole < 0 ? side_data_[side] : hole_side(problem_->boundary, hole).data, dim_);
      }
    }
  }

  [[nodiscard]] const Point& inverse_row(int a) const { return map_.inverse()[a]; }
  static double outward(int side) { return side % 2 == 0 ? -1.0 : 1.0; }
  [[nodiscard]] Point velocity(const FlowValues& values, std::size_t q) const {
    Point u{};
    std::copy_n(&values.u[q * dim_], dim_, u.begin());
    return u;
  }
  // What the equation has nu times, applied to a vector: du/dx_a, in the stress form 2 eps(u), times its component a.
  [[nodiscard]] Point strain(const FlowValues& values, std::size_t q, const Point& vector) const {
    const double* const g = &values.gradient[q * dim_ * dim_];
    Point result{};
    for (int c = 0; c < dim_; ++c) {
      for (int a = 0; a < dim_; ++a) {
        const double other = physics_.form() == ViscousForm::stress ? g[a * dim_ + c] : 0.0;
        result[c] += (g[c * dim_ + a] + other) * vector[a];
      }
    }
    return result;
  }
  // The same for all vectors: `along` times it is this times the vector.
  [[nodiscard]] Point strain_along(const FlowValues& values, std::size_t q, const Point& along) const {
    const double* const g = &values.gradient[q * dim_ * dim_];
    Point result{};
    for (int c = 0; c < dim_; ++c) {
      for (int a = 0; a < dim_; ++a) {
        const double other = physics_.form() == ViscousForm::stress ? g[a * dim_ + c] : 0.0;
        result[a] += (g[c * dim_ + a] + other) * along[c];
      }
    }
    return result;
  }
  // u - `other` without what it has along the edge across a side, in which there are no jumps.
  [[nodiscard]] Point jump(int side, const Point& u, const Point& other) const {
    Point result = u;
    add_times(result, -1.0, other);
    add_times(result, -dot_product(inverse_row(side / 2), result), map_.direction(side / 2));
    return result;
  }
  [[nodiscard]] Point lever(const CellRule& rule, std::size_t q) const {
    Point x{};
    for (int a = 0; a < dim_; ++a) x[a] = rule.coordinate(a, q) - about_[a];
    return x;
  }
  [[nodiscard]] double penalty(int side) const { return equation_.penalty(map_.height(side / 2, widths_[side / 2])); }

  void add_face(int side, Sums& sums) {
    const Place& place = sides_[side];
    const Point& normal = normals_[side];
    const Point& edge = map_.direction(side / 2);
    const Point& across = inverse_row(side / 2);
    const std::vector<double>& weights = place.rule.weights();
    for (std::size_t q = 0; q < weights.size(); ++q) {
      const Point slope = strain(place.values, q, normal);
      add_times(sums.pressure, weights[q] * place.values.p[q], normal);
      add_times(sums.viscous, -place.viscosity[q] * weights[q], slope);
      Point traction{};  // on the fluid, where it is known point by point
      if (place.face == Face::outflow) {
        traction = place.data_at(q, dim_);
      } else if (place.face == Face::velocity) {
        const Point difference = jump(side, velocity(place.values, q), place.data_at(q, dim_));
        add_times(traction, place.viscosity[q], slope);
        add_times(traction, -2.0 * place.viscosity[q] * penalty(side), difference);
        add_times(traction, -dot_product(traction, edge), across);
      }
      add_times(sums.force, -weights[q], traction);
      add_times(sums.torque, -weights[q], cross_product(lever(place.rule, q), traction));
    }
    if (place.face == Face::outflow) return;
    const Rows rows = rows_of(side);
    add_times(sums.force, -rows.hat, across);
    Point origin = corner_;
    if (side % 2 == 1) origin[side / 2] += widths_[side / 2];
    origin = map_.at(origin);
    for (int a = 0; a < dim_; ++a) origin[a] -= about_[a];
    add_times(sums.torque, -rows.hat, cross_product(origin, across));
    for (int b = 0; b < dim_; ++b) {
      if (b != side / 2) add_times(sums.torque, -rows.way[b], cross_product(map_.direction(b), across));
    }
  }

  // What the equation has at a point for a velocity v along an edge: value v + slope . grad v.
  struct Tested {
    double value = 0.0;
    Point slope{};
  };

  Tested tested_inside(const Point& edge, std::size_t q) const {
    const FlowValues& values = volume_.values;
    const Point u = velocity(values, q);
    Point inertia = u;
    for (int c = 0; c < dim_; ++c) inertia[c] = mass_ * u[c] + changes_[q * dim_ + c] - volume_.data[c][q];
    Tested result{dot_product(inertia, edge)};
    add_times(result.slope, -values.p[q], edge);
    add_times(result.slope, volume_.viscosity[q], strain_along(values, q, edge));
    if (problem_->convection) add_times(result.slope, -dot_product(u, edge), u);
    return result;
  }

  // On a side; `across`: there v has no jump, its slope has.
  Tested tested_on(int side, const Point& edge, bool across, std::size_t q) const {
    const Place& place = sides_[side];
    const Point u = velocity(place.values, q);
    const Point& normal = normals_[side];
    Tested result;
    // <what v has for u - difference>, of which the equation takes a mean over the cells of the face.
    const auto add_viscous = [&](const Point& difference, double penalty, const Point& slope, double part) {
      const double nu = place.of_face[q];
      add_times(result.slope, -nu * part * dot_product(edge, difference), normal);
      if (physics_.form() == ViscousForm::stress) {
        add_times(result.slope, -nu * part * dot_product(edge, normal), difference);
      }
      if (!across) result.value += nu * (penalty * dot_product(edge, difference) - dot_product(edge, slope));
    };
    if (place.face == Face::interior) {
      Point slope = strain(place.values, q, normal);
      add_times(slope, 1.0, strain(place.values_behind, q, normal));
      for (double& mean : slope) mean *= 0.5;
      add_viscous(jump(side, u, velocity(place.values_behind, q)), penalty(side), slope, 0.5);
    } else if (place.face == Face::velocity) {
      add_viscous(jump(side, u, place.data_at(q, dim_)), 2.0 * penalty(side), strain(place.values, q, normal), 1.0);
    } else if (place.face == Face::outflow) {
      result.value -= dot_product(edge, place.data_at(q, dim_));
    }
    if (problem_->convection) result.value += convected(place, side, edge, q);
    return result;
  }

  // What of the component that a vector takes leaves through a face at a point.
  [[nodiscard]] double convected(const Place& place, int side, const Point& vector, std::size_t q) const {
    const double w = dot_product(normals_[side], velocity(place.values, q));
    const double u = dot_product(vector, velocity(place.values, q));
    if (place.face == Face::interior) return upwind_flux(w, u, dot_product(vector, velocity(place.values_behind, q)));
    return upwind_flux(w, u, place.face == Face::velocity ? dot_product(vector, place.data_at(q, dim_)) : 0.0);
  }

  // Of the discrete equation, for the hat on a side, a velocity along the edge across it that is 1 there, and for this
  // hat times the way from the corner of the cell along each other edge.
  struct Rows {
    double hat = 0.0;
    Point way{};
  };

  Rows rows_of(int side) const {
    const int e = side / 2;
    const Point& edge = map_.direction(e);
    Rows rows;
    const auto add = [&](const CellRule& rule, std::size_t q, const Tested& tested) {
      const double weight = rule.weights()[q];
      const double xi = rule.reference(e, q);
      const double hat = weight * (side % 2 == 0 ? 1.0 - xi : xi);
      const double slope = weight * outward(side) / widths_[e];
      const double sum = hat * tested.value + slope * dot_product(tested.slope, inverse_row(e));
      rows.hat += sum;
      for (int b = 0; b < dim_; ++b) {
        if (b == e) continue;
        const bool linear = problem_->order > 0;  // functions of lowest order are constant along the side
        rows.way[b] += widths_[b] * (linear ? rule.reference(b, q) : 0.5) * sum;
        if (linear) rows.way[b] += hat * dot_product(tested.slope, inverse_row(b));
      }
    };
    for (std::size_t q = 0; q < volume_.rule.size(); ++q) add(volume_.rule, q, tested_inside(edge, q));
    for (int other = 0; other < 2 * dim_; ++other) {
      const CellRule& rule = sides_[other].rule;
      for (std::size_t q = 0; q < rule.size(); ++q) add(rule, q, tested_on(other, edge, other / 2 == e, q));
    }
    return rows;
  }

  const Problem* problem_;
  const Grid* grid_;
  AffineMap map_;
  std::array<Point, 6> normals_{};  // of unit length, out of the cell
  const std::vector<std::int32_t>* holes_;
  Point about_;
  int dim_;
  Equation equation_;
  CellPhysics physics_;
  // Of the cell:
  Point corner_{};
  Point widths_{};
  double mass_ = 0.0;
  VectorField force_;
  Place volume_;
  std::vector<Place> sides_;
  std::optional<CellEvaluator> acceleration_;
  std::vector<double> changes_;  // du/dt at the points in the cell
  std::array<VectorField, 6> side_data_;
};

}  // namespace

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
  const std::vector<std::int32_t> holes = holes_of_boxes(problem_.mesh);
  const auto sums = reduce_owned_cells<SumsOfBodies>(*grid_, [&] {
    return [forces = BoundaryForces(*this, acceleration_.get(), about, holes)](CellRange range,
                                                                               SumsOfBodies& bodies) mutable {
      for (std::int64_t cell = range.begin; cell < range.end; ++cell) forces.add(cell, bodies);
    };
  });
  std::vector<BoundaryForce> result;
  const auto add = [&](std::string name, int body) {
    const auto found = sums.of_body.find(body);
    Sums s = found == sums.of_body.end() ? Sums{} : found->second;
    for (Point* const part : {&s.force, &s.torque, &s.pressure, &s.viscous}) grid_->add_up(std::span<double>(*part));
    result.push_back({std::move(name), s.force, s.torque, s.pressure, s.viscous});
  };
  for (int side = 0; side < 2 * grid_->dim(); ++side) {
    if (problem_.boundary.sides[side].kind != SideKind::periodic) add(std::string(side_names[side]), side);
  }
  for (int i = 0; i < hole_count(problem_.mesh); ++i) {
    add(fmt::format("holes[{}]", i), sides_of_box + i);
  }
  return result;
}

}  // namespace solenoid
