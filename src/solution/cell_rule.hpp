#pragma once
/// \file
/// Quadrature in cells and on their sides.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "element/basis.hpp"
#include "mesh/grid.hpp"
#include "solenoid/field.hpp"
#include "solution/cell_evaluator.hpp"

namespace solenoid {

/// Tensor Gauss rule in one cell after the other, or on one of its sides: k + 2 points per direction integrate squares
/// of u_h and its derivatives exactly, k + 3 or more are for errors. One object serves one thread.
class CellRule {
 public:
  static constexpr int inside = -1;

  /// `side`: 2a for the lower, 2a + 1 for the upper side in direction a.
  CellRule(const Grid& grid, int points, int side = inside);

  void move_to(std::int64_t cell);

  /// Reference coordinates of the points; the same in all cells.
  [[nodiscard]] const TensorPoints& xi() const { return xi_; }
  [[nodiscard]] std::size_t size() const { return weights_.size(); }

  // Of the cell that it was moved to.
  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }
  /// Coordinate a of point q.
  [[nodiscard]] double coordinate(int a, std::size_t q) const {
    return mapped_.empty() ? axes_[a][index(a, q)] : mapped_[q][a];
  }
  /// Reference coordinate a of point q.
  [[nodiscard]] double reference(int a, std::size_t q) const { return xi_[a][index(a, q)]; }
  /// The field at all points.
  void evaluate(const ScalarField& field, std::span<double> values) const {
    if (mapped_.empty()) {
      field.evaluate(Axes{axes_[0], axes_[1], axes_[2]}, values);
    } else {
      field.evaluate(mapped_, values);
    }
  }

 private:
  [[nodiscard]] std::size_t index(int a, std::size_t q) const { return q / stride_[a] % xi_[a].size(); }

  const Grid* grid_;
  int normal_;                                  // to the side, or -1
  std::array<std::vector<double>, 3> factors_;  // weights per direction on the unit interval
  TensorPoints xi_;
  std::array<std::size_t, 3> stride_{};
  Point widths_{};  // of the cell
  std::vector<double> weights_;
  std::array<std::vector<double>, 3> axes_;
  std::vector<Point> mapped_;  // the points, in cells that are parallelepipeds
};

}  // namespace solenoid
