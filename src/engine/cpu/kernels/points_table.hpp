#pragma once
/// \file
/// What the kernels that work at Gauss points and the engine exchange.

#include <cstdint>

#include "engine/convection.hpp"
#include "engine/flow_data.hpp"
#include "engine/point_tables.hpp"

namespace solenoid::cpu {

struct ConvectionData {
  PointTables functions;  ///< at convection_points(k) Gauss points
  /// 1 / (h_a sqrt(volume)): functions carry 1 / sqrt(volume), so that this is the factor of all integrals with a
  /// derivative in direction a, or over a face across it, and that of |u_a| / h_a.
  double scale[3];
  double carried[3][3];  ///< of parallelepipeds: g / J^2
};

/// The cells [begin, end), of which begin is a multiple of 16.
struct ConvectionArguments {
  const ConvectionData* data;
  CellTopology topology;
  std::int32_t begin;
  std::int32_t end;
  double upwind;  ///< s (engine/convection.hpp)
  const double* u;
  double* y;      ///< gets the records of the cells, where their own hats lack what cells below have of them;
  double* upper;  ///< that goes here: dim n^(dim-1) numbers for each cell, interleaved
  double rate;    ///< result
};

/// The cells [begin, end), of which begin is a multiple of 16.
struct PointViscosityArguments {
  const ViscosityTables* tables;
  bool stress;           ///< the viscous term is in its stress form
  const float* weights;  ///< point_weights()
  CellTopology topology;
  std::int32_t begin;
  std::int32_t end;
  double sign;  ///< of what is added
  const double* x;
  double* y;      ///< the records of the cells: added to, but for what cells below have of their hats;
  double* upper;  ///< that goes here: dim n^(dim-1) numbers for each cell, interleaved
};

/// Of flows on a level.
struct FlowData {
  PointTables functions;  ///< at flow_points(k) Gauss points
  double inverse_h[3];
  double root_volume;  ///< of a cell's box
  CellMap map;
  bool stress;  ///< dissipation is that of the viscous term in its stress form
};

/// The cells [begin, end), of which begin is a multiple of 16.
struct FlowMomentsArguments {
  const FlowData* data;
  ViscosityOfCells viscosity;
  CellTopology topology;
  std::int32_t begin;
  std::int32_t end;
  double part;         ///< r (engine/flow_moments.hpp)
  const double* flow;  ///< u
  const double* mean;  ///< U so far
  double* moments;     ///< one after the other,
  std::int64_t size;   ///< so many numbers each
};

/// The cells [begin, end), of which begin is a multiple of 16, of a flow with the coefficients x.
struct FlowIntegralsArguments {
  const FlowData* data;
  ViscosityOfCells viscosity;  ///< or 0
  CellTopology topology;
  std::int32_t begin;
  std::int32_t end;
  const double* x;
};

struct PointsTable {
  void (*convect)(ConvectionArguments&);
  void (*convect_sheared)(ConvectionArguments&);  ///< nullptr: order 0
  void (*add_viscosity)(const PointViscosityArguments&);
  void (*add_viscosity_sheared)(const PointViscosityArguments&);  ///< nullptr: order 0
  void (*add_flow_moments)(const FlowMomentsArguments&);
  FlowPartial (*integrate_flow)(const FlowIntegralsArguments&);
};

/// The instance for this machine. \throws InputError that lists the orders of this build.
const PointsTable& points_table(int dim, int order);

}  // namespace solenoid::cpu
