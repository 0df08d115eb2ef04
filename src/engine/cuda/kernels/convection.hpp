#pragma once
/// \file
/// What the kernels of the convective term (convection.cuh, sheared_convection.cuh) exchange with the engine: plain
/// data.

#include "element/convection_points.hpp"
#include "engine/convection.hpp"
#include "engine/cuda/kernels/arguments.hpp"
#include "engine/point_tables.hpp"

namespace solenoid::cuda {

/// Functions of O, psi_0..psi_k, and of P, phi_0 = 1, phi_1 = x - 1/2, phi_{j+1} = b_j, at the Gauss points of the unit
/// interval. Points and functions are symmetric, so that the lower half of the points is enough.
struct ConvectionTables {
  static constexpr int half_points = (convection_points(max_n - 1) + 1) / 2;
  enum Space { O, P };

  double value[2][half_points][max_n + 1];         ///< of O and of P, [point][function]
  double test[2][half_points][max_n + 1];          ///< times the weights of the points
  double test_derivative[half_points][max_n + 1];  ///< psi_i' times the weights
  double derivative[max_n][max_n];                 ///< psi_i' = sum of derivative[i][l] phi_l
  double end[max_n];                               ///< psi_i(1) = sqrt(2 i + 1)
  /// 1 / (h_a sqrt(volume)), of integrals with a derivative in direction a, of those over faces across it and of |u_a|
  /// / h_a.
  double scale[3];
};

struct ConvectionArguments {
  ConvectionTables tables;
  CellTopology topology;
  RecordBlocks blocks;
  std::int32_t cells;  ///< that are computed: the first ones
  int multiprocessors;
  ConvectiveFlux flux;
  const double* u;
  double* y;            ///< gets the records of the cells; hats are added to (clear_hats)
  std::uint64_t* rate;  ///< the bits of a number that becomes at least the result
};

/// Starts the kernel of a dimension and order.
template <int dim, int order>
void convect(const ConvectionArguments& arguments, Stream stream);

/// On parallelepipeds (sheared_convection.cuh).
struct ShearedConvectionFactors {
  double metric[3][3];  ///< g / J^2
  double scale[3];      ///< 1 / (h_a sqrt(volume)) with the volume of boxes, as in ConvectionTables, of integrals
  double crossing[3];   ///< 1 / J times that, of |u_a| / (J h_a)
};

struct ShearedConvectionArguments {
  const PointTables* tables;  ///< on the host, at convection_points(k) Gauss points
  ShearedConvectionFactors factors;
  CellTopology topology;
  std::int32_t cells;  ///< that are computed: the first ones
  ConvectiveFlux flux;
  const double* u;
  double* y;            ///< as in ConvectionArguments, with what hats have on outflow sides
  std::uint64_t* rate;  ///< as there
};

/// Starts the kernel of a dimension and order.
template <int dim, int order>
void convect_sheared(const ShearedConvectionArguments& arguments, Stream stream);

/// A face that the flow may leave through: its hats are those of `record` in direction side / 2.
struct OpenFace {
  std::int32_t record;
  std::int32_t side;
};

/// Of outflow sides, for any dimension and order.
struct ConvectionOutflow {
  ConvectionTables tables;
  int dim;
  int order;
  const double* u;
  double* y;
};
/// Adds <max(u_n, 0) u_n, v_n> on these faces.
void add_outflow(const ConvectionOutflow& hats, const OpenFace* faces, std::int32_t count, Stream stream);

}  // namespace solenoid::cuda
