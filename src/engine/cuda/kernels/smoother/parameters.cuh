#pragma once
/// \file
/// What a kernel of the parity smoother is given, and how it addresses values.

#include "engine/cuda/kernels/smoother/parity.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {

/// ParityArguments with what the kernel needs of a cell's tables.
template <class T, int dim, int order>
struct ParityParameters : ParityArguments<T> {
  static constexpr int n = order + 1;
  std::int32_t uncovered_share;  ///< of every thread block that only copies, and one more for each of the first
  std::int32_t uncovered_rest;
  T value[n];  ///< traces and outward derivatives of modes on a lower face
  T slope[n];
  T trace_value[dim][n];  ///< what modes of a cell below give to the test trace and derivative at the common face
  T trace_slope[dim][n];
  T beside[dim][n][n];  ///< [t][j][m]: both together, what mode m of a cell below gives to test function j
  T mass[n + 1][n + 1];
  T inverse_h[dim];
  T end_stiffness[dim];  ///< between neighbouring hats
  T alpha;

  ParityParameters(const ParityArguments<T>& from, int blocks)
      : ParityArguments<T>(from),
        uncovered_share(from.uncovered_count / blocks),
        uncovered_rest(from.uncovered_count % blocks),
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
};

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
