#pragma once
/// \file
/// The operator (operator.cuh) with a thread for each cell, for small elements: what a component needs is loaded once,
/// for z, stiffness, gradient and divergence together, and stays in registers.

#include "engine/cuda/kernels/operator_tile.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct OperatorByCells : OperatorTile<T, dim, order> {
  using Tile = OperatorTile<T, dim, order>;
  using Tile::cells;
  using Tile::lines;
  using Tile::n;
  using typename Tile::Arguments;
  using typename Tile::S;
  using typename Tile::Shared;
  using typename Tile::Tables;

  /// Returns what OperatorTile::store makes of the thread's values.
  template <OperatorOutput output>
  __device__ static T apply(const Tables& tables, const Arguments& arguments, const Shared& shared, uint2 face) {
    T square = 0;
    Cell cell;
    cell.offset = shared.offset(threadIdx.x);
    wait_for_earlier_kernels(!arguments.followed);
    Tile::prefetch(arguments.x, shared, 0);
    Tile::prefetch(arguments.x, shared, dim);
    if (subtracts<output>) Tile::prefetch(arguments.b, shared, 0);
#pragma unroll 1
    for (int c = 0; c < dim; ++c) {
      T z[n][lines][n];
      T y[n][lines][n];
      Tile::contract_faces(tables, arguments, shared, c, face);
      const std::uint32_t lower = shared.side(2 * c);
      const std::uint32_t upper = shared.side(2 * c + 1);
      // Not before the loop, where the first face would not be asked for until p is there.
      if (c == 0) load_pressure(arguments, cell);
      along<output>(tables, arguments, shared, c, lower, upper, cell, z, y);
      std::uint32_t sides[2 * (dim - 1)];
      shared.sides_beside(c, sides);
      if (c + 1 < dim) face = Tile::first_face(shared, c + 1);
      __syncthreads();
      if (c + 1 < dim) Tile::prefetch(arguments.x, shared, c + 1);
      if (subtracts<output> && c + 1 < dim) Tile::prefetch(arguments.b, shared, c + 1);
      const auto own = [&](int i, int s, int f) { return z[i][s][f]; };
      Tile::template finish<output>(tables, arguments, shared, cell.offset, c, 0, sides, side_fixed(lower), own, y,
                                    square);
      cell.turn();
      if (c + 1 < dim) __syncthreads();
    }
    if (shared.record(threadIdx.x) < arguments.topology.cells) write_divergence<output>(arguments, cell, square);
    return square;
  }

 private:
  /// What a thread has of its cell, seen from component c: indices are i_c, i_b, i_a.
  struct Cell {
    std::int64_t offset;  // of its values
    T p[n][lines][n];
    T divergence[n][lines][n]{};

    /// To the next component, whose own direction is a.
    __device__ void turn() {
      turn(p);
      turn(divergence);
    }
    __device__ static void turn(T (&v)[n][lines][n]) {
      T old[n][lines][n];
      unrolled<n, lines, n>([&](int i, int s, int f) { old[i][s][f] = v[i][s][f]; });
      unrolled<n, lines, n>([&](int i, int s, int f) {
        if constexpr (dim == 3) {
          v[f][i][s] = old[i][s][f];
        } else {
          v[f][0][i] = old[i][s][f];
        }
      });
    }
  };
  __device__ static void load_pressure(const Arguments& arguments, Cell& cell) {
    const T* const p = arguments.x + cell.offset + dim * S::block * interleave;
    // In the order of component 0: a = 1, b = 2.
    unrolled<n, lines, n>(
        [&](int i, int s, int f) { cell.p[i][s][f] = __ldg(p + (i + n * f + n * n * s) * interleave); });
  }

  /// z of component c, in registers and shared memory; y: what acts along c, minus b, over the factor of the last
  /// direction.
  template <OperatorOutput output>
  __device__ static void along(const Tables& tables, const Arguments& arguments, const Shared& shared, int c,
                               std::uint32_t lower, std::uint32_t upper, Cell& cell, T (&z)[n][lines][n],
                               T (&y)[n][lines][n]) {
    const std::int64_t at = cell.offset + c * S::block * interleave;
    const std::int32_t record_below = shared.record(side_neighbour(lower));
    const T* const component = arguments.x + c * S::block * interleave;
    const T* const own = arguments.x + at;
    const T* const above = component + shared.offset(side_neighbour(upper));
    const std::int64_t offset_below = shared.offset(side_neighbour(lower));
    const T* const below = component + offset_below;
    const T* const p_below = arguments.x + offset_below + dim * S::block * interleave;
    const int stride_a = S::pressure_stride((c + 1) % dim) * interleave;
    const int stride_b = S::pressure_stride((c + 2) % dim) * interleave;
    const T has_below = record_below == arguments.topology.null ? T(0) : T(1);
    const T is_cell = record_below < arguments.topology.cells ? T(1) : T(0);
    const T scale = tables.inverse_factor[(c + dim - 1) % dim];
    unrolled<lines, n>([&](int s, int f) {
      const int column = (s * n + f) * interleave;
      T u[n + 1];
#pragma unroll
      for (int i = 0; i < n; ++i) u[i] = __ldg(own + i * S::columns * interleave + column);
      u[n] = __ldg(above + column);
      T lower[Tile::rows_below];
#pragma unroll
      for (int i = 0; i < Tile::rows_below; ++i) lower[i] = __ldg(below + i * S::columns * interleave + column);
      const T p_lower = __ldg(p_below + f * stride_a + s * stride_b);
      T z_below = tables.mass[n][n] * (is_cell * u[0]);
#pragma unroll
      for (int i = 0; i < Tile::rows_below; ++i) z_below += tables.mass[n][i] * lower[i];
#pragma unroll
      for (int i = 0; i < n; ++i) {
        T sum = i == 0 ? z_below : T(0);
#pragma unroll
        for (int j = 0; j <= n; ++j) {
          if (mass_couples(n, i, j)) sum += tables.mass[i][j] * u[j];
        }
        z[i][s][f] = sum;
        shared.z[(i * S::columns + s * n + f) * cells + static_cast<int>(threadIdx.x)] = sum;
        if (i == 0) {
          y[i][s][f] = tables.factor[c] * ((u[0] - u[n]) + (has_below * u[0] - lower[0])) +
                       tables.inverse_h[c] * (cell.p[0][s][f] - p_lower);
          cell.divergence[i][s][f] += tables.inverse_h[c] * (u[n] - u[0]);
        } else {
          y[i][s][f] = tables.factor[c] * u[i] - tables.inverse_h[c] * cell.p[i][s][f];
          cell.divergence[i][s][f] += tables.inverse_h[c] * u[i];
        }
        if (subtracts<output>) y[i][s][f] -= __ldcs(arguments.b + at + i * S::columns * interleave + column);
        y[i][s][f] *= scale;
      }
    });
  }

  /// After the last component: indices are those of component 0 again.
  template <OperatorOutput output>
  __device__ static void write_divergence(const Arguments& arguments, const Cell& cell, T& square) {
    const std::int64_t at = cell.offset + dim * S::block * interleave;
    unrolled<n, lines, n>([&](int i, int s, int f) {
      const std::int64_t place = at + (i + n * f + n * n * s) * interleave;
      const T value = cell.divergence[i][s][f];
      Tile::template store<output>(arguments, place, subtracts<output> ? __ldcs(arguments.b + place) + value : -value,
                                   square);
    });
  }
};

}  // namespace solenoid::cuda
