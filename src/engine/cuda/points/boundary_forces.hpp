#pragma once
/// \file
/// Forces on the boundary of a flow, face by face: plain data and a function that launches the kernel. One kernel
/// serves all orders.

#include <cstdint>

#include "engine/cuda/kernels/points.hpp"
#include "engine/flow_data.hpp"
#include "mesh/record.hpp"
#include "solution/place_tables.hpp"
#include "solution/tested_flow.hpp"

namespace solenoid::cuda {

/// The memory of a thread block, in doubles: tables; then coefficients of the velocity in a cell, [c][i_z][i_y][i_x],
/// and its pressure, of the velocity of du/dt there, and in the cell behind each side.
struct ForceMemory {
  int dim = 0;
  PlaceTables tables{};

  [[nodiscard]] constexpr int pressure() const { return power(tables.n, dim); }
  [[nodiscard]] constexpr int component() const { return (tables.n + 1) * power(tables.n, dim - 1); }
  [[nodiscard]] constexpr int velocity() const { return dim * component(); }
  [[nodiscard]] constexpr int flow_at() const { return tables.size(); }
  [[nodiscard]] constexpr int pressure_at() const { return flow_at() + velocity(); }
  [[nodiscard]] constexpr int change_at() const { return pressure_at() + pressure(); }
  [[nodiscard]] constexpr int behind_at(int side) const { return change_at() + (1 + side) * velocity(); }
  [[nodiscard]] constexpr int numbers() const { return behind_at(2 * dim); }

  [[nodiscard]] constexpr int points_inside() const { return power(tables.points, dim); }
  [[nodiscard]] constexpr int points_on_side() const { return power(tables.points, dim - 1); }
  [[nodiscard]] constexpr int points() const { return points_inside() + 2 * dim * points_on_side(); }
};

/// A boundary face: the side of a cell, and the number of this among the cells on the boundary.
struct BoundaryFace {
  std::int32_t cell;
  std::int32_t number;
  std::int32_t side;
};

/// What is prescribed on the faces of a cell on the boundary: on a side the condition -1 - data whose data are
/// constant, or those at points with the number `data`.
struct DataOfSides {
  std::int32_t of[6];
};

/// Pointers are to device memory. Arrays of values at points: [face or cell][c][point], x fastest.
struct BoundaryForcesArguments {
  TestedFlow tested;
  ForceMemory memory;
  const double* tables;
  CellPlaces places;
  const std::int32_t* neighbour[6];  ///< [side][record], as CellTopology has them
  const Face* face[6];
  CellMap map;
  double measure;   ///< of a cell with edges of length 1, next to that of its box;
  double areas[3];  ///< of the sides across a direction, the same
  const BoundaryFace* faces;
  const std::int32_t* first;  ///< [part]: of the faces of a part of a body, which a thread block adds up
  std::int32_t parts;
  const DataOfSides* data_of;  ///< [number of a cell]
  const Point* constants;      ///< [condition]
  const double* values;
  Point force;             ///< constant, or
  const double* force_at;  ///< at points of cells by number
  double reaction;
  const double* reactions;     ///< of cells by number, or nullptr
  ViscosityOfCells viscosity;  ///< constant in cells, or
  const double* viscosity_at;  ///< by number of a cell at the points in it, then on each side, nu_F where that is inner
  const double* flow;
  const double* acceleration;  ///< or nullptr
};

/// sums[part]
void boundary_forces(const BoundaryForcesArguments& arguments, ForceSums* sums, Stream stream);

}  // namespace solenoid::cuda
