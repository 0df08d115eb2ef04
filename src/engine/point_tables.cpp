#include "engine/point_tables.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "element/basis.hpp"

namespace solenoid {

PointTables make_point_tables(int order, int points) {
  PointTables tables{};
  const Quadrature rule = gauss(points);
  std::copy(rule.weights.begin(), rule.weights.end(), tables.weight);
  for (std::size_t q = 0; q < rule.points.size(); ++q) {
    const auto enter = [&](int p, const std::vector<double>& values, const std::vector<double>& slopes) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        tables.value[p][q][i] = values[i];
        tables.slope[p][q][i] = slopes[i];
        tables.test_value[p][q][i] = rule.weights[q] * values[i];
        tables.test_slope[p][q][i] = rule.weights[q] * slopes[i];
      }
    };
    const double x = rule.points[q];
    enter(0, legendre(order, x), legendre(order, x, 1));
    enter(1, continuous(order, x), continuous(order, x, 1));
  }
  const auto end = legendre(order, 1.0);
  const auto end_slope = legendre(order, 1.0, 1);
  std::copy(end.begin(), end.end(), tables.end);
  std::copy(end_slope.begin(), end_slope.end(), tables.end_slope);
  for (const int upper : {0, 1}) {
    const auto slopes = continuous(order, upper, 1);
    std::copy(slopes.begin(), slopes.end(), tables.parallel_end_slope[upper]);
  }
  return tables;
}

}  // namespace solenoid
