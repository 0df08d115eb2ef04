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
};

/// Cells of a tile of the operator: so many records of neighbouring blocks, 32 x 2 x 2 cells where rows allow.
constexpr int tile_cells(int dim, int order) {
  if (dim == 2) return order < 4 ? 128 : 64;
  return order < 3 ? 128 : order == 3 ? 64 : 32;
}

/// Tiles of a list of blocks, and what lies around them. A tile has a list of the blocks in it, which come first, and
/// around it; place 16 i + j in that list is its name for record j of block i. What lies where is the tile's pattern in
/// these names, which it shares with most other tiles. A pattern has words of 32 bits: tile_header with the number of
/// faces in each direction; then a tile_side for each [side][cell]; then, for one component after the other, room for
/// most_faces, a TileFace for each face in the next direction and in the one after that. Lists have room for the
/// longest, so that a thread block finds its own at once.
struct Tiles {
  const std::int32_t* lists;      ///< [tile][1 + most_blocks]: where its pattern begins, its blocks
  const std::uint32_t* patterns;  ///< of all tiles
  std::int32_t count;
  std::int32_t most_blocks;  ///< of a tile
  std::int32_t most_faces;   ///< of a tile, for one component
};
inline constexpr int tile_header = 4;

/// What is behind a side of a cell. `where`: a cell of the tile, or the number of cells + that of a face of this
/// direction; a name; whether the normal velocity on it is prescribed.
///
///     0bFNNNNNNNNNNNNNNNWWWWWWWWWWWWWWWW
///       ^                                 F: fixed
///        ^-------------^                  N: neighbour
///                       ^--------------^  W: where
constexpr std::uint32_t tile_side(std::uint32_t where, std::uint32_t neighbour, bool fixed) {
  return where | neighbour << 16 | (fixed ? 1U << 31 : 0U);
}
constexpr int side_where(std::uint32_t side) { return static_cast<int>(side & 0xffff); }
constexpr std::uint32_t side_neighbour(std::uint32_t side) { return side >> 16 & 0x7fff; }
constexpr bool side_fixed(std::uint32_t side) { return side >> 31 != 0; }

/// Where a tile finds what lies beyond a side of its cells: names of the cell whose traces these are, the record above
/// it, the cell that has the other half of its hats, and the record above that one. Bits 0 and 1 of `code`: the first
/// counts with a minus in even, odd modes; 2 and 3: the other half.
///
///     own   0bCCCCAAAAAAAAAAAAAAOOOOOOOOOOOOOO
///             ^--^                              C: code, bit 3 to bit 0
///                 ^------------^                A: above
///                               ^------------^  O: own
///     below 0b0000TTTTTTTTTTTTTTBBBBBBBBBBBBBB
///                 ^------------^                T: top
///                               ^------------^  B: below
struct TileFace {
  std::uint32_t own;
  std::uint32_t below;
};
inline constexpr int name_bits = 14;
constexpr TileFace tile_face(std::uint32_t own, std::uint32_t above, std::uint32_t below, std::uint32_t top,
                             std::uint32_t code) {
  return {own | above << name_bits | code << 2 * name_bits, below | top << name_bits};
}

/// y = A x, or y = b - A x if b is given, on the cells of some blocks and on all hat-only records.
template <class T>
struct ApplyArguments {
  const CellData<T>* cell;  ///< host memory
  CellTopology topology;
  Tiles tiles;                         ///< Stokes equations
  RecordBlocks blocks;                 ///< Poisson's equation: the same blocks
  const std::uint8_t* boundary_sides;  ///< Poisson's equation: [record]: bit `side` for every face that is not interior
  const T* x;
  const T* b;
  T* y;
  float* rounded = nullptr;      ///< Stokes equations, double precision: the residual goes there, and not to y,
  double* norms = nullptr;       ///< [thread block]: the norm of what it has of that in owned cells,
  std::int32_t first_owned = 0;  ///< from this one
  std::int32_t last_owned = 0;   ///< up to this one
};

/// Unknowns of small patches of one shape.
struct PatchUnknowns {
  const std::int32_t* records;  ///< [patch][2]
  std::int32_t count;           ///< of patches
  const SmallPlace* unknowns;   ///< of each
  int size;
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
  bool add;  ///< what is prolonged to what is there; otherwise instead of it, where there are no hat-only records
};

template <class T>
struct GeneralArguments;  // kernels/smoother/general.hpp
template <class T>
struct ParityArguments;  // kernels/smoother/parity.hpp
template <class T>
struct PoissonArguments;  // kernels/smoother/poisson.hpp
template <class T>
struct ElementArguments;            // kernels/elements.hpp
struct LoadArguments;               // kernels/load.hpp
struct ConvectionArguments;         // kernels/convection.hpp
struct ShearedConvectionArguments;  // the same
struct PointViscosityArguments;     // kernels/point_viscosity.hpp
struct FlowIntegralsArguments;      // kernels/flow_integrals.hpp
struct FlowMomentsArguments;        // kernels/flow_moments.hpp

/// A compiled variant of the smoother for patches that split by parity.
template <class T>
struct ParityKernel {
  const char* name;
  int patches;  ///< in a batch
  /// All patches of a colour that split by parity, local solver `direct`; nullptr if this instance has no such kernel.
  void (*smooth)(const ParityArguments<T>&, Stream);
  void (*correct)(const ParityArguments<T>&, Stream);  ///< the same of residuals that are there
};
/// Variants for large, small and the smallest levels, with fewer and fewer patches in a batch.
inline constexpr int parity_variants = 3;

/// The smoother for all kinds of patches and local solvers.
template <class T>
struct GeneralKernel {
  int together;  ///< patches that a thread block takes where there are many
  int many;      ///< for a multiprocessor: from there on it has enough to do with thread blocks that share their tables
  void (*smooth)(const GeneralArguments<T>&, Stream);
};

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
  void (*residual_at)(const ApplyArguments<T>&, const PatchUnknowns&, Stream);  ///< b is given; y there alone
  void (*apply_varying)(const ElementArguments<T>&, Stream);
  void (*apply_sheared)(const ElementArguments<T>&, Stream);
  ParityKernel<T> parity[parity_variants];
  GeneralKernel<T> general;
  PoissonKernel<T> poisson;
  void (*restrict_to)(const TransferArguments<T>&, Stream);
  void (*prolong)(const TransferArguments<T>&, Stream);
  // In double precision only:
  void (*load)(const LoadArguments&, Stream);  ///< b must be zero
  void (*convect)(const ConvectionArguments&, Stream);
  void (*convect_sheared)(const ShearedConvectionArguments&, Stream);
  void (*add_point_viscosity)(const PointViscosityArguments&, Stream);
  void (*add_sheared_point_viscosity)(const PointViscosityArguments&, Stream);
  int (*integrate_flow)(const FlowIntegralsArguments&, Stream);  ///< returns the number of its thread blocks
  void (*add_flow_moments)(const FlowMomentsArguments&, Stream);
};

/// The instance for an equation, dimension and order. \throws InputError that lists the orders of this build.
template <class T>
const KernelTable<T>& kernel_table(EquationKind equation, int dim, int order);

}  // namespace solenoid::cuda
