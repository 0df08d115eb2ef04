#include "engine/cuda/upper_hats.hpp"

#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

constexpr int hat_threads = 256;

/// A thread has a number of the hats of a record; lanes are records.
__global__ void add_upper_hats_kernel(const __grid_constant__ UpperHats hats) {
  wait_for_earlier_kernels();
  const CellTopology& topology = hats.topology;
  const int columns = power(hats.order + 1, hats.dim - 1);
  const int block = power(hats.order + 1, hats.dim);
  const int numbers = hats.dim * columns;
  const int record = record_size(hats.dim, hats.order);
  const std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const auto r = static_cast<std::int32_t>(index / (interleave * numbers) * interleave + index % interleave);
  if (r >= topology.records) return;
  const int number = static_cast<int>(index / interleave % numbers);
  const int c = number / columns;
  const bool is_cell = r < topology.cells;
  const std::int32_t below = topology.neighbour[2 * c][r];
  const bool is_shared = below < hats.cells;
  double* const y = hats.y + record_offset(r, record);
  if (!is_cell && hats.alone) {
    const auto is_hat = [&](int i) { return i < hats.dim * block && i % block < columns; };
    for (int i = number; i < record; i += numbers) {
      if (!is_hat(i)) y[i * interleave] = 0.0;
    }
  }
  double& hat = y[(c * block + number % columns) * interleave];
  const Face face = is_cell ? topology.face[2 * c][r] : topology.face[2 * c + 1][below];
  double sum = is_cell || !hats.alone ? hat : 0.0;
  if (is_shared) sum += hats.upper[record_offset(below, numbers) + number * interleave];
  hat = normal_fixed(face) ? 0.0 : sum;
}

}  // namespace

void add_upper_hats(const UpperHats& hats, Stream stream) {
  const std::int64_t numbers = whole_blocks(hats.topology.records) * hats.dim * power(hats.order + 1, hats.dim - 1);
  launch("upper hats", add_upper_hats_kernel, blocks_for<std::int64_t>(numbers, hat_threads), hat_threads, 0, stream,
         hats);
}

}  // namespace solenoid::cuda
