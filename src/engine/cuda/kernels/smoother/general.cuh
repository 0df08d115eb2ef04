#pragma once
/// \file
/// The vertex-patch smoother for every kind of patch and every local solver: one launch per colour, a thread block for
/// one or two patches, whatever their kind.
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
/// Work is shared out by for_each alone: a step is right for any number of threads. Few patches are one to a thread
/// block, so that time is latency, above all that of memory: five times in a row something is waited for that tells
/// where the next is (patch; its cells' neighbours; theirs; what lies behind the ends; S^-1, as soon as its right-hand
/// side is there). Everything else is on its way to shared memory or to the first-level cache long before it is used.
/// Where there are more patches than the device has room for at once, two of a kind share a thread block: from k = 3 on
/// time is then that of S^-1 from the second-level cache, which both are multiplied with as it passes.
///
/// Shared memory, in numbers: S_O, S_P and C of each direction; the kind of patches. For each patch u [dim][(N + 1)
/// columns], r the same, w [dim][(N + 2) columns], the pressure, the old one, one more; records. For Chebyshev and CG
/// two pressures more and a sum for each thread. Lines are padded to an odd length: [N + 1][N][N + 1] for u. Traffic
/// per patch: its values of b, x and y once (in the largest patches, which have no room for r and the old pressure, b
/// and x twice), those of the cells behind its ends, and the tables of its kind from the caches.

#include "engine/cuda/kernels/smoother/general_residual.cuh"
#include "engine/cuda/kernels/smoother/general_solver.cuh"
#include "solenoid/error.hpp"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct GeneralSmoother : GeneralBlock<T, dim, order> {
  using Base = GeneralBlock<T, dim, order>;
  using Base::modes, Base::corners, Base::roomy, Base::row_pitch, Base::meet;
  using typename Base::S, typename Base::BlockMemory, typename Base::Memory, typename Base::Work,
      typename Base::Arguments, typename Base::Value, typename Base::Tables;
  using Residual = GeneralResidual<T, dim, order>;
  using Solver = GeneralSolver<T, dim, order>;

  /// y = x + correction, or y += damping * correction, on all values of the patch's cells and on the hats at its upper
  /// ends that belong to it. Hats at its lower ends may not.
  __device__ static void write(const Arguments& arguments, const Work& work) {
    const PatchData<T>& kind = work.memory.kind.data;
    const bool from_zero = !arguments.colour.add && arguments.colour.x == nullptr;
    const T* const base = arguments.colour.add ? arguments.colour.y
                          : roomy              ? nullptr
                                               : arguments.colour.x;  // if it is not here
    const auto base_of = [&](const T& here, std::int64_t at) {
      return from_zero ? T(0) : base == nullptr ? here : base[at];
    };
    const auto factor_of = [&](const Memory& memory, bool of_velocity) {
      if (arguments.colour.root == nullptr) return arguments.factor;
      const T root = __ldg(arguments.colour.root + memory.cells[0]);
      return arguments.factor * (of_velocity ? T(1) / root : root);
    };
    work.for_values([&](const Memory& memory, int corner, int i) {
      const Value value(corner, i);
      const std::int64_t at = S::offset(memory.cells[corner]) + i * interleave;
      T old;
      T correction;
      if (value.is_velocity()) {
        const bool unknown = value.e >= kind.first[value.c] && value.e <= kind.last[value.c];
        old = base_of(memory.u[value.c][value.in_component()], at);
        correction = unknown ? memory.residual(value.c)[value.in_component()] : T(0);
      } else {
        old = base_of(memory.old()[value.place], at);
        correction = memory.pressure[value.place];
      }
      arguments.colour.y[at] = old + factor_of(memory, value.is_velocity()) * correction;
    });
    work.for_columns([&](const Memory& memory, int c, int column) {
      if (kind.last[c] < modes) return;  // in a cell of another patch
      const std::int64_t at = S::offset(memory.above[c][Base::cell_of(c, column, 1)]) + Base::start_of(c, column);
      const int place = modes * row_pitch + Base::place_of(column);
      arguments.colour.y[at] = base_of(memory.u[c][place], at) + factor_of(memory, true) * memory.residual(c)[place];
    });
  }

  __device__ static void smooth(const Tables& tables, const Arguments& arguments, BlockMemory& memory) {
    const GeneralPatches& patches = arguments.patches[blockIdx.x];
    const int kind = patches.kind;
    const Work work{memory, patches.count};
    for (int i = static_cast<int>(threadIdx.x); i < work.count * corners; i += Base::threads) {
      (i < corners ? memory.first : memory.second).cells[i % corners] = patches.cells[i / corners][i % corners];
    }
    meet();
    Residual::look_up(arguments.topology, work);
    if (!arguments.beside) wait_for_earlier_kernels();
    Residual::load(arguments, work);
    Residual::load_tables(arguments, kind, memory.kind);
    meet();
    Residual::look_up_above(arguments.topology, work);
    Residual::load_above(arguments, work);
    Base::meet_copies();
    Residual::residual(tables, arguments, work);
    Solver::solve(arguments.local, work);
    write(arguments, work);
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
  Smoother::smooth(tables, arguments, *reinterpret_cast<typename Smoother::BlockMemory*>(memory));
}

template <class T, int dim, int order>
void GeneralSmoother<T, dim, order>::launch_smooth(const GeneralArguments<T>& arguments, Stream stream) {
  static_assert(Base::shared_bytes(LocalSolverKind::direct, 1) <= most_shared_bytes,
                "a patch of this order does not fit");
  const std::size_t shared_bytes = Base::shared_bytes(arguments.local, arguments.together);
  if (shared_bytes > most_shared_bytes) {
    throw ResourceError(
        "the local solvers \"chebyshev\" and \"cg\" need more shared memory than a GPU has for patches of this order "
        "in double precision: use \"direct\", single precision (\"mixed\") or --device cpu");
  }
  const Tables tables(*arguments.cell);
  const Arguments with_factor{arguments, arguments.cell->alpha, arguments.colour.factor()};
  launch("smooth (general)", smooth_patches<T, dim, order>, static_cast<unsigned>(arguments.count), Base::threads,
         shared_bytes, stream, tables, with_factor);
}

}  // namespace solenoid::cuda
