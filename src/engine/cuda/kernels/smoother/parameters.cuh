#pragma once
/// \file
/// What a kernel of the parity smoother is given, and how it addresses values.

#include <algorithm>

#include "engine/cuda/exchange.cuh"
#include "engine/cuda/kernels/smoother/parity.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {

/// ParityArguments with what the kernel needs of a cell's tables.
template <class T, int dim, int order>
struct ParityParameters : ParityArguments<T> {
  static constexpr int n = order + 1;
  std::int32_t uncovered_share;  ///< of every thread block that only copies, and one more for each of the first
  std::int32_t uncovered_rest;
  std::int32_t waiting;  ///< thread blocks that wait for ghosts
  T value[n];            ///< traces and outward derivatives of modes on a lower face
  T slope[n];
  T trace_value[dim][n];  ///< what modes of a cell below give to the test trace and derivative at the common face
  T trace_slope[dim][n];
  T beside[dim][n][n];  ///< [t][j][m]: both together, what mode m of a cell below gives to test function j
  T mass[n + 1][n + 1];
  T inverse_h[dim];
  T end_stiffness[dim];  ///< between neighbouring hats
  T alpha;

  /// `copying` thread blocks do nothing but copy.
  ParityParameters(const ParityArguments<T>& from, int copying)
      : ParityArguments<T>(from),
        uncovered_share(from.uncovered_count / std::max(copying, 1)),
        uncovered_rest(from.uncovered_count % std::max(copying, 1)),
        waiting(from.batch_count + copying - from.first_waiting),
        alpha(from.cell->alpha) {
    const CellData<T>& cell = *from.cell;
    for (int i = 0; i <= n; ++i) {
      for (int j = 0; j <= n; ++j) mass[i][j] = cell.mass[i][j];
    }
    for (int j = 0; j < n; ++j) {
      const T sign = j % 2 == 0 ? T(1) : T(-1);
      value[j] = sign * cell.value[j];
      slope[j] = sign * cell.slope[j];
      for (int t = 0; t < dim; ++t) {
        const T factor = cell.viscosity * cell.inverse_h[t] * cell.inverse_h[t];
        trace_value[t][j] = factor * (T(0.5) * cell.slope[j] - cell.penalty * cell.value[j]);
        trace_slope[t][j] = factor * T(0.5) * cell.value[j];
      }
    }
    for (int t = 0; t < dim; ++t) {
      for (int j = 0; j < n; ++j) {
        for (int m = 0; m < n; ++m) {
          beside[t][j][m] = value[j] * trace_value[t][m] + slope[j] * trace_slope[t][m];
        }
      }
    }
    for (int a = 0; a < dim; ++a) {
      inverse_h[a] = cell.inverse_h[a];
      end_stiffness[a] = -cell.viscosity * cell.inverse_h[a] * cell.inverse_h[a];
    }
  }

  /// Of those behind the thread blocks that bring ghosts: first one for each batch.
  __device__ int block() const { return static_cast<int>(blockIdx.x) - this->bringing.blocks; }
  /// Waits for earlier kernels and, where this block reads ghosts that travel, for them; a barrier has to follow.
  __device__ void wait(bool alone) const {
    wait_for_earlier_kernels(alone);
    if (block() >= this->first_waiting) wait_for_ghosts(*this->bringing.exchange, this->waiting);
  }
};

/// A value of x. Ghosts may come while the kernel runs, so that it is not loaded as what never changes (__ldg).
__device__ inline float load_old(const float* from) {
  float value;
  asm("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(from));
  return value;
}
__device__ inline double load_old(const double* from) {
  double value;
  asm("ld.global.f64 %0, [%1];" : "=d"(value) : "l"(from));
  return value;
}

/// Addresses of values in vectors of records with so many numbers, with places in 32 bits.
template <int record>
struct Places {
  /// Place of value 0.
  static __device__ std::uint32_t offset(std::int32_t r) {
    const auto index = static_cast<std::uint32_t>(r);  // spares the signed division
    return index / interleave * (interleave * record) + index % interleave;
  }
  static __device__ std::int32_t record_at(std::uint32_t offset) {
    return offset / (interleave * record) * interleave + offset % (interleave * record);
  }
  /// base + place, where the compiler should not take what base is made of apart.
  template <class U>
  static __device__ U* pointer(U* base, std::uint32_t place) {
    U* result;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(result) : "r"(place), "n"(sizeof(U)), "l"(base));
    __builtin_assume(__isGlobal(result));
    return result;
  }
};

}  // namespace solenoid::cuda
