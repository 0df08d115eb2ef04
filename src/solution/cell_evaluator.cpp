#include "solution/cell_evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "element/basis.hpp"
#include "mesh/record.hpp"
#include "solenoid/error.hpp"
#include "solution/univariate.hpp"

namespace solenoid {

namespace {

constexpr int largest_order = 12;

}  // namespace

CellEvaluator::CellEvaluator(const Grid& grid, int order, std::span<const double> coefficients, EquationKind equation)
    : grid_(grid),
      map_(grid.metric().map()),
      dim_(grid.dim()),
      order_(order),
      velocities_(velocity_components(equation, dim_)),
      record_(record_size(dim_, order, equation)),
      coefficients_(coefficients) {
  if (order < 0 || order > largest_order) {
    throw InputError("solution: order " + std::to_string(order) + " cannot be evaluated, expected 0 to " +
                     std::to_string(largest_order));
  }
}

void CellEvaluator::set_points(const TensorPoints& xi, Tables tables) {
  const int derivatives = tables == Tables::values ? 0 : 1;
  points_ = 1;
  std::size_t largest = 1;
  for (int a = 0; a < dim_; ++a) {
    const int rows = static_cast<int>(xi[a].size());
    points_ *= rows;
    largest *= std::max(rows, order_ + 2);
    directions_[a].width = 0.0;
    for (int derivative = 0; derivative <= derivatives; ++derivative) {
      const auto tabulate = [&](auto function, int columns, Table& table) {
        table.rows = rows;
        table.columns = columns;
        table.of_reference.clear();
        for (const double x : xi[a]) {
          for (const double value : function(order_, x, derivative)) table.of_reference.push_back(value);
        }
      };
      tabulate(continuous, order_ + 2, directions_[a].continuous[derivative]);
      tabulate(legendre, order_ + 1, directions_[a].legendre[derivative]);
    }
  }
  work_.resize(largest);
  next_.resize(largest);
}

void CellEvaluator::Table::scale(double factor) {
  values.resize(of_reference.size());
  std::transform(of_reference.begin(), of_reference.end(), values.begin(),
                 [&](double value) { return factor * value; });
}

void CellEvaluator::scale_tables(std::int64_t cell) {
  const Point widths = grid_.widths(static_cast<Record>(cell));
  for (int a = 0; a < dim_; ++a) {
    Direction& direction = directions_[a];
    if (direction.width == widths[a]) continue;
    direction.width = widths[a];
    for (int derivative = 0; derivative < 2; ++derivative) {
      const double factor = std::pow(widths[a], -0.5 - derivative);
      direction.continuous[derivative].scale(factor);
      direction.legendre[derivative].scale(factor);
    }
  }
}

std::array<int, 3> CellEvaluator::component_order(int c) const {
  if (dim_ == 2) return {1 - c, c, -1};
  return {(c + 1) % 3, (c + 2) % 3, c};
}

void CellEvaluator::load_velocity(std::int64_t cell, int c) {
  // Slices i_c = 0..k of the cell's own record, then the upper hat from the record behind the upper face.
  const int slice = power(order_ + 1, dim_ - 1);
  const int block = slice * (order_ + 1);
  const auto upper = grid_.neighbour(static_cast<Record>(cell), 2 * c + 1);
  load_values(cell, c * block, block, work_.data());
  load_values(upper, c * block, slice, work_.data() + block);
}

void CellEvaluator::load_values(std::int64_t record, int first, int count, double* out) const {
  const double* values = coefficients_.data() + record_offset(record, record_);
  for (int i = 0; i < count; ++i) out[i] = values[interleave * (first + i)];
}

void CellEvaluator::contract(const std::array<int, 3>& order, const std::array<const Table*, 3>& tables) {
  int inner = 1;
  for (int i = 0; i + 1 < dim_; ++i) inner *= tables[order[i]]->columns;
  int outer = 1;
  for (int i = dim_ - 1; i >= 0; --i) {
    const Table& table = *tables[order[i]];
    solenoid::contract(table.values.data(), table.rows, table.columns, inner, outer, work_.data(), next_.data());
    work_.swap(next_);
    outer *= table.rows;
    if (i > 0) inner /= tables[order[i - 1]]->columns;
  }
}

void CellEvaluator::component(std::int64_t cell, int c, int derivative) {
  scale_tables(cell);
  load_velocity(cell, c);
  std::array<const Table*, 3> tables{};
  for (int a = 0; a < dim_; ++a) {
    const Direction& direction = directions_[a];
    tables[a] = &(a == c ? direction.continuous : direction.legendre)[a == derivative ? 1 : 0];
  }
  contract(component_order(c), tables);
}

template <class Store>
void CellEvaluator::for_each_value(const std::array<int, 3>& order, Store store) const {
  std::array<int, 3> stride{};
  std::array<int, 3> count{1, 1, 1};
  for (int i = 0; i < dim_; ++i) {
    count[i] = directions_[order[i]].legendre[0].rows;
    stride[i] = 1;
    for (int a = 0; a < order[i]; ++a) stride[i] *= directions_[a].legendre[0].rows;
  }
  const double* value = work_.data();
  for (int l = 0; l < count[2]; ++l) {
    for (int j = 0; j < count[1]; ++j) {
      const int start = j * stride[1] + l * stride[2];
      for (int i = 0; i < count[0]; ++i) store(start + i * stride[0], *value++);
    }
  }
}

void CellEvaluator::velocity(std::int64_t cell, double* u) {
  for (int c = 0; c < dim_; ++c) {
    component(cell, c, -1);
    for_each_value(component_order(c), [&](int point, double value) { u[c + dim_ * point] = value; });
  }
  if (map_ == nullptr) return;
  for (int q = 0; q < points_; ++q, u += dim_) {
    Point w{};
    std::copy_n(u, dim_, w.begin());
    std::copy_n(map_->velocity(w).begin(), dim_, u);
  }
}

void CellEvaluator::gradient(std::int64_t cell, double* g) {
  for (int c = 0; c < dim_; ++c) {
    for (int a = 0; a < dim_; ++a) {
      component(cell, c, a);
      for_each_value(component_order(c), [&](int point, double value) { g[a + dim_ * (c + dim_ * point)] = value; });
    }
  }
  if (map_ == nullptr) return;
  for (int q = 0; q < points_; ++q, g += dim_ * dim_) {
    Matrix3 image{};  // F W F^-1 / J
    for (int i = 0; i < dim_; ++i) {
      for (int j = 0; j < dim_; ++j) {
        for (int c = 0; c < dim_; ++c) {
          for (int a = 0; a < dim_; ++a) {
            image[i][j] += map_->direction(c)[i] * g[a + dim_ * c] * map_->inverse()[a][j] / map_->jacobian();
          }
        }
      }
    }
    for (int i = 0; i < dim_; ++i) std::copy_n(image[i].begin(), dim_, g + dim_ * i);
  }
}

void CellEvaluator::divergence(std::int64_t cell, double* div) {
  std::fill_n(div, points_, 0.0);
  for (int c = 0; c < dim_; ++c) {
    component(cell, c, c);
    for_each_value(component_order(c), [&](int point, double value) { div[point] += value; });
  }
  if (map_ == nullptr) return;
  for (int q = 0; q < points_; ++q) div[q] /= map_->jacobian();
}

void CellEvaluator::pressure(std::int64_t cell, double* p) {
  scale_tables(cell);
  const int block = power(order_ + 1, dim_);
  load_values(cell, velocities_ * block, block, work_.data());
  std::array<const Table*, 3> tables{};
  for (int a = 0; a < dim_; ++a) tables[a] = &directions_[a].legendre[0];
  contract({0, 1, 2}, tables);
  std::copy_n(work_.begin(), points_, p);
}

}  // namespace solenoid
