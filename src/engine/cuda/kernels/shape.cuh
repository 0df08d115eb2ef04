#pragma once
/// \file
/// Records as kernels see them, and which thread has which cell. Lanes of a warp are neighbouring records, so that they
/// load one value of all of them with unit stride.

#include <type_traits>

#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {

/// Sizes of a record; Poisson's equation has no velocity components.
template <int dim_, int order, int velocities = dim_>
struct Shape {
  static constexpr int dim = dim_;
  static constexpr int n = order + 1;
  static constexpr int columns = power(n, dim - 1);  // tangential modes of a velocity component
  static constexpr int block = power(n, dim);
  static constexpr int record = (velocities + 1) * block;
  static constexpr int lines = dim == 3 ? n : 1;

  /// Place of value 0 of a record.
  __device__ static std::int64_t offset(std::int32_t r) {
    const auto index = static_cast<std::uint32_t>(r);  // spares the signed division
    return static_cast<std::int64_t>(index / interleave) * (interleave * record) + index % interleave;
  }
  __device__ static int pressure_stride(int a) { return a == 0 ? 1 : a == 1 ? n : n * n; }
};

/// visit(i), visit(i, j) or visit(i, j, k) for indices below the sizes: unrolled loops, the last one inside.
template <int size, int... sizes, class F>
__device__ void unrolled(F&& visit) {
#pragma unroll
  for (int i = 0; i < size; ++i) {
    if constexpr (sizeof...(sizes) == 0) {
      visit(i);
    } else {
      unrolled<sizes...>([&](auto... rest) { visit(i, rest...); });
    }
  }
}

/// visit(job) for the jobs below `count` of one member of a team.
template <int count, int team, class F>
__device__ void for_jobs_of_member(int member, const F& visit) {
#pragma unroll 1
  for (int job = member; job < count; job += team) visit(job);
}

/// visit(integral_constant) for a number below `count` that is known at run time.
template <int count, int first = 0, class F>
__device__ void with_constant(int value, const F& visit) {
  if constexpr (first < count) {
    if (value == first) {
      visit(std::integral_constant<int, first>());
    } else {
      with_constant<count, first + 1>(value, visit);
    }
  }
}

/// m^T x or m x along the index of a tensor that has this stride.
template <bool transposed, int stride, class T, int n, int size>
__device__ void apply_along(const T (&m)[n][n], T (&x)[size]) {
#pragma unroll
  for (int line = 0; line < size / n; ++line) {
    T* const first = x + (line / stride * n * stride + line % stride);
    T out[n];
#pragma unroll
    for (int i = 0; i < n; ++i) {
      out[i] = T(0);
#pragma unroll
      for (int j = 0; j < n; ++j) out[i] += (transposed ? m[j][i] : m[i][j]) * first[j * stride];
    }
#pragma unroll
    for (int i = 0; i < n; ++i) first[i * stride] = out[i];
  }
}

/// In a hat-only record: the direction of its hats.
__device__ inline int direction_of_hats(const CellTopology& topology, std::int32_t hat) {
  int c = 0;
  while (topology.neighbour[2 * c][hat] == topology.null) ++c;
  return c;
}

/// The cell that a thread works on, or the null record: blockDim.x records of the list for `part`.
__device__ inline std::int32_t cell_of_thread(const RecordBlocks& blocks, const CellTopology& topology, unsigned part) {
  const auto place = static_cast<std::int32_t>(part * blockDim.x + threadIdx.x);
  if (place / interleave >= blocks.count) return topology.null;
  const std::int32_t cell = blocks.list[place / interleave] * interleave + place % interleave;
  return cell < topology.cells ? cell : topology.null;
}

}  // namespace solenoid::cuda
