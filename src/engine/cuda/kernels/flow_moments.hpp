#pragma once
/// \file
/// What the kernel of a flow's moments (flow_moments.cuh) exchanges with the engine: plain data.

#include "element/moments.hpp"
#include "engine/cuda/kernels/points.hpp"
#include "engine/flow_data.hpp"
#include "engine/point_tables.hpp"

namespace solenoid::cuda {

/// Pointers are to device memory, but for `tables`.
struct FlowMomentsArguments {
  const PointTables* tables;  ///< on the host, for moment_points(k) points
  CellPlaces places;
  const std::int32_t* upper[3];  ///< [direction][cell]: record with the upper hats
  std::int32_t cells;
  CellMap map;
  bool stress_form;
  ViscosityOfCells viscosity;
  double part;         ///< r
  const double* flow;  ///< u
  const double* mean;  ///< U so far
  double* moments;     ///< one after the other,
  std::int64_t size;   ///< so many numbers each
  int multiprocessors;
};

template <int dim, int order>
void add_flow_moments(const FlowMomentsArguments& arguments, Stream stream);

}  // namespace solenoid::cuda
