#pragma once
/// \file
/// What the cuda engine and its compiled kernel instances (equation x dimension x order x precision) exchange: plain
/// data and functions that launch kernels. Pointers are to device memory unless said otherwise.

#include <cstdint>

#include "engine/kernel_data.hpp"

struct CUstream_st;

namespace solenoid::cuda {

using Stream = CUstream_st*;

/// Blocks of 16 interleaved records (mesh/record.hpp) that a kernel works on, in an order that keeps neighbours in
/// space near each other.
struct RecordBlocks {
  const std::int32_t* list;
  std::int32_t count;
  std::int32_t tile_faces;  ///< most_tile_faces of the list
};

/// Cells of a tile of the operator: so many records of neighbouring blocks, 32 x 2 x 2 cells where rows allow.
constexpr int tile_cells(int dim, int order) {
  if (dim == 2) return order < 4 ? 128 : 64;
  return order < 3 ? 128 : order == 3 ? 64 : 32;
}

/// Set for cells that have, at corners of holes, a neighbour that is not above the neighbour of the cell below.
inline constexpr unsigned irregular_cell = 1 << 6;

/// y = A x, or y = b - A x if b is given, on the cells of some blocks and on all hat-only records.
template <class T>
struct ApplyArguments {
  const CellData<T>* cell;  ///< host memory
  CellTopology topology;
  const std::uint8_t* boundary_sides;  ///< [record]: bit `side` for every face that is not interior, irregular_cell
  RecordBlocks blocks;
  const T* x;
  const T* b;
  T* y;
};

/// One colour's patches of one kind, `lower[0..count)`: y gets x + correction on all values of their cells and on the
/// hats of hat-only records that belong to them.
template <class T>
struct SmoothArguments {
  const CellData<T>* cell;  ///< host memory
  PatchData<T> patch;
  CellTopology topology;
  const std::int32_t* lower;
  std::int64_t count;
  Local local;
  const T* b;
  const T* x;         ///< nullptr stands for zero
  const T* residual;  ///< b - A x on the cells of the patches; given to smooth_general only
  T* y;               ///< gets the new values, or `damping` times the correction is added
  bool add;
  T damping;
};

/// Transfer between coarse cells and their children.
template <class T>
struct TransferArguments {
  const CellData<T>* cell;  ///< host memory
  CellTopology fine;
  CellTopology coarse;
  const std::int32_t* children;  ///< [coarse cell][2^dim]: fine cell, or the fine null record
  const std::int32_t* parent;    ///< [fine cell]: coarse cell * 2^dim + direction bits
  bool refined[3];
  RecordBlocks blocks;  ///< of the fine grid to prolong, of the coarse grid to restrict
  const T* from;
  T* to;
};

template <class T>
struct ParityArguments;  // kernels/parity.hpp
template <class T>
struct PoissonArguments;  // kernels/poisson.hpp

/// A compiled variant of the smoother for patches that split by parity.
template <class T>
struct ParityKernel {
  int patches;  ///< in a batch
  /// All patches of a colour that split by parity, local solver `direct`; nullptr if this instance has no such kernel.
  void (*smooth)(const ParityArguments<T>&, Stream);
};
/// Variants for large, small and the smallest levels, with fewer and fewer patches in a batch.
inline constexpr int parity_variants = 3;

/// The smoother of Poisson's equation.
template <class T>
struct PoissonKernel {
  int patches;  ///< in a batch
  void (*smooth)(const PoissonArguments<T>&, Stream);
};

/// Every function launches kernels on a stream and returns at once. \throws ResourceError that names the kernel. Those
/// of the other equation are nullptr.
template <class T>
struct KernelTable {
  void (*apply)(const ApplyArguments<T>&, Stream);
  ParityKernel<T> parity[parity_variants];
  /// All kinds of patches and local solvers; tables are whole matrices.
  void (*smooth_general)(const SmoothArguments<T>&, Stream);
  PoissonKernel<T> poisson;
  void (*restrict_to)(const TransferArguments<T>&, Stream);
  void (*prolong_add)(const TransferArguments<T>&, Stream);
};

/// The instance for an equation, dimension and order. \throws InputError that lists the orders of this build.
template <class T>
const KernelTable<T>& kernel_table(EquationKind equation, int dim, int order);

}  // namespace solenoid::cuda
