#pragma once
/// \file
/// What the operator and the local solvers of the paper share: where a patch's unknowns are, and tensor contractions.
///
/// A component of the velocity is a matrix of `rows` x size^2 values, [i_c][b][a] (paper, Figure "data layout"): its
/// own (parallel) direction c is slowest, with N + 1 functions or, without those at the ends, N - 1; N = 2 (k + 1). A
/// thread has a "column": all i_c of one (b, a). It contracts along c in registers; along a and b values pass through
/// shared memory. A pressure is a tensor [z][y][x] of N^3 values.

#include <cuda_runtime.h>

#include "studies/paper_kernels/arguments.hpp"

namespace solenoid::paper {

constexpr int whole_warps(int threads) { return (threads + 31) / 32 * 32; }

/// What shared memory delivers, in bytes, if every thread of a block makes so many accesses without bank conflicts: one
/// transaction of 128 bytes each for values of which a warp takes few different ones (elements of a matrix, or of N
/// neighbouring columns), as many as their bytes need for values of which every thread takes its own.
constexpr double shared_traffic(int threads, double few, double own, int bytes) {
  return 128.0 * (threads / 32) * (few + own * bytes / 4.0);
}

/// Pressures in shared memory. Threads take them along any direction; `spread` rows and planes keep them out of each
/// other's banks.
template <int size, bool spread>
struct PressureLayout {
  static constexpr int row = spread ? size + 1 : size;
  static constexpr int plane = spread ? size * row + 1 : size * size;
  static constexpr int values = size * plane;

  __device__ static int stride(int direction) { return direction == 0 ? 1 : direction == 1 ? row : plane; }
};

/// Place of the (ends, middle and) inner unknowns of a column of component c in vectors.
template <int k>
struct Column {
  static constexpr int n = k + 1;

  __device__ Column(const Patches& patches, int patch, int c, int b, int a) {
    const int direction_a = (c + 1) % 3;
    const int direction_b = (c + 2) % 3;
    const std::int32_t* const cells = patches.cells + 8 * patch + ((a / n) << direction_a | (b / n) << direction_b);
    const std::int32_t* const lower = patches.first + entities * cells[0];
    const std::int32_t* const upper = patches.first + entities * cells[1 << c];
    const int offset = b % n * n + a % n;
    face[0] = lower[2 * c + lower_face] + offset;
    face[1] = lower[2 * c + upper_face] + offset;
    face[2] = upper[2 * c + upper_face] + offset;
    inside[0] = lower[interior] + c * k * n * n + offset;
    inside[1] = upper[interior] + c * k * n * n + offset;
  }
  /// 0 <= i <= 2n; known when compiled.
  __device__ int operator[](int i) const { return i % n == 0 ? face[i / n] : inside[i / n] + (i % n - 1) * n * n; }

  int face[3];
  int inside[2];
};

/// Place of a pressure in vectors.
template <int k>
__device__ int pressure_place(const Patches& patches, int patch, int z, int y, int x) {
  constexpr int n = k + 1;
  const int cell = patches.cells[8 * patch + (x / n + 2 * (y / n) + 4 * (z / n))];
  return patches.first[entities * cell + pressure] + x % n + n * (y % n + n * (z % n));
}

/// Contraction of whole columns along a or b with `count` matrices at once:
///     out[q][i_c] += sum_j matrix[q](row, j) in[i_c * plane + j * stride]
/// A matrix is given row-major, or `transposed`.
template <int size, bool transposed, int count, int rows, class T>
__device__ void contract(const T* const (&matrix)[count], int row, const T* in, int plane, int stride,
                         T (&out)[count][rows]) {
#pragma unroll
  for (int j = 0; j < size; ++j) {
    T m[count];
#pragma unroll
    for (int q = 0; q < count; ++q) m[q] = matrix[q][transposed ? j * size + row : row * size + j];
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const T value = in[i * plane + j * stride];
#pragma unroll
      for (int q = 0; q < count; ++q) out[q][i] += m[q] * value;
    }
  }
}

/// out[i] += sum_j matrix(i, j) in[j]: contraction of a column in registers. `transposed`: matrix(j, i).
template <bool transposed, int out_size, int in_size, class T>
__device__ void contract_column(const T* matrix, const T (&in)[in_size], T (&out)[out_size]) {
#pragma unroll
  for (int i = 0; i < out_size; ++i) {
#pragma unroll
    for (int j = 0; j < in_size; ++j) out[i] += matrix[transposed ? j * out_size + i : i * in_size + j] * in[j];
  }
}

template <int rows, class T>
__device__ void store(const T (&column)[rows], T* to, int stride) {
#pragma unroll
  for (int i = 0; i < rows; ++i) to[i * stride] = column[i];
}

}  // namespace solenoid::paper
