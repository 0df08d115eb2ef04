#pragma once
/// \file
/// Univariate functions at Gauss points, for kernels that work there: plain data.

#include "element/convection_points.hpp"
#include "element/viscosity_points.hpp"
#include "engine/kernel_data.hpp"
#include "mesh/record.hpp"

namespace solenoid {

/// At the Gauss points of the unit interval, [point][function].
struct PointTables {
  static constexpr int max_points = convection_points(max_n - 1);  // who has the most

  // Of O and of P (element/basis.hpp), [P]:
  double value[2][max_points][max_n + 1];
  double slope[2][max_points][max_n + 1];
  // The same times the weights of the points:
  double test_value[2][max_points][max_n + 1];
  double test_slope[2][max_points][max_n + 1];
  double weight[max_points];
  double end[max_n];                        ///< psi_j(1); psi_j(0) = (-1)^j psi_j(1)
  double end_slope[max_n];                  ///< psi_j'(1); psi_j'(0) = -(-1)^j psi_j'(1)
  double parallel_end_slope[2][max_n + 1];  ///< of P at 0 and at 1, [end][function]
};

/// Of order k, for so many Gauss points.
PointTables make_point_tables(int order, int points);

/// Of a viscosity at points (engine/point_weights.hpp).
struct ViscosityTables {
  PointTables functions;  ///< at viscosity_points(k) Gauss points
  double penalty;         ///< gamma h
  double inverse_h[3];
  // Of parallelepipeds (problem/affine_map.hpp):
  double metric[3][3];   ///< g
  double inverse[3][3];  ///< G / J
  double turned;         ///< 1 / J
};

/// Weights of a viscosity at points for each cell: of the points in it, then of those on its faces, [side][point].
constexpr int point_weights_of_cell(int dim, int order) {
  return power(viscosity_points(order), dim) + 2 * dim * power(viscosity_points(order), dim - 1);
}

}  // namespace solenoid
