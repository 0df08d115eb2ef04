#pragma once
/// \file
/// Velocities and their gradients at points of cells: in space, and what viscosity makes of them.

#include "engine/cuda/kernels/shape.cuh"
#include "engine/flow_data.hpp"

namespace solenoid::cuda {

/// From those of boxes: velocities, and gradients [component][direction].
template <int dim>
__device__ void take_image(const CellMap& map, double (&u)[dim], double (&g)[dim][dim]) {
  double of_u[dim]{};
  double half[dim][dim]{};  // image g
  unrolled<dim, dim>([&](int i, int c) {
    of_u[i] += map.image[i][c] * u[c];
#pragma unroll
    for (int a = 0; a < dim; ++a) half[i][a] += map.image[i][c] * g[c][a];
  });
  unrolled<dim>([&](int i) {
    u[i] = of_u[i];
#pragma unroll
    for (int j = 0; j < dim; ++j) {
      g[i][j] = 0.0;
#pragma unroll
      for (int a = 0; a < dim; ++a) g[i][j] += half[i][a] * map.pulled[a][j];
    }
  });
}

/// |grad u|^2, or 2 |eps(u)|^2: times nu the power per volume that viscosity takes.
template <int dim>
__device__ double dissipation_of(bool stress_form, const double (&g)[dim][dim]) {
  double sum = 0.0;
  unrolled<dim, dim>([&](int c, int a) { sum += g[c][a] * (stress_form ? g[c][a] + g[a][c] : g[c][a]); });
  return sum;
}

__device__ inline double viscosity_at(const ViscosityOfCells& nu, std::int32_t cell, int point) {
  if (nu.of == nullptr) return nu.number;
  return __ldg(nu.of + static_cast<std::int64_t>(cell) * nu.of_cell + point * nu.of_point);
}

}  // namespace solenoid::cuda
