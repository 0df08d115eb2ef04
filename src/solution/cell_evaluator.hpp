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
  /// Both, in less time.
  void velocity_and_gradient(std::int64_t cell, double* u, double* g);
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
  using Tables2 = std::array<Table, 2>;  // values, derivatives
  struct Direction {
    double width = 0.0;
    Tables2 continuous;
    Tables2 legendre;
  };
  /// What is asked of a function: its values, and its derivatives in directions.
  struct Wanted {
    bool value = false;
    std::array<bool, 3> slope{};
  };
  /// A tensor and the functions that its entries are coefficients of: directions, fastest first, and their tables.
  struct Tensor {
    std::array<int, 3> order{};
    std::array<const Tables2*, 3> tables{};
  };

  /// Makes the tables those of a cell, where its widths differ from those of the last one.
  void scale_tables(std::int64_t cell);

  /// Values first .. first + count - 1 of a record.
  void load_values(std::int64_t record, int first, int count, double* out) const;
  void load_velocity(std::int64_t cell, int c);
  /// put(derivative, point, value) for what is wanted of component c; derivative -1: its value. Not mapped.
  template <class Put>
  void component(std::int64_t cell, int c, const Wanted& wanted, const Put& put);
  /// visit(derivative, values at points in the tensor's order) for what is wanted of a tensor, of which directions
  /// below `level` are points already, `inner` of them, where it was differentiated in one direction or in none (-1).
  template <class Visit>
  void contract(const Tensor& tensor, const Wanted& wanted, int level, int derivative, const double* in, int inner,
                const Visit& visit);
  /// Calls store(point, value) for values in such an order.
  template <class Store>
  void for_each_value(const std::array<int, 3>& order, const double* values, const Store& store) const;
  [[nodiscard]] std::array<int, 3> component_order(int c) const;
  /// From those of a box to those of a parallelepiped, where cells are such.
  void map_velocity(double* u) const;
  void map_gradient(double* g) const;

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
  std::array<std::vector<double>, 3> partial_;  // [level of a contraction]
};

}  // namespace solenoid
