#pragma once
/// \file
/// Values of a discrete solution in cells at tensor points, by sum factorisation.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "mesh/grid.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {

/// Reference coordinates in [0, 1] per direction; point (i, j, l) has index i + nx (j + ny l).
using TensorPoints = std::array<std::vector<double>, 3>;

/// Evaluates in any cell at one set of tensor points: the univariate functions are tabulated once.
/// One object serves one thread.
class CellEvaluator {
 public:
  enum class Tables { values, values_and_derivatives };

  /// `coefficients`: record layout on `grid`, the null record included. Both must outlive this.
  /// \throws InputError if the order is too large.
  CellEvaluator(const Grid& grid, int order, std::span<const double> coefficients,
                EquationKind equation = EquationKind::stokes);
  explicit CellEvaluator(const Solution& solution)
      : CellEvaluator(solution.grid(), solution.problem().order, solution.coefficients(), solution.problem().equation) {
  }

  /// In 2D the third direction is ignored.
  void set_points(const TensorPoints& xi, Tables tables = Tables::values);
  [[nodiscard]] int points() const { return points_; }
  [[nodiscard]] int dim() const { return dim_; }

  /// u_c at index c + dim * point.
  void velocity(std::int64_t cell, double* u);
  void pressure(std::int64_t cell, double* p);  ///< or Poisson's u
  /// du_c/dx_a at index a + dim * (c + dim * point).
  void gradient(std::int64_t cell, double* g);
  void divergence(std::int64_t cell, double* div);

 private:
  /// Values at points (rows) of univariate functions (columns).
  struct Table {
    int rows = 0;
    int columns = 0;
    std::vector<double> of_reference;  ///< on the unit interval
    std::vector<double> values;        ///< in cells of the direction's width

    void scale(double factor);
  };
  struct Direction {
    double width = 0.0;
    std::array<Table, 2> continuous;  // values, derivatives
    std::array<Table, 2> legendre;
  };

  /// Makes the tables those of a cell, where its widths differ from those of the last one.
  void scale_tables(std::int64_t cell);

  /// Values first .. first + count - 1 of a record.
  void load_values(std::int64_t record, int first, int count, double* out) const;
  void load_velocity(std::int64_t cell, int c);
  /// Contracts the tensor in `work_`, whose directions are `order` (fastest first), with one table per direction.
  void contract(const std::array<int, 3>& order, const std::array<const Table*, 3>& tables);
  /// As `contract` for component c, differentiated in direction `derivative` (-1: not); the result is in `work_`.
  void component(std::int64_t cell, int c, int derivative);
  /// Calls store(point, value) for the result, whose directions are `order`.
  template <class Store>
  void for_each_value(const std::array<int, 3>& order, Store store) const;
  [[nodiscard]] std::array<int, 3> component_order(int c) const;

  const Grid& grid_;
  const AffineMap* map_;  // of cells that are parallelepipeds, or nullptr
  int dim_;
  int order_;
  int velocities_;
  int record_;
  std::span<const double> coefficients_;
  int points_ = 0;
  std::array<Direction, 3> directions_;
  std::vector<double> work_;
  std::vector<double> next_;
};

}  // namespace solenoid
