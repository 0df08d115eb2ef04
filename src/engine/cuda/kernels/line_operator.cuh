#pragma once
/// \file
/// Poisson's operator direction by direction: nu L^O on lines, the n modes of a cell that differ in one direction only.
///
/// A cell's own block, between two interior faces, couples modes of equal parity. Of what lies behind an end the face
/// forms need two numbers, the trace of the line that ends there,
///     P = sum_m (1/2 slope_m - penalty value_m) u_m,    Q = 1/2 sum_m value_m u_m     (odd modes: minus at lower
///     ends).
/// Behind a boundary face lies the cell's own trace, reflected: times 1 - weight of the face.

#include "engine/cuda/kernels/operator_tile.cuh"

namespace solenoid::cuda {

/// Lines of a tensor of n^dim values, x fastest, with `pitch` places for a row: an odd number of them keeps the threads
/// of a warp apart in shared memory.
template <int dim, int n, int pitch>
struct Lines {
  static constexpr int count = power(n, dim - 1);
  static constexpr int places = pitch * count;
  /// Between values of a line in direction a.
  static constexpr int stride(int a) { return a == 0 ? 1 : pitch * power(n, a - 1); }
  /// Place of the first value of line number `line` in direction a, the lower of the other directions fastest.
  __device__ static int start(int a, int line) {
    return a == 0 ? line * pitch : line % n + line / n * (a == 1 ? pitch * n : pitch);
  }
};

template <class T>
struct Trace {
  T p;
  T q;
};

template <class T, int dim, int order>
struct LineOperator {
  using Tables = OperatorTables<T, dim, order>;
  static constexpr int n = order + 1;

  /// Trace of the modes u(m) at the lower (0) or upper (1) end of their line.
  template <class U>
  __device__ static Trace<T> trace(const Tables& tables, int end, const U& u) {
    T p[2]{};
    T q[2]{};
#pragma unroll
    for (int m = 0; m < n; ++m) {
      const T mode = u(m);
      p[m % 2] += tables.flux[m] * mode;
      q[m % 2] += tables.value[m] * mode;
    }
    return end == 0 ? Trace<T>{p[0] - p[1], T(0.5) * (q[0] - q[1])} : Trace<T>{p[0] + p[1], T(0.5) * (q[0] + q[1])};
  }
  /// What the line finds behind an end on the boundary.
  template <class U>
  __device__ static Trace<T> reflected(const Tables& tables, int end, int weight, const U& u) {
    const Trace<T> own = trace(tables, end, u);
    const T sign = T(1 - weight);
    return {sign * own.p, sign * own.q};
  }

  /// visit(j, (L^O u)_j) for h = 1.
  template <class U, class F>
  __device__ static void apply(const Tables& tables, const U& u, const Trace<T>& below, const Trace<T>& above,
                               const F& visit) {
    const Trace<T> faces[2] = {{above.p + below.p, above.q + below.q}, {above.p - below.p, above.q - below.q}};
#pragma unroll
    for (int j = 0; j < n; ++j) {
      T sum = tables.value[j] * faces[j % 2].p + tables.slope[j] * faces[j % 2].q;
#pragma unroll
      for (int i = j % 2; i < n; i += 2) sum += tables.interior[j][i] * u(i);
      visit(j, sum);
    }
  }
};

}  // namespace solenoid::cuda
