#pragma once
/// \file
/// The operator (operator.cuh) with a thread for each row of a cell. Several thread blocks may share the components of
/// a tile; the last of them writes the pressure.

#include "engine/cuda/kernels/operator_tile.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct OperatorByRows : OperatorTile<T, dim, order> {
  using Tile = OperatorTile<T, dim, order>;
  using Tile::cells;
  using Tile::lines;
  using Tile::n;
  using typename Tile::Arguments;
  using typename Tile::S;
  using typename Tile::Shared;
  using typename Tile::Stack;
  using typename Tile::Tables;

  /// Returns what OperatorTile::store makes of the thread's values.
  template <OperatorOutput output>
  __device__ static T apply(const Tables& tables, const Arguments& arguments, const Shared& shared, uint2 face) {
    wait_for_earlier_kernels(gridDim.y == 1 && !arguments.followed);
    T square = 0;
    if (blockIdx.y + 1 == gridDim.y) divergence<output>(tables, arguments, shared, square);
    const int slot = static_cast<int>(threadIdx.x);
    const int row = static_cast<int>(threadIdx.y);
#pragma unroll 1
    for (int c = static_cast<int>(blockIdx.y); c < dim; c += static_cast<int>(gridDim.y)) {
      const std::uint32_t lower = shared.side(2 * c);
      const std::uint32_t upper = shared.side(2 * c + 1);
      Tile::contract_faces(tables, arguments, shared, c, face);
      multiply_mass(tables, arguments, shared, c, side_neighbour(lower), side_neighbour(upper));
      T y[1][lines][n];
      along<output>(tables, arguments, shared, c, row, side_neighbour(lower), y[0]);
      std::uint32_t sides[2 * (dim - 1)];
      shared.sides_beside(c, sides);
      const int next = c + static_cast<int>(gridDim.y);
      if (next < dim) face = Tile::first_face(shared, next);
      __syncthreads();
      if (next < dim) Tile::prefetch(arguments.x, shared, next);
      if (row == 0) {
        const T factor = tables.factor[c] * tables.inverse_factor[(c + dim - 1) % dim];
#pragma unroll
        for (int i = 0; i < S::columns; ++i) y[0][i / n][i % n] += factor * shared.hat[i * cells + slot];
      }
      const T* const z = shared.z + row * S::columns * cells + slot;
      const auto own = [&](int, int s, int f) { return z[(s * n + f) * cells]; };
      Tile::template finish<output>(tables, arguments, shared, shared.offset(slot), c, row, sides,
                                    row == 0 && side_fixed(lower), own, y, square);
      if (c + 1 < dim) __syncthreads();
    }
    return square;
  }

 private:
  /// z of all cells, and the stiffness matrix on their hats.
  __device__ static void multiply_mass(const Tables& tables, const Arguments& arguments, const Shared& shared, int c,
                                       std::uint32_t below, std::uint32_t above) {
    const int line = dim == 3 ? static_cast<int>(threadIdx.y) : 0;
    const int slot = Tile::first_item();
    if (slot >= cells) return;
    const T* const x = arguments.x + (c * S::block + line * n) * interleave;
    const Stack stack{x + shared.offset(slot), x + shared.offset(above), x + shared.offset(below)};
    const std::int32_t record_below = shared.record(below);
    const T mass_weight = record_below < arguments.topology.cells ? T(1) : T(0);
    const T stiffness_weight = record_below == arguments.topology.null ? T(1) : T(2);
    T* const to = shared.z + line * n * cells + slot;
#pragma unroll
    for (int m = 0; m < n; ++m) {
      T z[n];
      shared.hat[(line * n + m) * cells + slot] =
          stack.multiply(tables, m * interleave, mass_weight, stiffness_weight, z);
#pragma unroll
      for (int i = 0; i < n; ++i) to[(i * S::columns + m) * cells] = z[i];
    }
  }

  /// y = what acts along c on a row of the cell (stiffness and gradient, diagonal but for the hats, whose stiffness is
  /// left out), minus b, over the factor of the last direction.
  template <OperatorOutput output>
  __device__ static void along(const Tables& tables, const Arguments& arguments, const Shared& shared, int c, int row,
                               std::uint32_t below, T (&y)[lines][n]) {
    const std::int64_t start = (c * S::block + row * S::columns) * interleave;
    const std::int64_t at = shared.offset(threadIdx.x);
    const int stride_c = S::pressure_stride(c) * interleave;
    const int stride_a = S::pressure_stride((c + 1) % dim) * interleave;
    const int stride_b = S::pressure_stride((c + 2) % dim) * interleave;
    constexpr int pressure = dim * S::block * interleave;
    const T* const p = arguments.x + at + pressure + row * stride_c;
    const T* const b = subtracts<output> ? arguments.b + at + start : nullptr;
    const T scale = tables.inverse_factor[(c + dim - 1) % dim];
    const auto for_modes = [](auto&& visit) {
      unrolled<lines, n>([&](int s, int f) { visit(s, f, (s * n + f) * interleave); });
    };
    if (row > 0) {
      const T* const u = arguments.x + at + start;
      for_modes([&](int s, int f, int place) {
        y[s][f] = tables.factor[c] * __ldg(u + place) - tables.inverse_h[c] * __ldg(p + f * stride_a + s * stride_b);
      });
    } else {
      const T* const p_below = arguments.x + shared.offset(below) + pressure;
      for_modes([&](int s, int f, int) {
        const int place = f * stride_a + s * stride_b;
        y[s][f] = tables.inverse_h[c] * (__ldg(p + place) - __ldg(p_below + place));
      });
    }
    for_modes([&](int s, int f, int place) {
      y[s][f] = scale * (subtracts<output> ? y[s][f] - __ldcs(b + place) : y[s][f]);
    });
  }

  /// y_p = -sum_c B_c u_c on the plane of the thread's last index.
  template <OperatorOutput output>
  __device__ static void divergence(const Tables& tables, const Arguments& arguments, const Shared& shared, T& square) {
    const int last = static_cast<int>(threadIdx.y);
    if (shared.record(threadIdx.x) >= arguments.topology.cells) return;
    const std::int64_t at = shared.offset(threadIdx.x);
    const T* u = arguments.x + at;
    const T* above[dim];
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      above[c] = arguments.x + shared.offset(side_neighbour(shared.side(2 * c + 1))) + c * S::block * interleave;
    }
    unrolled<lines, n>([&](int i1, int i0) {
      const int index[3] = {i0, dim == 3 ? i1 : last, dim == 3 ? last : 0};
      T sum = 0;
#pragma unroll
      for (int c = 0; c < dim; ++c) {
        const int column = index[(c + 1) % dim] + (dim == 3 ? n * index[(c + 2) % 3] : 0);
        const int place = c * S::block + index[c] * S::columns + column;
        T divergence = __ldg(u + place * interleave);
        if (index[c] == 0) divergence = __ldg(above[c] + column * interleave) - divergence;
        sum += tables.inverse_h[c] * divergence;
      }
      const std::int64_t place = at + (dim * S::block + i0 + n * (index[1] + n * index[2])) * interleave;
      Tile::template store<output>(arguments, place, subtracts<output> ? __ldcs(arguments.b + place) + sum : -sum,
                                   square);
    });
  }
};

}  // namespace solenoid::cuda
