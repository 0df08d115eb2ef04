/// \file
/// A thread has a record: the velocities on its lower faces, and the divergence in its cell. Cells of an image are
/// scattered, so that no two groups of them look alike; what is around each is looked up. Traffic per cell in 3D: 31
/// bytes of topology, 4 numbers read and 4 written (6 with b); neighbours come from the caches.

#include "engine/cuda/mac_operator.hpp"

#include "engine/cuda/kernels/shape.cuh"
#include "engine/cuda/launch.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 128;

template <int dim, class T>
__global__ void __launch_bounds__(threads)
    apply_mac_kernel(const __grid_constant__ MacStencil<T> stencil, const __grid_constant__ CellTopology topology,
                     const T* x, const T* b, T* y) {
  wait_for_earlier_kernels();
  const auto r = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (r >= topology.records) return;
  constexpr int size = dim + 1;
  const auto place = [](std::int32_t record, int i) { return record_offset(record, size) + i * interleave; };
  const auto value = [&](std::int32_t record, int i) { return __ldg(x + place(record, i)); };
  const auto write = [&](int i, T image) {
    const std::int64_t at = place(r, i);
    y[at] = b == nullptr ? image : b[at] - image;
  };
  const bool is_cell = r < topology.cells;
  const int only = is_cell ? -1 : direction_of_hats(topology, r);
  const T p = is_cell ? value(r, dim) : T(0);
  T divergence = 0;
#pragma unroll
  for (int c = 0; c < dim; ++c) {
    if (!is_cell && c != only) continue;
    const std::int32_t below = topology.neighbour[2 * c][r];
    const T u = value(r, c);
    if (is_cell) divergence += stencil.inverse_h[c] * (value(topology.neighbour[2 * c + 1][r], c) - u);
    const bool fixed = is_cell ? normal_fixed(topology.face[2 * c][r]) : normal_fixed(topology.face[2 * c + 1][below]);
    T image = 0;
    if (!fixed) {
      image = stencil.inverse_h[c] * (p - value(below, dim));
      T diagonal = 0;
      stencil.for_row(
          topology, r, c, [&](T entry) { diagonal += entry; },
          [&](std::int32_t record, T entry) { image += entry * value(record, c); });
      image += diagonal * u;
    }
    write(c, image);
  }
  if (is_cell) write(dim, -divergence);
}

}  // namespace

template <class T>
void apply_mac(const MacStencil<T>& stencil, const CellTopology& topology, const T* x, const T* b, T* y,
               Stream stream) {
  launch("marker-and-cell scheme", stencil.dim == 2 ? apply_mac_kernel<2, T> : apply_mac_kernel<3, T>,
         blocks_for(topology.records, threads), threads, 0, stream, stencil, topology, x, b, y);
}

template void apply_mac(const MacStencil<float>&, const CellTopology&, const float*, const float*, float*, Stream);
template void apply_mac(const MacStencil<double>&, const CellTopology&, const double*, const double*, double*, Stream);

}  // namespace solenoid::cuda
