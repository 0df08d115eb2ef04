#pragma once
/// \file
/// What the compiled kernel instances (instruction set x equation x dimension x order x precision) and the engine
/// exchange: plain data and function pointers, so that no library code is compiled for a wide instruction set.

#include <cstdint>
#include <string_view>

#include "engine/kernel_data.hpp"

namespace solenoid::cpu {

/// Where the lanes of a batch lie: up to two runs of records side by side, as neighbours along x do.
struct Runs {
  std::int32_t record[2];  ///< of a run's first lane; record[0]: of the first lane in any case
  std::uint16_t lanes[2];  ///< of a run, one bit each; none: the null record, or scattered

  static constexpr std::int32_t none = -1;  ///< record[1]: there are more than two runs
  [[nodiscard]] bool scattered() const { return record[1] == none; }
};

/// A block of cells as the operator meets it, with all that it needs to know of the mesh around it.
struct alignas(64) CellBlock {
  std::int32_t first;  ///< cell; lanes past the end of the range have none
  Runs own;
  Runs behind[6];   ///< records behind the faces, [side]
  Runs hats[6][2];  ///< and those of their upper hats in the other directions, [side][that after the side's, the next]
  // Lanes whose shares of hats (kernels/operator.hpp) in a direction need care, one bit each, [direction]:
  std::uint16_t share_waits[3];    ///< that of the cell below lies in this cell's hats of y
  std::uint16_t next_is_later[3];  ///< the cell above comes later, in this range
  std::uint16_t next_is_done[3];   ///< the cell above is finished, in this range
  std::uint8_t boundary;           ///< sides with a boundary face in some lane, one bit each
};

/// y = A x, or y = b - A x if b is given, on the cells [begin, end).
template <class T>
struct ApplyArguments {
  const CellData<T>* cell;
  CellTopology topology;
  std::int32_t begin;
  std::int32_t end;
  const CellBlock* blocks;  ///< of the range, in the order in which they are worked on
  std::int64_t block_count;
  /// carry[c]: cells outside [begin, end) whose upper neighbour in direction c is inside.
  const std::int32_t* carry[3];
  std::int64_t carry_count[3];
  const T* x;
  const T* b;
  T* y;
  bool stream;  ///< y is too large for the caches: written past them
};

/// A kind of patches, for the smoother that works without old values.
struct HaloKind {
  int problem;       ///< its local problem
  int weight[3][2];  ///< of the faces on its ends in the local problem
  int face[3][2];    ///< and in the mesh
  bool hat[3][2];    ///< the hats on an end are unknowns of the patch
};

/// Where the records of the lanes of a batch lie: in a block of records, in order, in two blocks (a pair), or anywhere
/// (scattered). Blocks and records are counted from a block of the batch, so that batches share these.
struct alignas(64) LanePlaces {
  enum class Kind : std::uint8_t { whole, pair, scattered };
  std::int32_t block[2]{};   ///< whole: the block, twice; pair: both
  std::uint32_t exists = 0;  ///< lanes with a record, one bit each; the others stand for zero, and are not written
  Kind kind = Kind::whole;
  alignas(64) std::int32_t place[16]{};  ///< pair: of lanes among those of both blocks; scattered: records

  bool operator==(const LanePlaces&) const = default;
};

/// The places around a patch: its cells [bits], the cells beyond its end in direction t [t][bits] (bit t: which end),
/// and of component c cells above these in direction c [c][t after c][bits], where bit c is set.
struct PatchPlaces {
  static constexpr int own(int bits) { return bits; }
  static constexpr int beyond(int dim, int t, int bits) { return (1 + t) << dim | bits; }
  static constexpr int above(int dim, int c, int tau, int bits) {
    return (1 + dim + c * (dim - 1) + tau) << dim | bits;
  }
  static constexpr int count(int dim) { return (1 + dim + dim * (dim - 1)) << dim; }
};

/// Patches of one colour, one per lane. Places are counted from the block of the first lower cell.
struct PatchLanes {
  static constexpr std::int32_t unknown = -1;

  std::int32_t lower[16];         ///< lower cell of a patch, or any record
  std::int32_t kind[16];          ///< of a patch, or the number of its local problem
  std::int32_t places = unknown;  ///< PatchPlaces of the batch in the list of those that batches share
  std::uint16_t active;           ///< bit l: lane l is a patch
  std::uint8_t last_lane;         ///< the last of them
  std::uint8_t extra;  ///< bit t: of some, faces on the ends in direction t are not interior faces with weight 1
  std::uint8_t hats;   ///< bit c: of some, hats on an end in direction c are unknowns
};

/// Batches [begin, end) of those of a thread, [first, last): the first call begins with `first`, the last ends with
/// `last`.
template <class T>
struct HaloArguments {
  const CellData<T>* cell;
  CellTopology topology;
  const HaloKind* kinds;
  const PatchData<T>* problems;
  const std::uint8_t* splits;  ///< [problem]: by parity, in all directions
  int problem_count;
  const PatchLanes* batches;
  const LanePlaces* places;  ///< [PatchLanes::places][PatchPlaces]
  std::int64_t first;
  std::int64_t last;
  std::int64_t begin;
  std::int64_t end;
  const T* b;
  const T* x;  ///< nullptr stands for zero
  T* y;
  void* workspace;
};

/// A local solve: from the residuals of a batch to corrections, both in the workspace.
template <class T>
struct LocalArguments {
  const PatchData<T>* patch;
  LocalSolverKind local;
  void* workspace;
};
template <class T>
using LocalSolve = void (*)(const LocalArguments<T>&);

/// Batches [begin, end) of those of a thread, [first, last): the first call begins with `first`, the last ends with
/// `last`.
template <class T>
struct SmoothArguments {
  const CellData<T>* cell;
  CellTopology topology;
  const PatchData<T>* problems;  ///< [PatchLanes::kind]
  const std::uint8_t* splits;    ///< [PatchLanes::kind]: by parity, in all directions
  int problem_count;
  const PatchLanes* batches;
  std::int64_t first;
  std::int64_t last;
  std::int64_t begin;
  std::int64_t end;
  LocalSolverKind local;
  LocalSolve<T> solve[2];  ///< [splits]
  const T* b;
  const T* x;  ///< nullptr stands for zero
  T* y;        ///< gets the new values, or `damping` times the correction is added
  bool add;
  T damping;
  void* workspace;
};

/// Small patches of one shape, [begin, end), which share no unknown.
template <class T>
struct SmallArguments {
  const std::int32_t* records;  ///< [patch][2]
  std::int64_t begin;
  std::int64_t end;
  const SmallPlace* unknowns;
  int size;
  int record_size;
  const T* inverse;
  const T* r;
  T* x;
  T damping;
  void* workspace;  ///< 2 x size x 16 numbers
};

/// Transfer between a coarse cell and its children, for coarse cells [begin, end).
template <class T>
struct TransferArguments {
  const CellData<T>* cell;
  CellTopology coarse;
  const std::int32_t*
      children;  ///< [coarse cell][2^dim]: fine cell, direction bits; bits of directions not coarsened are 0
  std::int32_t fine_null;
  bool refined[3];
  std::int32_t begin;
  std::int32_t end;
  const T* from;
  T* to;
};

template <class T>
struct KernelTable {
  /// Fills a block in, but for shares of hats, from its first cell; `end` as in ApplyArguments.
  void (*locate)(const CellTopology&, std::int32_t end, CellBlock& block);
  void (*apply)(const ApplyArguments<T>&);
  std::int64_t (*workspace_bytes)(int problems);  ///< per thread
  void (*smooth)(const SmoothArguments<T>&);
  LocalSolve<T> solve[2];  ///< of patches that do not split by parity, and of those that do
  /// PatchPlaces of a batch.
  void (*find_places)(const CellTopology&, const PatchLanes&, LanePlaces* places);
  std::int64_t (*halo_workspace_bytes)(int problems);  ///< per thread
  void (*smooth_halo)(const HaloArguments<T>&);        ///< nullptr with Poisson's equation
  /// x += damping * inverse times r
  void (*smooth_small)(const SmallArguments<T>&);
  void (*restrict_to)(const TransferArguments<T>&);
  void (*prolong_add)(const TransferArguments<T>&);
};

/// The instance for this machine. \throws InputError that lists the orders of this build.
template <class T>
const KernelTable<T>& kernel_table(EquationKind equation, int dim, int order);
/// The best instruction set of this build and machine: "native", "v4", "v3" or "baseline". Orders that a build has no
/// kernels for in it take the next one. \throws ResourceError if there is none.
std::string_view instruction_set();

}  // namespace solenoid::cpu
