#pragma once
/// \file
/// What compiled kernels see of a level: plain data and pointers into the memory of their engine, shared by all
/// engines. No library types, so that kernels may be compiled for any instruction set or device.

#include <cstdint>

#include "mesh/face.hpp"
#include "solenoid/kernel_choices.hpp"

namespace solenoid {

inline constexpr int max_n = 9;  ///< k + 1 for the largest order

/// Univariate matrices of a cell (element/matrices.hpp) and the coefficients of a level.
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
  T interior[max_n][max_n];  ///< interior-penalty Laplacian of O: a cell's own block between two interior faces, h = 1
  // The same in each direction, times nu / h^2,
  T own[3][max_n][max_n];
  // and that of the cell below: row j, column i. The cell above, mirrored, has (-1)^(i+j) times the same.
  T below[3][max_n][max_n];
};

/// The coefficients of a level where they vary by cell, in the memory of the engine, and what else CellData lacks then.
template <class T>
struct VaryingData {
  const T* viscosity;      ///< [record], 1 where there is no cell
  const T* reaction;       ///< the same, 0 where there is no cell
  bool stress;             ///< the viscous term is in its stress form
  T volume[max_n][max_n];  ///< (psi_i', psi_j') of O on the unit interval
};

/// True if the mass matrix of P couples functions i and j of a cell (0 and n are hats).
constexpr bool mass_couples(int n, int i, int j) {
  const bool hat_i = i == 0 || i == n;
  const bool hat_j = j == 0 || j == n;
  if (hat_i && hat_j) return true;
  if (hat_i) return j <= 2;
  if (hat_j) return i <= 2;
  const int distance = i > j ? i - j : j - i;
  return distance == 0 || distance == 2;
}

/// The cells of a level.
struct CellTopology {
  const std::int32_t* neighbour[6];  ///< [side][record]
  const Face* face[6];               ///< [side][record]
  std::int32_t cells;
  std::int32_t records;
  std::int32_t null;
};

/// One kind of patch (level/patch_solver.hpp). Tables split by parity hold the rows of the lower cell of the
/// eigenvector matrices, even block then odd block; otherwise they hold whole matrices. All row-major.
template <class T>
struct PatchData {
  static constexpr int max_blocks = 8;

  const T* eigen_o[3];
  const T* eigen_p[3];
  const T* divergence[3];  ///< parity: C(odd, even) then C(even, odd); otherwise whole, 2n x np
  const T* inverse_lambda[3];
  int first[3];
  int last[3];
  bool hat[3][2];
  bool cut[3][2];
  int block_count;
  int block_start[max_blocks][3];
  int block_length[max_blocks][3];
  const T* block_inverse[max_blocks];
  const T* constant;           ///< constant pressure in the eigenbasis, or nullptr
  const T* pressure_modes[3];  ///< R of the preconditioner, or nullptr; parity: even block, odd block
  const T* preconditioner;     ///< P^-1 in that basis, or nullptr
  T schur_bounds[2];
  const T* dense;  ///< or nullptr
  std::int64_t dense_size;
};

/// Where an unknown of a small patch lies (level/small_solver.hpp): in which of its two records, so many numbers behind
/// the place of value 0 of that.
struct SmallPlace {
  std::int32_t record;
  std::int32_t offset;
};

}  // namespace solenoid
