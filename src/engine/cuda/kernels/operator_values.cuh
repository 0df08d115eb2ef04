#pragma once
/// \file
/// The operator (operator.cuh) one value at a time, for the few that tiles of cells are not worth: hat-only records and
/// small patches. A value reads some 6 n^2 others.

#include <cstdint>

#include "engine/cuda/kernels/operator_tile.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct OperatorByValues {
  using S = Shape<dim, order>;
  using Tables = OperatorTables<T, dim, order>;
  using Arguments = typename OperatorTile<T, dim, order>::Arguments;
  static constexpr int n = S::n;

  /// Value `value` of a record of A x.
  __device__ static T product(const Tables& tables, const Arguments& arguments, std::int32_t record, int value) {
    if (value >= dim * S::block) return divergence(tables, arguments, record, value - dim * S::block);
    const int c = value / S::block;
    const int row = value % S::block / S::columns;
    const int column = value % S::columns;
    const CellTopology& topology = arguments.topology;
    if (record >= topology.cells) return upper_hat(tables, arguments, c, topology.neighbour[2 * c][record], column);
    if (row == 0 && normal_fixed(topology.face[2 * c][record])) return T(0);
    const T own = from_cell(tables, arguments, c, record, row, column);
    const std::int32_t below = topology.neighbour[2 * c][record];
    return row == 0 && below < topology.cells ? own + upper_hat(tables, arguments, c, below, column) : own;
  }

  /// A hat of a hat-only record.
  __device__ static void write_hat_only(const Tables& tables, const Arguments& arguments, std::int32_t hat,
                                        int column) {
    const CellTopology& topology = arguments.topology;
    const int c = direction_of_hats(topology, hat);
    const std::int32_t cell = topology.neighbour[2 * c][hat];
    const std::int64_t place = S::offset(hat) + (c * S::block + column) * interleave;
    if (normal_fixed(topology.face[2 * c + 1][cell])) {
      arguments.y[place] = T(0);
      return;
    }
    const T result = upper_hat(tables, arguments, c, cell, column);
    arguments.y[place] = arguments.b == nullptr ? result : arguments.b[place] - result;
  }

 private:
  /// Row `function` (0..n, the last is the upper hat) of z in a column, from this cell alone. `cell`, `above`: where
  /// the component begins in the cell and in the record above it.
  __device__ static T cell_mass(const Tables& tables, const T* cell, const T* above, int function, int column) {
    T z = tables.mass[function][n] * above[column * interleave];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (mass_couples(n, function, j)) z += tables.mass[function][j] * cell[(j * S::columns + column) * interleave];
    }
    return z;
  }

  /// y += factor E(z, .) for h = 1 on face `upper` (0, 1) of a line; z(m) are the modes.
  template <class Z>
  __device__ static void add_face(const Tables& tables, T factor, int upper, const Z& z, T (&y)[n]) {
    const T sign = upper == 1 ? T(1) : T(-1);  // of odd modes
    T v = 0;
    T d = 0;
#pragma unroll
    for (int m = 0; m < n; ++m) {
      const T mode = m % 2 == 0 ? z(m) : sign * z(m);
      v += tables.value[m] * mode;
      d += tables.slope[m] * mode;
    }
    const T value = factor * (tables.penalty * v - T(0.5) * d);
    const T slope = factor * T(-0.5) * v;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const T test = tables.value[j] * value + tables.slope[j] * slope;
      y[j] += j % 2 == 0 ? test : sign * test;
    }
  }

  /// What a cell gives to its function `function` (0..n along c, the last is the upper hat) of component c.
  __device__ static T from_cell(const Tables& tables, const Arguments& arguments, int c, std::int32_t cell,
                                int function, int column) {
    const CellTopology& topology = arguments.topology;
    const auto values = [&](std::int32_t r) { return arguments.x + S::offset(r) + c * S::block * interleave; };
    const auto z = [&](std::int32_t r, int at) {
      return cell_mass(tables, values(r), values(topology.neighbour[2 * c + 1][r]), function, at);
    };
    T result = tables.factor[(c + 1) % dim] * tables.alpha[c] * z(cell, column);
    for (int turn = 1; turn < dim; ++turn) {
      const int t = (c + turn) % dim;
      const int stride = turn == 1 ? 1 : n;
      const int mode = turn == 1 ? column % n : column / n;
      const auto own = [&](int m) { return z(cell, column + (m - mode) * stride); };
      T sum = 0;
      for (int m = 0; m < n; ++m) {
        const int at = column + (m - mode) * stride;
        const T lower = z(topology.neighbour[2 * t][cell], at);
        const T upper = z(topology.neighbour[2 * t + 1][cell], at);
        sum += tables.beside[mode][m] * ((mode % 2 == 0 ? lower : -lower) + (m % 2 == 0 ? upper : -upper));
        if (m % 2 == mode % 2) sum += tables.interior[mode][m] * own(m);
      }
      for (int upper = 0; upper < 2; ++upper) {
        const int extra = face_weight(topology.face[2 * t + upper][cell]) - 1;
        T y[n]{};
        if (extra != 0) add_face(tables, T(extra), upper, own, y);
        sum += y[mode];
      }
      result += tables.factor[t] * sum;
    }
    const T* const own = values(cell) + column * interleave;
    const T* const p = arguments.x + S::offset(cell) + (dim * S::block + base(c, column)) * interleave;
    if (function == 0 || function == n) {
      const T step = own[0] - values(topology.neighbour[2 * c + 1][cell])[column * interleave];
      const T along = tables.factor[c] * step + tables.inverse_h[c] * p[0];
      return function == 0 ? result + along : result - along;
    }
    return result + tables.factor[c] * own[function * S::columns * interleave] -
           tables.inverse_h[c] * p[function * S::pressure_stride(c) * interleave];
  }
  __device__ static T upper_hat(const Tables& tables, const Arguments& arguments, int c, std::int32_t cell,
                                int column) {
    return from_cell(tables, arguments, c, cell, n, column);
  }

  /// The pressure that is constant along c and has the modes of a column of component c.
  __device__ static int base(int c, int column) {
    return column % n * S::pressure_stride((c + 1) % dim) +
           (dim == 3 ? column / n * S::pressure_stride((c + 2) % dim) : 0);
  }

  /// - B x for a pressure of a cell.
  __device__ static T divergence(const Tables& tables, const Arguments& arguments, std::int32_t cell, int pressure) {
    T sum = 0;
    for (int c = 0; c < dim; ++c) {
      const auto mode = [&](int a) { return pressure / S::pressure_stride(a) % n; };
      const int column = mode((c + 1) % dim) + (dim == 3 ? n * mode((c + 2) % dim) : 0);
      const std::int64_t component = (c * S::block + column) * interleave;
      const T* const own = arguments.x + S::offset(cell) + component;
      const int row = mode(c);
      sum += tables.inverse_h[c] *
             (row > 0 ? own[row * S::columns * interleave]
                      : arguments.x[S::offset(arguments.topology.neighbour[2 * c + 1][cell]) + component] - own[0]);
    }
    return -sum;
  }
};

}  // namespace solenoid::cuda
