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
#include "solenoid/error.hpp"
#include "solenoid/solution.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/cell_rule.hpp"
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
  // Adds the torque of forces in direction c, of which `moment` is the integral times coordinate b.
  void add_moment(int b, int c, double moment) {
    if (b == c) return;
    torque[3 - b - c] += c == (b + 1) % 3 ? moment : -moment;
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

// nu_F of the face between two cells.
double face_viscosity(double one, double other) { return 2.0 * one * other / (one + other); }

// u and its gradient, and p, at the points of a rule.
struct FlowValues {
  std::vector<double> u;
  std::vector<double> gradient;
  std::vector<double> p;

  void evaluate(CellEvaluator& evaluator, std::int64_t cell) {
    const std::size_t dim = evaluator.dim();
    u.resize(evaluator.points() * dim);
    gradient.resize(evaluator.points() * dim * dim);
    p.resize(evaluator.points());
    evaluator.velocity(cell, u.data());
    evaluator.gradient(cell, gradient.data());
    evaluator.pressure(cell, p.data());
  }
};

// Forces on the boundary faces of one cell after the other; the quadrature is that of the load vector. One object
// serves one thread.
class BoundaryForces {
 public:
  /// `acceleration`: du/dt, or nullptr.
  BoundaryForces(const Solution& solution, const Solution* acceleration, const Point& about,
                 const std::vector<std::int32_t>& holes)
      : problem_(&solution.problem()),
        grid_(&solution.grid()),
        holes_(&holes),
        about_(about),
        dim_(grid_->dim()),
        equation_{dim_, problem_->order},
        physics_(solution),
        force_(force_field(*problem_)),
        volume_(solution, CellRule::inside) {
    if (acceleration != nullptr) {
      acceleration_.emplace(*acceleration);
      acceleration_->set_points(volume_.rule.xi());
    }
    for (int side = 0; side < 2 * dim_; ++side) {
      sides_.emplace_back(solution, side);
      side_data_[side] = data_on(problem_->boundary, side);
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
    Place(const Solution& solution, int side)
        : rule(solution.grid(), points(solution.problem()), side), evaluator(solution), behind(solution) {
      evaluator.set_points(rule.xi(), CellEvaluator::Tables::values_and_derivatives);
      if (side == CellRule::inside) return;
      TensorPoints other = rule.xi();
      other[side / 2] = {side % 2 == 0 ? 1.0 : 0.0};
      behind.set_points(other, CellEvaluator::Tables::values_and_derivatives);
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
    double viscosity = 1.0;  // nu_F of the side

    void evaluate(const VectorField& field, int dim) {
      for (int c = 0; c < dim; ++c) {
        data[c].assign(rule.size(), 0.0);
        if (!field[c].is_zero()) rule.evaluate(field[c], data[c]);
      }
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
    widths_ = grid_->widths(cell);
    viscosity_ = physics_.viscosity(cell);
    mass_ = physics_.mass(cell);
    volume_.rule.move_to(cell);
    volume_.values.evaluate(volume_.evaluator, cell);
    volume_.evaluate(force_, dim_);
    changes_.assign(volume_.rule.size() * dim_, 0.0);
    if (acceleration_) acceleration_->velocity(cell, changes_.data());
    for (int side = 0; side < 2 * dim_; ++side) {
      Place& place = sides_[side];
      place.face = grid_->face(cell, side);
      place.rule.move_to(cell);
      place.values.evaluate(place.evaluator, cell);
      place.viscosity = viscosity_;
      if (place.face == Face::interior) {
        const Record behind = grid_->neighbour(cell, side);
        place.values_behind.evaluate(place.behind, behind);
        place.viscosity = face_viscosity(viscosity_, physics_.viscosity(behind));
      } else {
        const int hole = grid_->hole(cell, side);
        place.evaluate(hole < 0 ? side_data_[side] : hole_side(problem_->boundary, hole).data, dim_);
      }
    }
  }

  // That the equation has nu times: du_c/dx_a, in the stress form 2 eps(u)_ca.
  [[nodiscard]] double strain(const FlowValues& values, std::size_t q, int c, int a) const {
    const double own = values.gradient[(q * dim_ + c) * dim_ + a];
    return physics_.form() == ViscousForm::stress ? own + values.gradient[(q * dim_ + a) * dim_ + c] : own;
  }
  static double outward(int side) { return side % 2 == 0 ? -1.0 : 1.0; }
  [[nodiscard]] double lever(const CellRule& rule, int b, std::size_t q) const {
    return rule.coordinate(b, q) - about_[b];
  }

  void add_face(int side, Sums& sums) {
    const Place& place = sides_[side];
    const int normal = side / 2;
    const double sign = outward(side);
    const double penalty = 2.0 * equation_.penalty(widths_[normal]);
    const std::vector<double>& weights = place.rule.weights();
    for (std::size_t q = 0; q < weights.size(); ++q) {
      sums.pressure[normal] += sign * weights[q] * place.values.p[q];
      for (int c = 0; c < dim_; ++c) {
        const double slope = sign * strain(place.values, q, c, normal);
        sums.viscous[c] -= viscosity_ * weights[q] * slope;
        double traction = 0.0;  // on the fluid, where it is known point by point
        if (place.face == Face::outflow) {
          traction = place.data[c][q];
        } else if (place.face == Face::velocity && c != normal) {
          traction = viscosity_ * (slope - penalty * (place.values.u[q * dim_ + c] - place.data[c][q]));
        }
        sums.force[c] -= weights[q] * traction;
        for (int b = 0; b < dim_; ++b) sums.add_moment(b, c, -weights[q] * traction * lever(place.rule, b, q));
      }
    }
    if (place.face == Face::outflow) return;
    sums.force[normal] -= row(side, -1);
    for (int b = 0; b < dim_; ++b) {
      if (b != normal) sums.add_moment(b, normal, -row(side, b));
    }
  }

  // A test function at a point.
  struct Test {
    double value = 0.0;
    Point gradient{};
  };

  // What of component c leaves through a face at a point.
  [[nodiscard]] double convected(const Place& place, int side, int c, std::size_t q) const {
    const double w = outward(side) * place.values.u[q * dim_ + side / 2];
    const double u = place.values.u[q * dim_ + c];
    if (place.face == Face::interior) return upwind_flux(w, u, place.values_behind.u[q * dim_ + c]);
    return upwind_flux(w, u, place.face == Face::velocity ? place.data[c][q] : 0.0);
  }

  // The row of the discrete equation for the hat on a side, normal velocity 1 there or, unless b is -1, coordinate b.
  double row(int side, int b) {
    const int c = side / 2;
    const double sign = outward(side);
    const auto test = [&](const CellRule& rule, std::size_t q) {
      const double xi = rule.reference(c, q);
      const double hat = side % 2 == 0 ? 1.0 - xi : xi;
      double factor = 1.0;
      if (b >= 0) {
        // Functions of lowest order are constant along the side.
        factor =
            problem_->order > 0 ? lever(rule, b, q) : lever(rule, b, q) + (0.5 - rule.reference(b, q)) * widths_[b];
      }
      Test result{hat * factor};
      result.gradient[c] = sign * factor / widths_[c];
      if (b >= 0 && problem_->order > 0) result.gradient[b] = hat;
      return result;
    };
    double sum = 0.0;
    const FlowValues& values = volume_.values;
    for (std::size_t q = 0; q < volume_.rule.size(); ++q) {
      const Test v = test(volume_.rule, q);
      double integrand = (mass_ * values.u[q * dim_ + c] + changes_[q * dim_ + c] - volume_.data[c][q]) * v.value;
      integrand -= values.p[q] * v.gradient[c];
      for (int a = 0; a < dim_; ++a) {
        integrand += viscosity_ * strain(values, q, c, a) * v.gradient[a];
        if (problem_->convection) integrand -= values.u[q * dim_ + a] * values.u[q * dim_ + c] * v.gradient[a];
      }
      sum += volume_.rule.weights()[q] * integrand;
    }
    if (problem_->convection) {  // through the side itself
      const Place& place = sides_[side];
      for (std::size_t q = 0; q < place.rule.size(); ++q) {
        sum += place.rule.weights()[q] * convected(place, side, c, q) * test(place.rule, q).value;
      }
    }
    if (b >= 0 && physics_.form() == ViscousForm::stress && sides_[side].face == Face::velocity) {
      // A normal velocity that changes along the side is a shear there, which u - g is tested with.
      const Place& place = sides_[side];
      for (std::size_t q = 0; q < place.rule.size(); ++q) {
        const double jump = place.values.u[q * dim_ + b] - place.data[b][q];
        sum -= place.rule.weights()[q] * viscosity_ * outward(side) * jump * test(place.rule, q).gradient[b];
      }
    }
    // Tangential terms of the faces around the side.
    for (int other = 0; other < 2 * dim_; ++other) {
      const int a = other / 2;
      if (a == c) continue;
      const Place& place = sides_[other];
      const double penalty = equation_.penalty(widths_[a]);
      for (std::size_t q = 0; q < place.rule.size(); ++q) {
        const Test v = test(place.rule, q);
        const double v_slope = outward(other) * v.gradient[a];
        const double u = place.values.u[q * dim_ + c];
        const auto slope = [&](const FlowValues& from) { return outward(other) * strain(from, q, c, a); };
        double integrand = 0.0;
        if (place.face == Face::interior) {
          const double jump = u - place.values_behind.u[q * dim_ + c];
          const double mean = 0.5 * (slope(place.values) + slope(place.values_behind));
          integrand = place.viscosity * ((penalty * jump - mean) * v.value - 0.5 * jump * v_slope);
        } else if (place.face == Face::velocity) {
          const double jump = u - place.data[c][q];
          integrand = place.viscosity * ((2.0 * penalty * jump - slope(place.values)) * v.value - jump * v_slope);
        } else if (place.face == Face::outflow) {
          integrand = -place.data[c][q] * v.value;
        }
        if (problem_->convection) integrand += convected(place, other, c, q) * v.value;
        sum += place.rule.weights()[q] * integrand;
      }
    }
    return sum;
  }

  const Problem* problem_;
  const Grid* grid_;
  const std::vector<std::int32_t>* holes_;
  Point about_;
  int dim_;
  Equation equation_;
  CellPhysics physics_;
  // Of the cell:
  Point widths_{};
  double viscosity_ = 1.0;
  double mass_ = 0.0;
  VectorField force_;
  Place volume_;
  std::vector<Place> sides_;
  std::optional<CellEvaluator> acceleration_;
  std::vector<double> changes_;  // du/dt at the points in the cell
  std::array<VectorField, 6> side_data_;
};

}  // namespace

std::vector<BoundaryForce> Solution::forces(const Point& about) const {
  if (problem_.equation == EquationKind::poisson) {
    throw InputError("forces: the solution of Poisson's equation has no velocity");
  }
  if (in_time_ && acceleration_ == nullptr) {
    throw InputError(
        "forces: before its first step a flow in time has neither a pressure nor an acceleration, and a mean flow has "
        "none");
  }
  require_boxes(problem_.mesh, "forces");
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
