#include "solution/cell_rule.hpp"

#include <cmath>

namespace solenoid {

CellRule::CellRule(const Grid& grid, int points, int side) : grid_(&grid), normal_(side == inside ? -1 : side / 2) {
  const Quadrature rule = gauss(points);
  std::size_t count = 1;
  for (int a = 0; a < 3; ++a) {
    if (a >= grid.dim() || a == normal_) {
      xi_[a] = {a == normal_ && side % 2 == 1 ? 1.0 : 0.0};
      factors_[a] = {1.0};
    } else {
      xi_[a] = rule.points;
      factors_[a] = rule.weights;
    }
    axes_[a].resize(xi_[a].size());
    stride_[a] = count;
    count *= xi_[a].size();
  }
  weights_.resize(count);
  if (grid.metric().map() != nullptr) mapped_.resize(count);
}

void CellRule::move_to(std::int64_t cell) {
  const auto record = static_cast<Record>(cell);
  const Point corner = grid_->corner(record);
  const Point widths = grid_->widths(record);
  for (int a = 0; a < 3; ++a) {
    for (std::size_t i = 0; i < axes_[a].size(); ++i) axes_[a][i] = xi_[a][i] * widths[a] + corner[a];
  }
  const AffineMap* const map = grid_->metric().map();
  if (map != nullptr) {
    auto next = mapped_.begin();
    for (const double z : axes_[2]) {
      for (const double y : axes_[1]) {
        for (const double x : axes_[0]) *next++ = map->at({x, y, z});
      }
    }
  }
  if (widths == widths_) return;
  widths_ = widths;
  double measure = 1.0;
  for (int a = 0; a < grid_->dim(); ++a) measure *= a == normal_ ? 1.0 : widths[a];
  if (map != nullptr) {
    measure *= map->jacobian() * (normal_ < 0 ? 1.0 : std::sqrt(map->inverse_metric()[normal_][normal_]));
  }
  for (std::size_t q = 0; q < weights_.size(); ++q) {
    weights_[q] = measure * factors_[0][index(0, q)] * factors_[1][index(1, q)] * factors_[2][index(2, q)];
  }
}

}  // namespace solenoid
