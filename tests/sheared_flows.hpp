#pragma once
/// \file
/// Edges of sheared cells, and flows on them that are known.

#include <array>
#include <cmath>
#include <numbers>

#include "solenoid/field.hpp"
#include "solenoid/mesh.hpp"

namespace solenoid::test {

/// Unit edges at an angle.
inline std::array<Point, 3> rhombus(double degrees) {
  const double t = degrees * std::numbers::pi / 180.0;
  return {Point{1, 0, 0}, Point{std::cos(t), std::sin(t), 0}, Point{}};
}

/// A linear velocity and a linear pressure are in the spaces, so that they are found to rounding whatever is prescribed
/// where: velocities on all sides, or on one side what pulls there.
class LinearFlow {
 public:
  explicit LinearFlow(int dim) : dim_(dim) {
    if (dim == 2) gradient_ = {Point{0.7, -0.4, 0}, Point{1.1, -0.7, 0}, Point{}};
  }

  [[nodiscard]] VectorField velocity() const {
    VectorField result;
    for (int c = 0; c < dim_; ++c) {
      const Point row = gradient_[c];
      result[c] = ScalarField(
          [row, c](const Point& x) { return 0.3 + 0.1 * c + row[0] * x[0] + row[1] * x[1] + row[2] * x[2]; });
    }
    return result;
  }
  [[nodiscard]] static ScalarField pressure() {
    return ScalarField([](const Point& x) { return 0.4 + slope_[0] * x[0] + slope_[1] * x[1]; });
  }
  [[nodiscard]] static VectorField force() { return {ScalarField(slope_[0]), ScalarField(slope_[1])}; }
  /// nu du/dn - p n
  [[nodiscard]] VectorField traction(const Point& normal, double viscosity) const {
    VectorField result;
    const ScalarField p = pressure();
    for (int c = 0; c < dim_; ++c) {
      double slope = 0.0;
      for (int a = 0; a < dim_; ++a) slope += viscosity * gradient_[c][a] * normal[a];
      result[c] = ScalarField([=](const Point& x) { return slope - p(x) * normal[c]; });
    }
    return result;
  }
  [[nodiscard]] const std::array<Point, 3>& gradient() const { return gradient_; }

 private:
  int dim_;
  std::array<Point, 3> gradient_{Point{0.7, -0.4, 0.2}, Point{1.1, -0.3, 0.5}, Point{-0.6, 0.8, -0.4}};
  static constexpr Point slope_{0.9, -1.3, 0};
};

inline std::array<Point, 3> some_edges(int dim) {
  if (dim == 2) return {Point{1.2, 0.3, 0}, Point{-0.4, 0.9, 0}, Point{}};
  return {Point{1.2, 0.3, 0.1}, Point{-0.4, 0.9, 0.2}, Point{0.2, -0.3, 0.8}};
}

}  // namespace solenoid::test
