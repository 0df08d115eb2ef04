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
/// A second kernel sees to hat-only records, another to what small patches read, both by values (operator_values.cuh).
///
/// Everything from global memory goes through the read-only path, so that loads need not wait for stores. Traffic per
/// unknown in double: DRAM 17 and 19 bytes for k = 1, 2 (floor 16), L2 29 and 38 (measured), of which a tile of
/// 32 x 2 x 2 cells needs 26 and 32 if the first-level cache missed nothing twice. Limits (H200): latency of those
/// loads; no unit is busier than two thirds.

#include <cmath>
#include <type_traits>

#include "engine/cuda/kernels/operator_cells.cuh"
#include "engine/cuda/kernels/operator_rows.cuh"
#include "engine/cuda/kernels/operator_values.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
using TileOperator = std::conditional_t<OperatorTile<T, dim, order>::whole_cells, OperatorByCells<T, dim, order>,
                                        OperatorByRows<T, dim, order>>;

template <class T, int dim, int order>
struct Operator {
  using S = Shape<dim, order>;
  using Tables = OperatorTables<T, dim, order>;
  using Arguments = typename OperatorTile<T, dim, order>::Arguments;

  static void apply(const ApplyArguments<T>& arguments, Stream stream);
  static void residual_at(const ApplyArguments<T>& arguments, const PatchUnknowns& unknowns, Stream stream);
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
    OperatorByValues<T, dim, order>::write_hat_only(tables, arguments, hat, index % columns);
  }
  wait_for_earlier_kernels();  // for those that wait for this one
}

/// y = b - A x at the unknowns of small patches. A warp has one unknown of neighbouring patches at a time; traffic is
/// what the caches miss of the records around these, most of which several unknowns read.
template <class T, int dim, int order>
__global__ void residual_at_unknowns(const __grid_constant__ OperatorTables<T, dim, order> tables,
                                     const __grid_constant__ typename OperatorTile<T, dim, order>::Arguments arguments,
                                     const __grid_constant__ PatchUnknowns of) {
  using S = Shape<dim, order>;
  using Values = OperatorByValues<T, dim, order>;
  const int patch = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  std::int32_t record[2]{};
  for (int i = 0; i < 2 && patch < of.count; ++i) record[i] = of.records[2 * patch + i];
  wait_for_earlier_kernels();
  if (patch >= of.count) return;
  for (int i = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y); i < of.size; i += gridDim.y * blockDim.y) {
    const SmallPlace at = of.unknowns[i];
    const std::int64_t place = S::offset(record[at.record]) + at.offset;
    arguments.y[place] =
        arguments.b[place] - Values::product(tables, arguments, record[at.record], at.offset / interleave);
  }
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

template <class T, int dim, int order>
void Operator<T, dim, order>::residual_at(const ApplyArguments<T>& arguments, const PatchUnknowns& unknowns,
                                          Stream stream) {
  constexpr int patches = 32;
  constexpr int rows = 4;  // of unknowns, at a time
  const auto shares = static_cast<unsigned>((unknowns.size + 2 * rows - 1) / (2 * rows));
  launch("residual of small patches", residual_at_unknowns<T, dim, order>,
         dim3(blocks_for(unknowns.count, patches), shares), dim3(patches, rows), 0, stream, Tables(*arguments.cell),
         typename OperatorTile<T, dim, order>::Arguments{arguments, false}, unknowns);
}

}  // namespace solenoid::cuda
