#pragma once
/// \file
/// What the compiled instances of the convective term and the engine exchange.

#include <cstdint>

#include "engine/convection.hpp"
#include "engine/kernel_data.hpp"

namespace solenoid::cpu {

/// Univariate functions at the Gauss points of the unit interval, [point][function].
struct ConvectionData {
  static constexpr int max_points = convection_points(max_n - 1);

  // Of O and of P (element/basis.hpp), [P]:
  double value[2][max_points][max_n + 1];
  double slope[2][max_points][max_n + 1];
  // The same times the weights of the points:
  double test_value[2][max_points][max_n + 1];
  double test_slope[2][max_points][max_n + 1];
  double end[max_n];  ///< psi_j(1); psi_j(0) = (-1)^j psi_j(1)
  /// 1 / (h_a sqrt(volume)): functions carry 1 / sqrt(volume), so that this is the factor of all integrals with a
  /// derivative in direction a, or over a face across it, and that of |u_a| / h_a.
  double scale[3];
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

using ConvectionKernel = void (*)(ConvectionArguments&);

/// The instance for this machine. \throws InputError that lists the orders of this build.
ConvectionKernel convection_kernel(int dim, int order);

}  // namespace solenoid::cpu
