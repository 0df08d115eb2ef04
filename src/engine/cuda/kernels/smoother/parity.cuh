#pragma once
/// \file
/// One colour of the multiplicative vertex-patch smoother, for patches whose local problem splits by parity.
///
/// Halo-only form. With A~ the local matrix, x_p old values of the patch, x_e those around it,
///
///     new = A~^+ (b - A_pe x_e + (A~ - A_pp) x_p) + mean of the old pressure,
///
/// where A~ - A_pp is zero but for patches that touch a wall: there A~ has the penalty of a wall on both ends of a
/// direction, and the difference lives on the end that has none. So the operator is never applied: the kernel reads b,
/// the velocity around the patch and 2^dim pressures, and writes y. To that end the patch's own modes look like those
/// of a neighbour, and at the wall there is none: mostly they are gathered in its place (ParityBatch::find_cells).
///
/// Cells that are long in one direction (`keeps_pressure`) have Schur complements with eigenvalues as small as the
/// square of their ratio: S^+ would enlarge the rounding of velocities that are balanced by the old pressure. There B^T
/// p_old, mode by mode of a cell, is added to b where it is gathered, and the solution is a correction of all of p_old.
///
/// Parity. Sums and differences of the cells of a patch ("butterflies") split every field into 2^dim classes of n^dim
/// values, and the local problem into 2^dim independent problems: problem w couples the pressure of parity w (bit a:
/// odd in direction a) with component c of parity w with bit c flipped. Functions of P in a class: middle hat (even
/// only), bubbles. Tables of odd P have a row and a column of zeros instead of the hat, so that all problems run the
/// same code. All components run the same code too, in their own frame: direction c first, then a = c + 1, b = c + 2.
///
/// Work of a thread block: `patches` patches side by side, one warp for each of the 2^dim problems; `workers` =
/// 32 / patches lanes share the lines of a patch's problem. Matrices of one direction depend on the weight at the ends
/// of the patch and may differ from lane to lane, so that patches of all kinds go together (batch.cuh). A lane
/// has a whole problem in registers (registers.cuh) for k <= 1 and, in 3D and single precision, for k = 2. Otherwise
/// (line_batch.cuh; lines.cuh, and teams.cuh for small levels) the steps are:
///
///   1. Places of the patch's cells, of their neighbours, and of the cells above those (for their hats).
///   2. For the pressure and one velocity component after the other:
///      a. gather: thread (patch, value) takes the value of the 2^dim cells from b, butterfly, to shared memory; thread
///         (patch, line across a face) reduces the modes around to traces, butterfly; thread (patch, hat) the hats at
///         the ends of the patch;
///      b. solve, velocity: mass matrix on the traces; planes of tangential modes: subtract what traces give, to
///         eigenfunctions; lines along c: subtract what end hats give, to eigenfunctions, divide by the eigenvalues: f.
///         rhs -= C f.
///   3. Schur complement (schur.cuh): p = S^+ rhs on tensor cores (single precision: three products of 11-bit parts).
///   4. For each component: u = f + C^T p / eigenvalues, back to modes; butterfly; write. With the pressure go records
///      that no patch covers (uncovered.cuh).
///
/// Shared memory, everything [value][patch] so that lanes find 32 different banks:
///   fields of one velocity component (`resident`: of all), of the pressure (residual, right-hand side, solution),
///   traces of one component, end hats of one component, univariate tables, places (4 bytes each, 56 a patch in 3D),
///   extra weights (1 byte, 24 a patch in 3D), places of records that no patch covers.
/// What a warp works on between two barriers is its own. f of all components stays in shared memory (`resident`);
/// otherwise that of all but the last goes to y and back: a thread reads just what it wrote. With workers == 1 a
/// problem is solved in registers, component by component.
///
/// Small levels. Where the patches of a colour do not fill the device, time is latency: how long one thread block
/// takes. Then blocks have few patches, and `teams` = dim teams of 2^dim warps: each sees to one component, in shared
/// memory of its own, and all three are gathered and solved at once. Teams meet at the Schur complement: each has a
/// part of the right-hand side, all add them and solve for the same pressure.
///
/// Traffic per unknown, single precision, 3D: DRAM 11 bytes (b, y, three quarters of x); first-level caches ask for 13
/// to 16 (each face of a patch is read by its neighbour) plus 4 for f where it is stashed, half as much again where
/// rows of cells begin in the middle of an interleaved block. Registers, spills, warps: `solenoid study throughput`
/// prints them. Limits (H200): k = 1 94 instructions per unknown and colour (37 of them arithmetic), 1.8 of 4 per
/// cycle; k = 2 87, 1.9 per cycle; latency with 16 warps on a multiprocessor from there on.

#include <algorithm>
#include <iterator>

#include "engine/cuda/kernels/smoother/lines.cuh"
#include "engine/cuda/kernels/smoother/registers.cuh"
#include "engine/cuda/kernels/smoother/teams.cuh"

namespace solenoid::cuda {

/// How a line smoother is cut: patches in a batch, f of all components in shared memory, and blocks on a
/// multiprocessor, which bounds registers. Measured on an H200; the aim is as many warps as shared memory allows,
/// without register spills. Higher orders than those measured are cut as the last of them.
struct LineShape {
  int patches;
  bool resident;
  int blocks;
};
template <class T>
constexpr LineShape line_shape(int dim, int order) {
  constexpr LineShape single_2d[]{{32, true, 7}, {32, true, 5}, {16, true, 4},
                                  {8, true, 4},  {8, true, 3},  {8, true, 2}};
  constexpr LineShape double_2d[]{{16, true, 4}, {8, true, 4}, {8, true, 3}, {8, true, 2}};
  constexpr LineShape single_3d[]{{8, false, 2}, {8, false, 2}, {8, false, 1}};
  constexpr LineShape double_3d[]{{8, false, 2}, {8, false, 1}};
  const auto shape_of = [order](const auto& measured, int first) {
    return measured[std::min<std::size_t>(order - first, std::size(measured) - 1)];
  };
  if (sizeof(T) == sizeof(float)) return dim == 2 ? shape_of(single_2d, 2) : shape_of(single_3d, 3);
  return dim == 2 ? shape_of(double_2d, 2) : shape_of(double_3d, 2);
}

/// Variants 1 and 2 are for small levels and for those with no more patches than multiprocessors,
template <class T, int dim, int order, int variant, bool corrects>
struct ParityVariant {
  using Smoother = TeamSmoother<T, dim, order, variant == 1 ? 4 : 1, corrects>;
  static constexpr int blocks = 1;
};
/// variant 0 is for large ones.
template <class T, int dim, int order, bool corrects>
struct ParityVariant<T, dim, order, 0, corrects> {
  static constexpr LineShape shape = line_shape<T>(dim, order);
  using Smoother = LineSmoother<T, dim, order, shape.patches, shape.resident, corrects>;
  static constexpr int blocks = shape.blocks;
};
template <class T, int dim, int order, bool corrects>
requires(order <= 1 ||
         (order == 2 && dim == 3 && sizeof(T) == sizeof(float))) struct ParityVariant<T, dim, order, 0, corrects> {
  using Smoother = RegisterSmoother<T, dim, order, corrects>;
  static constexpr bool single = sizeof(T) == sizeof(float);
  static constexpr int blocks = dim == 3 ? (single ? 4 - order : 2) : (single || order == 0 ? 8 : 5);
};

/// One thread block for each batch of patches, which also takes the records beside them that no patch covers; with
/// teams, or without batches, more thread blocks do. On a level that several GPUs share the first ones may bring
/// ghosts, and those of patches that read some, the last, wait for them.
template <class T, int dim, int order, int variant, bool corrects>
__global__ void __launch_bounds__(ParityVariant<T, dim, order, variant, corrects>::Smoother::block_threads,
                                  ParityVariant<T, dim, order, variant, corrects>::blocks)
    smooth_parity(const __grid_constant__ ParityParameters<T, dim, order> parameters) {
  using Smoother = typename ParityVariant<T, dim, order, variant, corrects>::Smoother;
  extern __shared__ __align__(16) unsigned char memory[];
  if (parameters.block() < 0) {
    bring_ghosts(parameters.bringing, parameters.waiting, Smoother::teams == 1);
  } else if (parameters.block() < parameters.batch_count) {
    const Smoother smoother(parameters, reinterpret_cast<T*>(memory));
    smoother.smooth();
  } else {
    const auto share = Smoother::Uncovered::find_share(parameters);
    parameters.wait(false);
    __syncthreads();
    Smoother::Uncovered::copy(parameters, share);
  }
}

template <class T, int dim, int order, int variant, bool corrects>
void launch_parity(const ParityArguments<T>& arguments, Stream stream) {
  using Smoother = typename ParityVariant<T, dim, order, variant, corrects>::Smoother;
  static_assert(Smoother::shared_bytes <= most_shared_bytes, "a batch of this order does not fit");
  const int batches = arguments.batch_count;
  const int uncovered = arguments.uncovered_count;
  const int copying =
      Smoother::teams > 1 ? blocks_for(uncovered, Smoother::copied_records) : batches == 0 && uncovered > 0;
  launch(corrects ? "smooth_parity, by cell" : "smooth_parity", smooth_parity<T, dim, order, variant, corrects>,
         arguments.bringing.blocks + batches + copying, Smoother::block_threads, Smoother::shared_bytes, stream,
         ParityParameters<T, dim, order>(arguments, copying));
}

/// Whether a batch fits into shared memory.
template <class T, int dim, int order, int variant>
constexpr bool has_parity_kernel() {
  return ParityVariant<T, dim, order, variant, false>::Smoother::shared_bytes <= most_shared_bytes;
}

/// The instance, or one without functions where there is no kernel. That for corrections is compiled elsewhere
/// (corrections.cuh).
template <class T, int dim, int order, int variant>
constexpr ParityKernel<T> parity_kernel() {
  using Smoother = typename ParityVariant<T, dim, order, variant, false>::Smoother;
  if constexpr (has_parity_kernel<T, dim, order, variant>()) {
    return {Smoother::name, Smoother::patches, launch_parity<T, dim, order, variant, false>,
            correct_parity<T, dim, order, variant>};
  } else {
    return {};
  }
}

}  // namespace solenoid::cuda
