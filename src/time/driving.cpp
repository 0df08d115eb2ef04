#include "time/driving.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "mesh/first_look.hpp"
#include "problem/regions.hpp"
#include "problem/vectors.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

/// The largest sum_a |f_a| / h_a at the points, f_a along edges.
double largest(const VectorField& f, const AffineMap& map, const Point& widths, const std::vector<Point>& points) {
  if (is_zero(f)) return 0.0;
  const int dim = map.dim();
  std::vector<Point> at_points(points.size(), Point{});
  std::vector<double> values(points.size());
  for (int c = 0; c < dim; ++c) {
    f[c].evaluate(points, values);
    for (std::size_t i = 0; i < points.size(); ++i) at_points[i][c] = values[i];
  }
  double most = 0.0;
  for (const Point& value : at_points) {
    double sum = 0.0;
    for (int a = 0; a < dim; ++a) sum += std::abs(dot_product(map.inverse()[a], value)) / widths[a];
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

bool Driving::Face::operator<(const Face& other) const {
  return std::tie(side, hole, open) < std::tie(other.side, other.hole, other.open);
}

Driving::Driving(const Problem& problem)
    : problem_(problem),
      changes_(parameters_of(problem).contains("t")),
      viscosity_(problem.viscosity),
      map_(problem.mesh.edges ? AffineMap(problem.mesh.dim, problem.mesh.lower, *problem.mesh.edges)
                              : AffineMap::identity(problem.mesh.dim)) {
  const Mesh& mesh = problem.mesh;
  for (int a = 0; a < mesh.dim; ++a) {
    widths_[a] = length_along(mesh, a) / static_cast<double>(std::int64_t{mesh.cells[a]} << mesh.refine);
  }
  const auto grid = first_look(problem);
  if (!grid) return;
  std::map<Face, std::vector<Point>> faces;
  for (const Record cell : grid->layout().owned_cells()) {
    Point middle = grid->corner(cell);
    for (int a = 0; a < mesh.dim; ++a) middle[a] += first_look_rule[0] * grid->widths(cell)[a];
    inside_.push_back(map_.at(middle));
    for (int side = 0; side < 2 * mesh.dim; ++side) {
      const auto kind = grid->face(cell, side);
      if (kind != solenoid::Face::velocity && kind != solenoid::Face::outflow) continue;
      Point on_face = middle;
      on_face[side / 2] = grid->corner(cell)[side / 2] + (side % 2 == 0 ? 0.0 : grid->widths(cell)[side / 2]);
      faces[{side, grid->hole(cell, side), kind == solenoid::Face::outflow}].push_back(map_.at(on_face));
    }
  }
  for (auto& [face, points] : faces) faces_.push_back({face, std::move(points)});
  if (!viscosity_varies(problem) || inside_.empty()) return;
  std::vector<double> values(inside_.size());
  viscosity_field(problem).evaluate(inside_, values);
  viscosity_ = *std::max_element(values.begin(), values.end());
}

Driving::Rates Driving::rates_of(const Problem& problem) const {
  Rates rates;
  rates.acceleration = largest(force_field(problem), map_, widths_, inside_);
  for (const auto& [face, points] : faces_) {
    const VectorField data =
        face.hole < 0 ? data_on(problem.boundary, face.side) : hole_side(problem.boundary, face.hole).data;
    const double rate = largest(data, map_, widths_, points);
    if (face.open) {
      rates.acceleration = std::max(rates.acceleration, rate / widths_[face.side / 2]);
    } else {
      rates.velocity = std::max(rates.velocity, rate);
    }
  }
  return rates;
}

double Driving::longest_step(double t, double reach) const {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (!changes_) {
    const auto [v, a] = rates_of(problem_);
    return v + a > 0.0 ? 2.0 * reach / (v + std::sqrt(v * v + 4.0 * a * reach)) : never;
  }
  double h = never;
  for (int a = 0; a < problem_.mesh.dim; ++a) h = std::min(h, widths_[a]);
  constexpr int range = 30;
  double dt = h * h / viscosity_ * std::pow(4.0, -range);
  for (int i = 0; i < 2 * range; ++i, dt *= 4.0) {
    try {
      const auto [v, a] = rates_of(with_parameters(problem_, {{"t", t + 4.0 * dt}}));
      if (4.0 * dt * (v + 4.0 * dt * a) > reach) return dt;
    } catch (const InputError&) {
      return dt;  // data that are not finite so much later
    }
  }
  return never;
}

}  // namespace solenoid
