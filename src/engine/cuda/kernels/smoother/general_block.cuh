#pragma once
/// \file
/// A thread block of the general smoother (general.cuh): sizes of a patch, shared memory, how work is shared out, and
/// where values are.

#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "engine/cuda/kernels/line_operator.cuh"
#include "engine/cuda/kernels/smoother/general.hpp"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct GeneralBlock {
  using S = Shape<dim, order>;
  using Line = LineOperator<T, dim, order>;
  using Tables = typename Line::Tables;
  static constexpr int n = S::n;
  static constexpr int modes = 2 * n;
  static constexpr int columns = power(modes, dim - 1);
  static constexpr int functions = modes + 1;
  static constexpr int rows = modes + 2;  // of both cells
  static constexpr int component = functions * columns;
  static constexpr int pressures = power(modes, dim);
  static constexpr int corners = 1 << dim;
  static constexpr int halves = corners / 2;
  static constexpr int others = columns / modes;  // lines of a row along a tangential direction
  /// One for each line of a tangential transform, as far as possible.
  static constexpr int threads = [] {
    constexpr int whole_warps = (dim * functions * others + columns + 31) / 32 * 32;
    return whole_warps <= 384 ? whole_warps : 512;
  }();
  /// On a multiprocessor, which bounds registers: a block waits for memory more often than it works, so that many
  /// should be there.
  static constexpr int blocks = [] {
    constexpr int registers = (n <= 3 ? 64 : 96) * static_cast<int>(sizeof(T) / sizeof(float));
    return std::max(65536 / (threads * registers), 1);
  }();
  /// The columns of S^-1 are shared out in so many parts where there are threads left.
  static constexpr int parts = std::clamp(threads / (corners * ((S::block + 3) / 4)), 1, dim);
  static_assert(parts * pressures <= dim * component);  // sums lie where flux was
  static constexpr GeneralTables layout{dim, n};
  using Row = T[layout.row_length()];
  struct Direction {
    Row eigen_o[modes];
    Row eigen_p[functions];
    Row divergence[modes];
  };
  template <bool roomy>
  struct PatchMemory {
    alignas(16) Direction tables[dim];
    PatchData<T> kind;
    const T* inverse_lambda;  ///< [component][eigenfunction][column]
    T u[dim][component];      ///< old velocity
    T w[dim][rows * columns];
    T r[roomy ? dim : 1][roomy ? component : 1];
    T old_pressure[roomy ? pressures : 1];
    T pressure[pressures];  ///< residual, correction
    std::int32_t cells[corners];
    std::int32_t above[dim][corners];                 ///< the records above cells
    std::int32_t behind[2 * dim][halves];             ///< the record behind an end, or -1 - weight of the face there
    std::int32_t above_behind[dim][2 * dim][halves];  ///< the record above that one
    T sums[threads];
    T schur[3][pressures];  ///< right-hand side; two more vectors of the iterative solvers

    /// b, residual, f, correction; in the place of w if there is no other.
    __device__ T* residual(int c) { return roomy ? r[c] : w[c]; }
    __device__ const T* residual(int c) const { return roomy ? r[c] : w[c]; }
    /// What components give to the divergence, in the place of w, which is no longer needed, or of the old velocity.
    __device__ T* flux(int c) { return roomy ? w[c] : u[c]; }
    __device__ const T* flux(int c) const { return roomy ? w[c] : u[c]; }
    __device__ T* old() { return roomy ? old_pressure : pressure; }
    __device__ const T* old() const { return roomy ? old_pressure : pressure; }
  };
  /// The largest patches have no room for old values, which are read again, and for b on its way.
  static constexpr bool roomy = sizeof(PatchMemory<true>) <= most_shared_bytes;
  using Memory = PatchMemory<roomy>;
  static constexpr std::size_t shared_bytes(LocalSolverKind local) {
    const bool iterative = local == LocalSolverKind::chebyshev || local == LocalSolverKind::cg;
    return sizeof(Memory) - (iterative ? 0 : 2 * sizeof(Memory::schur[0]));
  }

  struct Arguments : GeneralArguments<T> {
    T alpha;
    T factor;  ///< of corrections
  };

  /// visit(i) for i < count, by all threads.
  template <class F>
  __device__ static void for_each(int count, F&& visit) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) visit(i);
  }
  /// The same by other threads: the last ones first, which have less to do where there are not enough things for all.
  template <class F>
  __device__ static void for_each_from_last(int count, F&& visit) {
    for (int i = threads - 1 - static_cast<int>(threadIdx.x); i < count; i += threads) visit(i);
  }
  /// What threads have stored is there for all.
  __device__ static void meet() { __syncthreads(); }
  /// Copies to shared memory on their way until meet_copies().
  __device__ static void copy(T& to, const T* from) { __pipeline_memcpy_async(&to, from, sizeof(T)); }
  /// Of what lies at multiples of `step` bytes.
  template <int step, class U>
  __device__ static void copy_all(U& to, const void* from) {
    static_assert(sizeof(U) % step == 0);
    for_each(static_cast<int>(sizeof(U)) / step, [&](int i) {
      __pipeline_memcpy_async(reinterpret_cast<char*>(&to) + i * step, static_cast<const char*>(from) + i * step, step);
    });
  }
  __device__ static void meet_copies() {
    __pipeline_commit();
    __pipeline_wait_prior(0);
    meet();
  }

  /// visit(c, column) for all columns of all components.
  template <class F>
  __device__ static void for_columns(F&& visit) {
    for_each(dim * columns, [&](int k) { visit(k / columns, k % columns); });
  }

  // --- places --------------------------------------------------------------------------------------------------------

  __device__ static int a_of(int c) { return (c + 1) % dim; }
  __device__ static int b_of(int c) { return (c + 2) % dim; }
  /// The cell that has a column of component c, in its lower (0) or upper (1) half along c.
  __device__ static int cell_of(int c, int column, int upper) {
    const int second = dim == 3 ? column / modes / n << b_of(c) : 0;
    return column % modes / n << a_of(c) | second | upper << c;
  }
  /// Place of that column in the records of its cells: of row i at + i * S::columns * interleave.
  __device__ static int start_of(int c, int column) {
    return (c * S::block + column % modes % n + (dim == 3 ? n * (column / modes % n) : 0)) * interleave;
  }
  static constexpr int row_step = S::columns * interleave;
  /// Where the 2n + 1 values of a column lie in a vector: in its lower and its upper cell and in the record above.
  struct Column {
    std::int64_t part[3];

    __device__ Column(const Memory& memory, int c, int column)
        : part{S::offset(memory.cells[cell_of(c, column, 0)]), S::offset(memory.cells[cell_of(c, column, 1)]),
               S::offset(memory.above[c][cell_of(c, column, 1)])} {
      const int start = start_of(c, column);
      for (std::int64_t& place : part) place += start;
    }
    __device__ std::int64_t operator[](int e) const { return part[e / n] + e % n * row_step; }
  };
  /// Place in the pressure array of mode i along c, in a column of component c.
  __device__ static int pressure_place(int c, int i, int column) {
    const auto stride = [](int a) { return a == 0 ? 1 : a == 1 ? modes : modes * modes; };
    return i * stride(c) + column % modes * stride(a_of(c)) + (dim == 3 ? column / modes * stride(b_of(c)) : 0);
  }
  /// The sum of what components give to the divergence at a place of the pressure array: of row i of each column there.
  __device__ static T divergence(const Memory& memory, int place) {
    const int index[3] = {place % modes, place / modes % modes, place / (modes * modes)};
    T sum{};
    for (int c = 0; c < dim; ++c) {
      sum += memory.flux(c)[index[c] * columns + index[a_of(c)] + (dim == 3 ? modes * index[b_of(c)] : 0)];
    }
    return sum;
  }
  /// Of value `place` of the pressure array: the corner of its cell, and where it is in the record.
  __device__ static int pressure_cell(int place) {
    int corner = 0;
    for (int a = 0; a < dim; ++a, place /= modes) corner |= place % modes / n << a;
    return corner;
  }
  __device__ static int pressure_start(int place) {
    int start = 0;
    for (int a = 0, stride = 1; a < dim; ++a, place /= modes, stride *= n) start += place % n * stride;
    return (dim * S::block + start) * interleave;
  }
  /// The other directions' bits of the corner of a patch, packed: which of the `halves` lines ends in direction t.
  __device__ static int half_of(int t, int corner) { return (corner & ((1 << t) - 1)) | corner >> (t + 1) << t; }
  __device__ static int lower_corner(int t, int half) { return (half & ((1 << t) - 1)) | half >> t << (t + 1); }

  __device__ static int count_of(const PatchData<T>& kind, int c) { return kind.last[c] - kind.first[c] + 1; }
};

}  // namespace solenoid::cuda
