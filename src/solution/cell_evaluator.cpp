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
  for (auto& partial : partial_) partial.resize(largest);
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

// The fastest direction first: the others, which take more of the time, go through many numbers side by side.
template <class Visit>
void CellEvaluator::contract(const Tensor& tensor, const Wanted& wanted, int level, int derivative, const double* in,
                             int inner, const Visit& visit) {
  if (level == dim_) return visit(derivative, in);
  const int a = tensor.order[level];
  int outer = 1;
  bool values = derivative >= 0 || wanted.value;
  for (int i = level + 1; i < dim_; ++i) {
    outer *= (*tensor.tables[tensor.order[i]])[0].columns;
    values = values || wanted.slope[tensor.order[i]];
  }
  double* const out = partial_[level].data();
  const auto go_on = [&](const Table& table, int differentiated) {
    solenoid::contract(table.values.data(), table.rows, table.columns, inner, outer, in, out);
    contract(tensor, wanted, level + 1, differentiated, out, inner * table.rows, visit);
  };
  if (values) go_on((*tensor.tables[a])[0], derivative);
  if (derivative < 0 && wanted.slope[a]) go_on((*tensor.tables[a])[1], a);
}

template <class Store>
void CellEvaluator::for_each_value(const std::array<int, 3>& order, const double* values, const Store& store) const {
  std::array<int, 3> stride{};
  std::array<int, 3> count{1, 1, 1};
  for (int i = 0; i < dim_; ++i) {
    count[i] = directions_[order[i]].legendre[0].rows;
    stride[i] = 1;
    for (int a = 0; a < order[i]; ++a) stride[i] *= directions_[a].legendre[0].rows;
  }
  for (int l = 0; l < count[2]; ++l) {
    for (int j = 0; j < count[1]; ++j) {
      const int start = j * stride[1] + l * stride[2];
      for (int i = 0; i < count[0]; ++i) store(start + i * stride[0], *values++);
    }
  }
}

template <class Put>
void CellEvaluator::component(std::int64_t cell, int c, const Wanted& wanted, const Put& put) {
  scale_tables(cell);
  load_velocity(cell, c);
  Tensor tensor{component_order(c), {}};
  for (int a = 0; a < dim_; ++a) {
    tensor.tables[a] = &(a == c ? directions_[a].continuous : directions_[a].legendre);
  }
  contract(tensor, wanted, 0, -1, work_.data(), 1, [&](int derivative, const double* values) {
    for_each_value(tensor.order, values, [&](int point, double value) { put(derivative, point, value); });
  });
}

void CellEvaluator::velocity(std::int64_t cell, double* u) {
  for (int c = 0; c < dim_; ++c) {
    component(cell, c, {.value = true}, [&](int, int point, double value) { u[c + dim_ * point] = value; });
  }
  map_velocity(u);
}

void CellEvaluator::gradient(std::int64_t cell, double* g) {
  for (int c = 0; c < dim_; ++c) {
    component(cell, c, {.slope = {true, true, true}},
              [&](int a, int point, double value) { g[a + dim_ * (c + dim_ * point)] = value; });
  }
  map_gradient(g);
}

void CellEvaluator::velocity_and_gradient(std::int64_t cell, double* u, double* g) {
  for (int c = 0; c < dim_; ++c) {
    component(cell, c, {.value = true, .slope = {true, true, true}}, [&](int a, int point, double value) {
      (a < 0 ? u[c + dim_ * point] : g[a + dim_ * (c + dim_ * point)]) = value;
    });
  }
  map_velocity(u);
  map_gradient(g);
}

void CellEvaluator::map_velocity(double* u) const {
  if (map_ == nullptr) return;
  for (int q = 0; q < points_; ++q, u += dim_) {
    Point w{};
    std::copy_n(u, dim_, w.begin());
    std::copy_n(map_->velocity(w).begin(), dim_, u);
  }
}

void CellEvaluator::map_gradient(double* g) const {
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
    Wanted wanted;
    wanted.slope[c] = true;
    component(cell, c, wanted, [&](int, int point, double value) { div[point] += value; });
  }
  if (map_ == nullptr) return;
  for (int q = 0; q < points_; ++q) div[q] /= map_->jacobian();
}

void CellEvaluator::pressure(std::int64_t cell, double* p) {
  scale_tables(cell);
  const int block = power(order_ + 1, dim_);
  load_values(cell, velocities_ * block, block, work_.data());
  Tensor tensor{{0, 1, 2}, {}};
  for (int a = 0; a < dim_; ++a) tensor.tables[a] = &directions_[a].legendre;
  contract(tensor, {.value = true}, 0, -1, work_.data(), 1,
           [&](int, const double* values) { std::copy_n(values, points_, p); });
}

}  // namespace solenoid
