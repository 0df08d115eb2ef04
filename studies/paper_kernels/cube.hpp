#pragma once
/// \file
/// A box of cubes with no-slip walls: its unknowns in the paper's numbering, its patches, its univariate matrices.

#include <array>
#include <cstdint>
#include <vector>

#include "studies/paper_kernels/arguments.hpp"

namespace solenoid::paper {

struct Cube {
  Cube(int order, std::array<int, 3> extent);

  int order;
  std::array<int, 3> extent;  ///< cells per direction
  /// [cell][entity], cells x fastest. Velocities are numbered cell by cell, first the faces that are new, then what is
  /// inside; pressures follow. Normal unknowns on walls have numbers too; they are zero and stay so.
  std::vector<std::int32_t> first;
  std::int64_t size = 0;      ///< of vectors
  std::int64_t unknowns = 0;  ///< to be solved for

  [[nodiscard]] std::int32_t cell(const std::array<int, 3>& position) const {
    return position[0] + extent[0] * (position[1] + extent[1] * position[2]);
  }
};

/// Some patches.
struct PatchList {
  std::vector<std::int32_t> cells;
  std::vector<std::uint8_t> kind;

  [[nodiscard]] int count() const { return static_cast<int>(kind.size()); }
};

/// All patches of a cube, x fastest; or those whose lower cell has the parities in `colour` (bit d: direction d).
PatchList all_patches(const Cube& cube);
PatchList patches_of_colour(const Cube& cube, int colour);

/// As many patches of a kind as a patch has unknowns, none of which share any: for the columns of an inverse.
struct SeparatePatches {
  SeparatePatches(int order, int kind);

  std::vector<std::int32_t> first;
  PatchList patches;
  std::int64_t size = 0;
};
int patch_unknowns(int order);

/// Matrices of the operator's patches (operator.cuh) of the four line kinds, for cells of size h.
std::vector<double> operator_matrices(int order, double h, bool padded);
/// Matrices of the local solver (local_solver.cuh), that of the exact diagonal block of the operator.
std::vector<double> solver_matrices(int order, double h);

}  // namespace solenoid::paper
