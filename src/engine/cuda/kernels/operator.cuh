#pragma once
/// \file
/// The operator on tiles of cells.
///
/// The mass matrix of P acts in a component's own direction, the tangential Laplacians in the others, so they commute:
///
///     y_c = (nu L^O_a + nu L^O_b + alpha) z_c + nu L^P_c u_c - B_c^T p,     z_c = M^P_c u_c
///
/// Every row is complete where it is owned: nothing is carried from cell to cell, and no value has two writers.
///
/// A thread block works on a tile: `cells` records of neighbouring blocks (128 of them are 32 x 2 x 2 cells where rows
/// allow). What lies where around it was found beforehand (Tiles in arguments.hpp); most tiles of a mesh share one of a
/// few patterns, which the caches hold. For one component after the other,
///   1. what lies beyond the tile is needed for its traces only. The columns of the cell behind a face are multiplied
///   by
///      the mass matrix and contracted to the two numbers of a line that the face forms need,
///          P = sum_m (1/2 slope_m - penalty value_m) z_m,    Q = 1/2 sum_m value_m z_m.
///      A face at a boundary is a face of the tile too: it has the traces of the cell itself, with the weight of the
///      face and the other sign. So walls are nothing special in what follows.
///   2. z of the tile's own cells, to shared memory; what acts along c, in registers;
///   3. Laplacians of planes of tangential modes, from z of the cell, of its neighbours in the tile and from traces.
/// A thread has a row of a cell (operator_rows.cuh), or, where elements are small, a whole cell (operator_cells.cuh).
/// Hat rows (i_c = 0) belong to two cells, this one and the one below: where the two have different neighbours behind a
/// side (at walls and at corners of holes), the face has the traces of both, each with its own weight and sign.
/// A second kernel sees to hat-only records.
///
/// Everything from global memory goes through the read-only path, so that loads need not wait for stores. Traffic per
/// unknown in double: DRAM 17 and 19 bytes for k = 1, 2 (floor 16), L2 29 and 38 (measured), of which a tile of
/// 32 x 2 x 2 cells needs 26 and 32 if the first-level cache missed nothing twice. Limits (H200): latency of those
/// loads; no unit is busier than two thirds.

#include <cmath>
#include <type_traits>

#include "engine/cuda/kernels/operator_cells.cuh"
#include "engine/cuda/kernels/operator_rows.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
using TileOperator = std::conditional_t<OperatorTile<T, dim, order>::whole_cells, OperatorByCells<T, dim, order>,
                                        OperatorByRows<T, dim, order>>;

template <class T, int dim, int order>
struct Operator {
  using S = Shape<dim, order>;
  using Tables = OperatorTables<T, dim, order>;
  using Arguments = typename OperatorTile<T, dim, order>::Arguments;
  static constexpr int n = S::n;

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

  /// A hat of a hat-only record: the row of the upper hat of the cell below it.
  __device__ static void hat_only(const Tables& tables, const Arguments& arguments, std::int32_t hat, int column) {
    const CellTopology& topology = arguments.topology;
    const int c = direction_of_hats(topology, hat);
    const std::int32_t cell = topology.neighbour[2 * c][hat];
    const std::int64_t place = S::offset(hat) + (c * S::block + column) * interleave;
    if (normal_fixed(topology.face[2 * c + 1][cell])) {
      arguments.y[place] = T(0);
      return;
    }
    const auto values = [&](std::int32_t r) { return arguments.x + S::offset(r) + c * S::block * interleave; };
    const auto z = [&](std::int32_t r, int at) {
      return cell_mass(tables, values(r), values(topology.neighbour[2 * c + 1][r]), n, at);
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
    const T* p = arguments.x + S::offset(cell) + dim * S::block * interleave;
    const int base =
        column % n * S::pressure_stride((c + 1) % dim) + (dim == 3 ? column / n * S::pressure_stride((c + 2) % 3) : 0);
    result += tables.factor[c] * (values(hat)[column * interleave] - values(cell)[column * interleave]) -
              tables.inverse_h[c] * p[base * interleave];
    arguments.y[place] = arguments.b == nullptr ? result : arguments.b[place] - result;
  }

  static void apply(const ApplyArguments<T>& arguments, Stream stream);
};

/// The root of the sum over a thread block.
template <int threads>
__device__ void write_norm(double square, double* norm) {
  __shared__ double of_warp[threads / 32];
  const auto in_warp = [](double sum) {
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0U, sum, distance);
    return sum;
  };
  const int thread = static_cast<int>(threadIdx.x + threadIdx.y * blockDim.x);
  const double sum = in_warp(square);
  if (thread % 32 == 0) of_warp[thread / 32] = sum;
  __syncthreads();
  if (thread >= 32) return;
  const double all = in_warp(thread < threads / 32 ? of_warp[thread] : 0.0);
  if (thread == 0) *norm = std::sqrt(all);
}

/// y = A x or b - A x on cells. Thread blocks: one for a tile, or, where there are few, one for each component of a
/// tile.
template <OperatorOutput output, class T, int dim, int order>
__global__
__launch_bounds__(OperatorTile<T, dim, order>::threads, OperatorTile<T, dim, order>::resident) void apply_cells(
    const __grid_constant__ OperatorTables<T, dim, order> tables,
    const __grid_constant__ typename OperatorTile<T, dim, order>::Arguments arguments) {
  using O = TileOperator<T, dim, order>;
  extern __shared__ __align__(16) unsigned char memory[];
  const typename O::Shared shared(memory, arguments.tiles);
  const uint2 face = O::first_face(shared, static_cast<int>(blockIdx.y) % dim);
  __syncthreads();
  const T square = O::template apply<output>(tables, arguments, shared, face);
  if constexpr (output == OperatorOutput::rounded) {
    const std::int32_t cell = shared.record(threadIdx.x);
    const bool owned = cell >= arguments.first_owned && cell < arguments.last_owned;
    write_norm<O::threads>(owned ? square : 0.0, arguments.norms + blockIdx.x + blockIdx.y * gridDim.x);
  }
}

/// The same on hat-only records, beside apply_cells, which has waited for earlier kernels when this one starts. One
/// thread per record and hat.
template <class T, int dim, int order>
__global__ void apply_hat_only(const __grid_constant__ OperatorTables<T, dim, order> tables,
                               const __grid_constant__ typename OperatorTile<T, dim, order>::Arguments arguments) {
  constexpr int columns = Shape<dim, order>::columns;
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int32_t hat = arguments.topology.cells + index / columns;
  if (hat < arguments.topology.records) {
    Operator<T, dim, order>::hat_only(tables, arguments, hat, index % columns);
  }
  wait_for_earlier_kernels();  // for those that wait for this one
}

template <class T, int dim, int order>
void Operator<T, dim, order>::apply(const ApplyArguments<T>& arguments, Stream stream) {
  using O = TileOperator<T, dim, order>;
  const Tables tables(*arguments.cell);
  const int hats = (arguments.topology.records - arguments.topology.cells) * S::columns;
  const typename O::Arguments with_hats{arguments, hats > 0};
  using enum OperatorOutput;
  auto kernel = arguments.b == nullptr ? apply_cells<product, T, dim, order> : apply_cells<residual, T, dim, order>;
  if constexpr (std::is_same_v<T, double>) {
    if (arguments.rounded != nullptr) kernel = apply_cells<rounded, T, dim, order>;
  }
  const auto tiles = static_cast<unsigned>(arguments.tiles.count);
  constexpr unsigned few_tiles = 64;  // leave multiprocessors without work
  const unsigned shares = !O::whole_cells && tiles <= few_tiles ? dim + 1 : 1;
  launch(arguments.b == nullptr ? "apply" : "residual", kernel, dim3(tiles, shares), dim3(O::cells, O::team),
         O::shared_bytes(arguments.tiles), stream, tables, with_hats);
  constexpr int hat_threads = 128;
  launch("apply on hat-only records", apply_hat_only<T, dim, order>, blocks_for(hats, hat_threads), hat_threads, 0,
         stream, tables, with_hats);
}

}  // namespace solenoid::cuda
