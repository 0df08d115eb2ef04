#pragma once
/// \file
/// What kernels that have flows at the Gauss points of cells are told of cells: plain data.

namespace solenoid::cuda {

/// nu at k + 2 Gauss points per direction of cells: `number`, or of[cell * of_cell + point * of_point], x fastest.
struct ViscosityOfCells {
  double number;
  const double* of;  ///< on the device, or nullptr
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

}  // namespace solenoid::cuda
