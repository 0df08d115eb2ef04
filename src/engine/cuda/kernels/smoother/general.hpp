#pragma once
/// \file
/// What the smoother for every kind of patch and local solver (general.cuh) exchanges with the engine: plain
/// data.

#include <cstdint>

#include "engine/cuda/kernels/smoother/colour.hpp"
#include "engine/kernel_data.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {

/// Names of its variants (Engine::smoother_variants).
inline constexpr const char* one_by_one = "general";
inline constexpr const char* in_pairs = "general_pairs";

/// Patches of one kind that a thread block works on: one or, if it is to share what the kind's tables cost, two.
struct GeneralPatches {
  static constexpr int most = 2;

  std::int32_t cells[most][8];  ///< patch_cells
  std::int32_t count;
  std::int32_t kind;
};

/// Rows of inverse Schur complements are padded to as many numbers, whole lines of the caches.
inline constexpr int inverse_row_multiple = 32;

/// The univariate tables of a kind of patch, N = 2n, and 1 / lambda, as the kernel copies them: for each direction S_O
/// (N rows), S_P (N + 1) and C (N), rows are functions, columns eigenfunctions; then 1 / lambda, [component]
/// [eigenfunction][column]. All N + 1 functions of P have their rows and eigenfunctions their columns: what is no
/// unknown or not there is zero.
struct GeneralTables {
  int dim;
  int n;

  [[nodiscard]] constexpr int modes() const { return 2 * n; }
  [[nodiscard]] constexpr int functions() const { return 2 * n + 1; }
  [[nodiscard]] constexpr int columns() const { return power(modes(), dim - 1); }
  [[nodiscard]] constexpr int row_length() const { return (functions() + 3) / 4 * 4; }  ///< for vector loads
  // In numbers.
  [[nodiscard]] constexpr int direction() const { return (2 * modes() + functions()) * row_length(); }
  [[nodiscard]] constexpr int inverse_lambda_at() const { return dim * direction(); }
  [[nodiscard]] constexpr int size() const {
    return static_cast<int>(whole_blocks(inverse_lambda_at() + dim * functions() * columns()));
  }
};

/// One colour. Pointers are to device memory unless said otherwise.
template <class T>
struct GeneralArguments {
  const CellData<T>* cell;  ///< host memory
  CellTopology topology;
  const PatchData<T>* kinds;  ///< tables are whole matrices; rows of block_inverse are padded
  const T* tables;            ///< GeneralTables of each kind
  LocalSolverKind local;
  const GeneralPatches* patches;
  std::int32_t count;     ///< of thread blocks
  std::int32_t together;  ///< most patches of one of them; one for local solvers other than `direct`
  /// The kernel launched before this one has the other patches of the colour: both may run at the same time.
  bool beside;
  Colour<T> colour;
};

}  // namespace solenoid::cuda
