#pragma once
/// \file
/// A discrete velocity and pressure, or the solution of Poisson's equation, with what people ask of them.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "solenoid/problem.hpp"

namespace solenoid {

class Grid;

using Gradient = std::array<std::array<double, 3>, 3>;  ///< [component][direction]

/// u_h and p_h with point evaluation and integrals. Cheap to copy (shares its coefficients). With Poisson's equation
/// there is the scalar u_h alone: value() and value_error(); what asks for a velocity throws an InputError.
class Solution {
 public:
  /// Coefficients in record layout (docs/method.md: one record of (dim+1)(k+1)^dim numbers per cell, with Poisson's
  /// equation (k+1)^dim, the records interleaved by 16) on `grid`, which stores the normal unknowns of all upper
  /// boundary faces if there is a velocity.
  Solution(Problem problem, std::shared_ptr<const Grid> grid, std::vector<double> coefficients);

  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] const Grid& grid() const { return *grid_; }
  [[nodiscard]] std::span<const double> coefficients() const { return *coefficients_; }

  /// Cell that holds the point (of several, one), or -1 outside the domain.
  [[nodiscard]] std::int64_t find_cell(const Point& point) const;
  /// Values at points. Outside the domain they are NaN. Tangential velocity on a face is that of one of its cells.
  [[nodiscard]] std::vector<Point> velocity(std::span<const Point> points) const;
  [[nodiscard]] std::vector<double> pressure(std::span<const Point> points) const;
  [[nodiscard]] std::vector<double> value(std::span<const Point> points) const;  ///< of Poisson's u
  [[nodiscard]] std::vector<Gradient> velocity_gradient(std::span<const Point> points) const;

  /// Values in one cell at tensor points: reference coordinates `xi[a]` in [0, 1] per direction a,
  /// point (i, j, l) at index i + nx (j + ny l). `u` has dim entries per point, component fastest. With Poisson's
  /// equation `u` is left empty and its values are in `p`.
  void evaluate_cell(std::int64_t cell, const std::array<std::vector<double>, 3>& xi, std::vector<double>& u,
                     std::vector<double>& p) const;
  /// du_c/dx_a at the same points: `g` has dim * dim entries per point, index c * dim + a fastest.
  void evaluate_cell_gradient(std::int64_t cell, const std::array<std::vector<double>, 3>& xi,
                              std::vector<double>& g) const;

  /// Integral of u.e_axis over the part of the plane {x_axis = position} inside the domain. \throws InputError if there
  /// is no such axis or the position is not finite.
  [[nodiscard]] double flux(int axis, double position) const;
  [[nodiscard]] double kinetic_energy() const;  ///< 1/2 integral |u|^2
  [[nodiscard]] double dissipation() const;     ///< nu integral |grad u|^2, cell by cell
  [[nodiscard]] double divergence_max() const;  ///< max |div u| over quadrature points, scaled by max |u| / h
  [[nodiscard]] double max_speed() const;       ///< max |u| over quadrature points
  /// L2 norms of the errors; the pressure's after removing the mean of the difference from each part of the domain that
  /// has no outflow side.
  [[nodiscard]] double velocity_error(const VectorField& exact) const;
  [[nodiscard]] double pressure_error(const ScalarField& exact) const;
  /// L2 norm of the error of Poisson's u, after removing the mean where u is known up to a constant.
  [[nodiscard]] double value_error(const ScalarField& exact) const;

 private:
  Problem problem_;
  std::shared_ptr<const Grid> grid_;
  std::shared_ptr<const std::vector<double>> coefficients_;
};

}  // namespace solenoid
