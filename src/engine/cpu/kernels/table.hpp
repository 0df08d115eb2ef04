#pragma once
/// \file
/// What the compiled kernel instances (instruction set x dimension x order x precision) and the engine exchange:
/// plain data and function pointers, so that no library code is compiled for a wide instruction set.

#include <cstdint>

#include "mesh/grid.hpp"

namespace solenoid::cpu {

inline constexpr int max_n = 9;  ///< k + 1 for the largest order

/// Univariate matrices of a cell (univariate/matrices.hpp) and the coefficients of a level.
template <class T>
struct CellData {
  T mass[max_n + 1][max_n + 1];
  T value[max_n];
  T slope[max_n];
  T embed_o[2][max_n][max_n];  ///< [child][fine][coarse]
  T embed_p[2][max_n + 1][max_n + 1];
  T penalty;  ///< gamma h
  T inverse_h[3];
  T viscosity;
  T alpha;
  // Interior-penalty Laplacian of O in each direction, times nu / h^2: the cell's own block between two interior faces,
  T own[3][max_n][max_n];
  // and that of the cell below: row j, column i. The cell above, mirrored, has (-1)^(i+j) times the same.
  T below[3][max_n][max_n];
};

/// The cells of a level as the kernels see them.
struct CellTopology {
  const std::int32_t* neighbour[6];  ///< [side][record]
  const Face* face[6];               ///< [side][record]
  std::int32_t cells;
  std::int32_t records;
  std::int32_t null;
};

/// Where the shares of a cell's hats lie when the cell is worked on (kernels/operator.hpp), one bit per direction c.
enum Handover : std::uint8_t {
  share_waits = 1,   ///< << c: the share of the cell below lies in this cell's hats of y
  next_is_later = 8  ///< << c: the cell above comes later, in this range
};

/// y = A x, or y = b - A x if b is given, on the cells [begin, end).
template <class T>
struct ApplyArguments {
  const CellData<T>* cell;
  CellTopology topology;
  std::int32_t begin;
  std::int32_t end;
  const std::int32_t* order;  ///< first cells of the blocks of the range, in the order in which they are worked on
  std::int64_t order_count;
  const std::uint8_t* handover;  ///< [record]
  /// carry[c]: cells outside [begin, end) whose upper neighbour in direction c is inside.
  const std::int32_t* carry[3];
  std::int64_t carry_count[3];
  const T* x;
  const T* b;
  T* y;
  bool stream;  ///< y is too large for the caches: written past them
};

/// One kind of patch (level/patch_solver.hpp). For kernels that split by parity the eigenvector matrices hold the rows
/// of the lower cell, even block then odd block; otherwise they are whole. All row-major.
template <class T>
struct PatchData {
  const T* eigen_o[3];
  const T* eigen_p[3];
  const T* divergence[3];  ///< parity: C(odd, even) then C(even, odd); otherwise whole, 2n x np
  const T* inverse_lambda[3];
  int first[3];
  int last[3];
  int weight[3][2];  ///< of the local matrix
  int face[3][2];    ///< of the faces that are there, or mixed
  bool hat[3][2];
  const T* end_laplace[3];  ///< 2n x 2n interior-penalty matrix with the weights of the real faces; parity kernels only
  int block_count;
  const int (*block_start)[3];
  const int (*block_length)[3];
  const T* const* block_inverse;
  const T* constant;  ///< constant pressure in the eigenbasis, or nullptr
  T schur_bounds[2];
  const T* dense;  ///< or nullptr
  std::int64_t dense_size;
};

enum class Local : int { direct, chebyshev, cg, dense };

/// One colour's batches of patches of one kind, [begin, end) of the list.
template <class T>
struct SmoothArguments {
  const CellData<T>* cell;
  const PatchData<T>* patch;
  CellTopology topology;
  const std::int32_t* lower;    ///< [batch][lane]: lower cell of a patch, or a record that is not written
  const std::uint32_t* active;  ///< [batch]: bit l: lane l is a patch
  std::int64_t begin;
  std::int64_t end;
  Local local;
  const T* b;
  const T* x;  ///< nullptr stands for zero
  T* y;        ///< gets the new values, or `damping` times the correction is added
  bool add;
  T damping;
  void* workspace;
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
  std::int64_t workspace_bytes;  ///< per thread
  void (*apply)(const ApplyArguments<T>&);
  void (*smooth_parity)(const SmoothArguments<T>&);
  void (*smooth_general)(const SmoothArguments<T>&);
  void (*restrict_to)(const TransferArguments<T>&);
  void (*prolong_add)(const TransferArguments<T>&);
};

/// The instance for this machine. \throws InputError that lists the orders of this build.
template <class T>
const KernelTable<T>& kernel_table(int dim, int order);
/// The instruction set that kernel_table chooses: "native", "v4", "v3" or "baseline".
const char* instruction_set();

}  // namespace solenoid::cpu
