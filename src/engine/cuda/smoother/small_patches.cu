#include "engine/cuda/smoother/small_patches.hpp"

#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 128;
/// Shared memory of a thread block up to which a multiprocessor has several.
constexpr std::size_t enough_shared_bytes = 64 << 10;

/// What is read and what is written of some patches.
template <class T>
constexpr std::size_t shared_bytes(int size, int patches) {
  return std::size_t{2} * size * patches * sizeof(T);
}

/// A thread block has some patches, a thread a row of the matrix for several of them, which share each entry. Values
/// are moved with patches fastest: their records are neighbours along rows.
template <class T, int patches>
__global__ __launch_bounds__(threads) void smooth_small_kernel(const __grid_constant__ SmallArguments<T> arguments) {
  constexpr int together = patches < 8 ? patches : 8;
  constexpr int parts = patches / together;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ std::int64_t first[2][patches];
  const int size = arguments.of.size;
  T* const values = reinterpret_cast<T*>(memory);  // [unknown][patch]
  T* const corrections = values + size * patches;
  const int begin = static_cast<int>(blockIdx.x) * patches;
  const int count = min(patches, arguments.of.count - begin);
  for (int i = static_cast<int>(threadIdx.x); i < 2 * count; i += threads) {
    first[i % 2][i / 2] = record_offset(arguments.of.records[2 * begin + i], arguments.record_size);
  }
  wait_for_earlier_kernels();
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < size * patches; i += threads) {
    const SmallPlace place = arguments.of.unknowns[i / patches];
    const int patch = i % patches;
    values[i] = patch < count ? arguments.r[first[place.record][patch] + place.offset] : T(0);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < size * parts; i += threads) {
    const int row = i % size;
    const int part = i / size * together;
    const T* const from = values + part;
    T sum[together]{};
#pragma unroll 4
    for (int j = 0; j < size; ++j) {
      const T entry = arguments.inverse[j * size + row];
#pragma unroll
      for (int k = 0; k < together; ++k) sum[k] += entry * from[j * patches + k];
    }
#pragma unroll
    for (int k = 0; k < together; ++k) corrections[row * patches + part + k] = sum[k];
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < size * patches; i += threads) {
    const SmallPlace place = arguments.of.unknowns[i / patches];
    const int patch = i % patches;
    if (patch < count) arguments.x[first[place.record][patch] + place.offset] += arguments.damping * corrections[i];
  }
}

template <class T, int patches>
void launch_small(const SmallArguments<T>& arguments, Stream stream) {
  launch("small patches", smooth_small_kernel<T, patches>, blocks_for(arguments.of.count, patches), threads,
         shared_bytes<T>(arguments.of.size, patches), stream, arguments);
}

}  // namespace

template <class T>
void smooth_small(const SmallArguments<T>& arguments, bool many, Stream stream) {
  const bool fits = shared_bytes<T>(arguments.of.size, many_small_patches) <= enough_shared_bytes;
  if ((many && fits) || Rehearsal::active()) launch_small<T, many_small_patches>(arguments, stream);
  if (!(many && fits) || Rehearsal::active()) launch_small<T, few_small_patches>(arguments, stream);
}

template void smooth_small<float>(const SmallArguments<float>&, bool, Stream);
template void smooth_small<double>(const SmallArguments<double>&, bool, Stream);

}  // namespace solenoid::cuda
