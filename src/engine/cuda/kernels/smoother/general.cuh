#pragma once
/// \file
/// The vertex-patch smoother for every kind of patch and every local solver: one launch per colour, a thread block for
/// each patch, whatever its kind.
///
/// Sides with slip or outflow have patches whose ends differ, so that they do not split by parity; the additive
/// smoother and the local solvers for comparison take all their patches through here.
///
/// Arrays of a patch, N = 2n: velocity component c as [e][i_b][i_a] with the 2n + 1 functions e of P slowest (end hat,
/// bubbles, middle hat, bubbles, end hat; only first..last are unknowns), a = c + 1, b = c + 2 (mod dim), i = n (upper
/// cell) + mode; pressure as [i_z][i_y][i_x]. In the eigenbasis the same with eigenfunctions for functions.
///
/// Steps, each on lines of all components at once:
///   1. residual: r = b - M^P w - nu L^P u + B^T p with w = (nu L^O_a + nu L^O_b + alpha) u, the operator's formula
///      (operator.cuh) with the factors in the other order. Rows of w are those of the two cells, n + 1 each: beside
///      holes the middle hat has other neighbours in the lower than in the upper cell. Lines along a and b find what is
///      behind their ends in memory, at a boundary themselves (line_operator.cuh).
///   2. local solve: eigenfunctions along a, b, then c, where f = A^-1 r and C f are made; the Schur complement; back.
///   3. y = x + correction.
/// Work is shared out by for_each alone: a step is right for any number of threads. A thread block has one patch, so
/// that time is latency, above all that of memory: five times in a row something is waited for that tells where the
/// next is (patch; its cells' neighbours; theirs; what lies behind the ends; S^-1, as soon as its right-hand side is
/// there). Everything else is on its way to shared memory or to the first-level cache long before it is used.
///
/// Shared memory, in numbers: u [dim][(N + 1) columns], r the same, w [dim][(N + 2) columns], the pressure, the old
/// one, one more (direct, dense) or three (Chebyshev, CG); a sum for each thread; S_O, S_P and C of each direction; the
/// kind of patch; records. Traffic per patch: its values of b, x and y once (in the largest patches, which have no room
/// for r and the old pressure, b and x twice), those of the cells behind its ends, and the tables of its kind from the
/// caches.

#include "engine/cuda/kernels/smoother/general_residual.cuh"
#include "engine/cuda/kernels/smoother/general_solver.cuh"
#include "solenoid/error.hpp"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct GeneralSmoother : GeneralBlock<T, dim, order> {
  using Base = GeneralBlock<T, dim, order>;
  using Base::modes, Base::columns, Base::functions, Base::pressures, Base::corners, Base::roomy, Base::for_each,
      Base::meet, Base::for_columns, Base::pressure_cell, Base::pressure_start;
  using typename Base::S, typename Base::Memory, typename Base::Arguments, typename Base::Column, typename Base::Tables;
  using Residual = GeneralResidual<T, dim, order>;
  using Solver = GeneralSolver<T, dim, order>;

  /// y = x + correction, or y += damping * correction, on all values of the patch's cells and on the hats at its upper
  /// ends that belong to it. Hats at its lower ends may not.
  __device__ static void write(const Arguments& arguments, const Memory& memory) {
    const PatchData<T>& kind = memory.kind;
    const bool from_zero = !arguments.colour.add && arguments.colour.x == nullptr;
    const T* const base = arguments.colour.add ? arguments.colour.y
                          : roomy              ? nullptr
                                               : arguments.colour.x;  // if it is not here
    const auto base_of = [&](const T& here, std::int64_t at) {
      return from_zero ? T(0) : base == nullptr ? here : base[at];
    };
    for_columns([&](int c, int column) {
      const Column at(memory, c, column);
      T y[functions];
#pragma unroll
      for (int e = 0; e < functions; ++e) y[e] = base_of(memory.u[c][e * columns + column], at[e]);
#pragma unroll
      for (int e = 0; e < functions; ++e) {
        const bool unknown = e >= kind.first[c] && e <= kind.last[c];
        if (e == modes && !unknown) continue;  // in a cell of another patch
        const T correction = unknown ? memory.residual(c)[e * columns + column] : T(0);
        arguments.colour.y[at[e]] = y[e] + arguments.factor * correction;
      }
    });
    for_each(pressures, [&](int i) {
      const std::int64_t at = S::offset(memory.cells[pressure_cell(i)]) + pressure_start(i);
      arguments.colour.y[at] = base_of(memory.old()[i], at) + arguments.factor * memory.pressure[i];
    });
  }

  __device__ static void smooth(const Tables& tables, const Arguments& arguments, Memory& memory) {
    const GeneralPatch& patch = arguments.patches[blockIdx.x];
    const int kind = patch.kind;
    for_each(corners, [&](int corner) { memory.cells[corner] = patch.cells[corner]; });
    meet();
    Residual::look_up(arguments.topology, memory);
    if (!arguments.beside) wait_for_earlier_kernels();
    Residual::load(arguments, memory);
    Residual::load_tables(arguments, kind, memory);
    meet();
    Residual::look_up_above(arguments.topology, memory);
    Residual::load_above(arguments, memory);
    Base::meet_copies();
    Residual::residual(tables, arguments, memory);
    Solver::solve(arguments.local, memory);
    write(arguments, memory);
    if (arguments.beside) wait_for_earlier_kernels();  // so that who waits for this kernel waits for that one too
  }

  static void launch_smooth(const GeneralArguments<T>& arguments, Stream stream);
};

template <class T, int dim, int order>
__global__
__launch_bounds__(GeneralSmoother<T, dim, order>::threads, GeneralSmoother<T, dim, order>::blocks) void smooth_patches(
    const __grid_constant__ OperatorTables<T, dim, order> tables,
    const __grid_constant__ typename GeneralSmoother<T, dim, order>::Arguments arguments) {
  using Smoother = GeneralSmoother<T, dim, order>;
  extern __shared__ __align__(16) unsigned char memory[];
  Smoother::smooth(tables, arguments, *reinterpret_cast<typename Smoother::Memory*>(memory));
}

template <class T, int dim, int order>
void GeneralSmoother<T, dim, order>::launch_smooth(const GeneralArguments<T>& arguments, Stream stream) {
  static_assert(Base::shared_bytes(LocalSolverKind::direct) <= most_shared_bytes, "a patch of this order does not fit");
  if (Base::shared_bytes(arguments.local) > most_shared_bytes) {
    throw ResourceError(
        "the local solvers \"chebyshev\" and \"cg\" need more shared memory than a GPU has for patches of this order "
        "in double precision: use \"direct\", single precision (\"mixed\") or --device cpu");
  }
  const Tables tables(*arguments.cell);
  const Arguments with_factor{arguments, arguments.cell->alpha, arguments.colour.factor()};
  launch("smooth (general)", smooth_patches<T, dim, order>, static_cast<unsigned>(arguments.count), Base::threads,
         Base::shared_bytes(arguments.local), stream, tables, with_factor);
}

}  // namespace solenoid::cuda
