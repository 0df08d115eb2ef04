#pragma once
/// \file
/// What the kernels of forces, compiled for each instruction set, and forces.cpp exchange: plain data, so that no
/// library code is compiled for a wide instruction set. One kernel serves all orders.

#include <array>

#include "mesh/face.hpp"
#include "solution/place_tables.hpp"
#include "solution/tested_flow.hpp"

namespace solenoid {

/// Boundary faces on one side of cells, each in a lane. The cells have the same kinds of faces. Arrays are [..][lane];
/// points count x fastest, those inside of cells come before those on their sides.
///
/// Of functions and directions a component has tensors of n + 1 in its own direction and n in others, [i_z][i_y][i_x].
struct FaceLanes {
  static constexpr int most_lanes = 8;
  static constexpr int most_functions = 14;  ///< n + 1
  static constexpr int most_points = 20;     ///< per direction

  /// Cells with what makes their velocity.
  struct Cells {
    const double* widths;    ///< [a]
    const double* velocity;  ///< [c] tensors of coefficients over sqrt(volume); those that are read (TestedFlow)
  };

  TestedFlow tested;
  PlaceTables layout;
  const double* tables;
  Matrix3 image;   ///< F / J
  double measure;  ///< of a cell with edges of length 1, next to that of its box;
  Point areas;     ///< of the sides across a direction, the same

  int side;
  std::array<Face, 6> faces;
  const double* corner;  ///< [a]
  Cells cells;
  std::array<Cells, 6> behind;  ///< of interior faces
  const double* pressure;       ///< as a tensor, n in each direction, over sqrt(volume)
  const double* change;         ///< of du/dt, as the velocity; or nullptr
  const double* force;          ///< [c][point inside]
  const double* mass;
  const double* viscosity;            ///< [point]
  std::array<const double*, 6> data;  ///< [c][point]: prescribed, of boundary faces
};

/// What faces have, [..][lane]: rows where the normal velocity is fixed, and forces that are known point by point.
struct FaceSums {
  std::array<std::array<double, FaceLanes::most_lanes>, 4> rows{};   ///< Rows: hat, way
  std::array<std::array<double, FaceLanes::most_lanes>, 12> sums{};  ///< ForceSums: force, torque, pressure, viscous
};

struct ForceKernel {
  int lanes;  ///< at most `most_lanes`
  void (*add_up)(const FaceLanes& faces, FaceSums& result);
};

/// The one for this machine.
const ForceKernel& force_kernel();

}  // namespace solenoid
