#pragma once
/// \file
/// What the kernel of a flow's integrals (flow_integrals.cuh) exchanges with the engine: plain data.

#include "engine/cuda/kernels/points.hpp"
#include "engine/flow_data.hpp"
#include "engine/point_tables.hpp"

namespace solenoid::cuda {

/// Of a flow with the coefficients x. Sums are those of boxes: J times as large where cells are sheared. Pointers are
/// to device memory, but for `tables`.
struct FlowIntegralsArguments {
  const PointTables* tables;  ///< on the host, for flow_points(k) points
  CellPlaces places;
  const std::int32_t* upper[3];  ///< [direction][cell]: record with the upper hats
  std::int32_t cells;
  CellMap map;
  bool stress_form;
  ViscosityOfCells viscosity;  ///< or 0
  const double* x;
  int multiprocessors;
  FlowPartial* partials;  ///< room for most_flow_blocks of each multiprocessor
};
/// Thread blocks that a multiprocessor has at a time, at most.
inline constexpr int most_flow_blocks = 16;

/// Starts the kernel of a dimension and order. Returns the number of its thread blocks, each of which has a share of
/// the cells that depends on nothing else and leaves its sums.
template <int dim, int order>
int integrate_flow(const FlowIntegralsArguments& arguments, Stream stream);

}  // namespace solenoid::cuda
