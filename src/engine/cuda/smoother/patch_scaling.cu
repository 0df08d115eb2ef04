#include "engine/cuda/smoother/patch_scaling.hpp"

#include "engine/cuda/kernels/element_rows.cuh"
#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void scale_kernel(PatchesOfColour<T> patches, CellTopology topology, RecordShape records, const T* b, T* r) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  wait_for_earlier_kernels();
  if (i >= records.numbers) return;
  const std::int64_t row = i / interleave;
  const auto record = static_cast<std::int32_t>(row / records.size * interleave + i % interleave);
  const int value = static_cast<int>(row % records.size);
  T factor{};
  if (record < topology.records) {
    // Hats in records of their own belong to the patch below.
    const std::int32_t cell =
        record < topology.cells ? record : topology.neighbour[2 * direction_of_hats(topology, record)][record];
    const T root = root_of_patch(patches, topology, records.dim, cell);
    factor = root;
    if (value < records.velocities) {
      const bool is_share = record == cell && value % records.block < records.hats &&
                            hat_of_patch(patches.hats[cell], value / records.block) == HatOfPatch::share;
      factor = root == T(0) || is_share ? T(0) : T(1) / root;
    }
  }
  r[i] = factor * b[i];
}

}  // namespace

template <class T>
void scale_by_patch(const PatchesOfColour<T>& patches, const CellTopology& topology, const RecordShape& records,
                    const T* b, T* r, Stream stream) {
  launch("to local problems", scale_kernel<T>, blocks_for(records.numbers, std::int64_t{threads}), threads, 0, stream,
         patches, topology, records, b, r);
}

template void scale_by_patch(const PatchesOfColour<float>&, const CellTopology&, const RecordShape&, const float*,
                             float*, Stream);
template void scale_by_patch(const PatchesOfColour<double>&, const CellTopology&, const RecordShape&, const double*,
                             double*, Stream);

}  // namespace solenoid::cuda
