#include "problem/pulled_back.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace solenoid {
namespace {

/// sum_i factors[i] field_i; 0 where that is rounding alone, so that nothing flows through a side along which a
/// velocity points.
ScalarField combination(const VectorField& field, const Point& factors, const AffineMap& map) {
  std::vector<std::pair<double, ScalarField>> terms;
  for (int i = 0; i < map.dim(); ++i) {
    if (factors[i] != 0.0 && !field[i].is_zero()) terms.emplace_back(factors[i], field[i]);
  }
  if (terms.empty()) return 0.0;
  const auto sum = [terms, map](std::span<const Point> points, std::span<double> values) {
    std::vector<Point> x;
    std::transform(points.begin(), points.end(), std::back_inserter(x), [&](const Point& xi) { return map.at(xi); });
    std::vector<double> of_term(x.size());
    std::vector<double> size(x.size(), 0.0);
    std::fill(values.begin(), values.end(), 0.0);
    for (const auto& [factor, field] : terms) {
      field.evaluate(x, of_term);
      for (std::size_t q = 0; q < x.size(); ++q) {
        values[q] += factor * of_term[q];
        size[q] += std::abs(factor * of_term[q]);
      }
    }
    constexpr double rounding = 8.0 * std::numeric_limits<double>::epsilon();
    for (std::size_t q = 0; q < x.size(); ++q) {
      if (std::abs(values[q]) <= rounding * size[q]) values[q] = 0.0;
    }
  };
  return {sum, ""};
}

}  // namespace

VectorField pulled_back_force(const VectorField& f, const AffineMap& map, double factor) {
  VectorField result;
  for (int c = 0; c < map.dim(); ++c) {
    Point row = map.direction(c);
    for (double& entry : row) entry *= factor;
    result[c] = combination(f, row, map);
  }
  return result;
}

VectorField pulled_back_velocity(const VectorField& u, const AffineMap& map) {
  VectorField result;
  for (int c = 0; c < map.dim(); ++c) {
    Point row = map.inverse()[c];
    for (double& entry : row) entry *= map.jacobian();
    result[c] = combination(u, row, map);
  }
  return result;
}

ScalarField pulled_back_scalar(const ScalarField& p, const AffineMap& map) {
  return combination({p, 0.0, 0.0}, {1.0, 0.0, 0.0}, map);
}

}  // namespace solenoid
