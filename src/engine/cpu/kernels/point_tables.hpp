#pragma once
/// \file
/// Univariate functions at Gauss points, as the kernels that work there take them.

#include "element/convection_points.hpp"
#include "engine/kernel_data.hpp"

namespace solenoid::cpu {

/// At the Gauss points of the unit interval, [point][function].
struct PointTables {
  static constexpr int max_points = convection_points(max_n - 1);  // who has the most

  // Of O and of P (element/basis.hpp), [P]:
  double value[2][max_points][max_n + 1];
  double slope[2][max_points][max_n + 1];
  // The same times the weights of the points:
  double test_value[2][max_points][max_n + 1];
  double test_slope[2][max_points][max_n + 1];
  double end[max_n];        ///< psi_j(1); psi_j(0) = (-1)^j psi_j(1)
  double end_slope[max_n];  ///< psi_j'(1); psi_j'(0) = -(-1)^j psi_j'(1)
};

}  // namespace solenoid::cpu
