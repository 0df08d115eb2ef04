#pragma once
/// \file
/// What kernels that have flows at the Gauss points of cells are told of cells, and what they say of flows: plain data.

namespace solenoid {

/// Gauss points per direction for products of two functions of order k: exact for them.
constexpr int flow_points(int order) { return order + 2; }

/// nu at flow_points(k) Gauss points per direction of cells: `number`, or of[cell * of_cell + point * of_point], x
/// fastest.
struct ViscosityOfCells {
  double number;
  const double* of;  ///< in the memory of the engine, or nullptr
  int of_cell;
  int of_point;
};

/// Where cells are parallelepipeds (problem/affine_map.hpp), with w and W the velocity of their boxes and its gradient:
/// u = image w, grad u = image W pulled.
struct CellMap {
  bool sheared;
  double image[3][3];   ///< F / J
  double pulled[3][3];  ///< F^-1
};

/// Sums over a share of the cells, for FlowIntegrals. Where cells are sheared they are those of boxes: all but the
/// maxima J times as large in space.
struct FlowPartial {
  double velocity[3];
  double velocity_square;
  double gradient_square;
  double vorticity_square;
  double dissipation;   ///< 0 without a viscosity
  double speed_square;  ///< the maximum
  double divergence;    ///< the maximum
};

}  // namespace solenoid
