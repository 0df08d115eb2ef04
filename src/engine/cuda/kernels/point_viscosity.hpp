#pragma once
/// \file
/// What the kernels of a viscosity at points (point_viscosity.cuh, sheared_point_viscosity.cuh) exchange with the
/// engine: plain data.

#include "engine/cuda/kernels/arguments.hpp"
#include "engine/point_tables.hpp"

namespace solenoid::cuda {

struct PointViscosityArguments {
  const ViscosityTables* tables;  ///< on the host
  CellTopology topology;
  std::int32_t cells;    ///< that are computed: the first ones
  bool stress;           ///< the viscous term is in its stress form
  const float* weights;  ///< point_weights()
  double sign;           ///< of what is added
  const double* x;
  double* y;      ///< the records of the cells: added to, but for what cells below have of their hats;
  double* upper;  ///< that goes here: dim n^(dim-1) numbers for each cell, interleaved
};

/// Starts the kernel of a dimension and order.
template <int dim, int order>
void add_point_viscosity(const PointViscosityArguments& arguments, Stream stream);

/// On parallelepipeds.
template <int dim, int order>
void add_sheared_point_viscosity(const PointViscosityArguments& arguments, Stream stream);

}  // namespace solenoid::cuda
