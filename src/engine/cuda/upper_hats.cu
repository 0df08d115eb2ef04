#include "engine/cuda/upper_hats.hpp"

#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

constexpr int hat_threads = 128;

/// A thread has the hats of a record in direction blockIdx.y, four loads of either kind under way at once. Traffic per
/// hat that is shared: 24 bytes.
__global__ void __launch_bounds__(hat_threads) add_upper_hats_kernel(const __grid_constant__ UpperHats hats) {
  wait_for_earlier_kernels();
  const CellTopology& topology = hats.topology;
  const auto r = static_cast<std::int32_t>(blockIdx.x * hat_threads + threadIdx.x);
  if (r >= topology.records) return;
  const auto c = static_cast<int>(blockIdx.y);
  const int columns = power(hats.order + 1, hats.dim - 1);
  const int block = columns * (hats.order + 1);
  const int record = record_size(hats.dim, hats.order);
  const bool is_cell = r < topology.cells;
  const std::int32_t below = topology.neighbour[2 * c][r];
  const bool fixed = normal_fixed(is_cell ? topology.face[2 * c][r] : topology.face[2 * c + 1][below]);
  const bool is_shared = below < hats.cells;
  double* __restrict__ const hat = hats.y + record_offset(r, record) + c * block * interleave;
  const double* __restrict__ const upper =
      hats.upper + record_offset(below, hats.dim * columns) + c * columns * interleave;
#pragma unroll 4
  for (int i = 0; i < columns * interleave; i += interleave) {
    const double share = is_shared ? __ldcs(upper + i) : 0.0;
    hat[i] = fixed ? 0.0 : hat[i] + share;
  }
}

/// A thread has the hats of a record in direction blockIdx.y. Traffic per hat: 8 bytes.
__global__ void __launch_bounds__(hat_threads) clear_hats_kernel(const __grid_constant__ Hats hats) {
  wait_for_earlier_kernels();
  const auto r = static_cast<std::int32_t>(blockIdx.x * hat_threads + threadIdx.x);
  if (r >= hats.topology.records) return;
  const auto c = static_cast<int>(blockIdx.y);
  const int columns = power(hats.order + 1, hats.dim - 1);
  const int block = columns * (hats.order + 1);
  const int record = record_size(hats.dim, hats.order);
  const bool is_cell = r < hats.topology.cells;
  const int rest = c == hats.dim - 1 ? record : (c + 1) * block;  // of a component, with the last one the pressures
  const int end = is_cell ? c * block + columns : rest;
  double* __restrict__ const y = hats.y + record_offset(r, record);
#pragma unroll 4
  for (int i = c * block; i < end; ++i) y[i * interleave] = 0.0;
}

}  // namespace

void clear_hats(const Hats& hats, Stream stream) {
  const dim3 blocks(blocks_for(hats.topology.records, hat_threads), static_cast<unsigned>(hats.dim));
  launch("hats", clear_hats_kernel, blocks, hat_threads, 0, stream, hats);
}

void add_upper_hats(const UpperHats& hats, Stream stream) {
  const dim3 blocks(blocks_for(hats.topology.records, hat_threads), static_cast<unsigned>(hats.dim));
  launch("upper hats", add_upper_hats_kernel, blocks, hat_threads, 0, stream, hats);
}

}  // namespace solenoid::cuda
