#pragma once
/// \file
/// What the smoother for patches that split by parity (parity.cuh) exchanges with the engine: plain data.

#include <cstdint>

#include "engine/cuda/kernels/arguments.hpp"
#include "engine/cuda/messages.hpp"

namespace solenoid::cuda {

/// A patch of the list that the kernel works on.
struct ParityPatch {
  /// The lower cell, and those above it in y, z and both: what would take look-ups that wait for each other.
  std::int32_t cells[4];
  /// Two bits for each direction: weight of the local matrix at the ends; then two more for each: whether its lower and
  /// its upper end is a wall, if only one of them is; above, the number of its Schur blocks.
  ///
  ///     0bSSSSSSSSSSSSSSSSSSSSULULULWWWWWW
  ///       ^------------------^              S: Schur blocks, from schur_shift on
  ///                           ^----^        U, L: wall at the upper, at the lower end in z, y, x, from wall_shift on
  ///                                 ^----^  W: weight in z, y, x, weight_bits each
  std::int32_t kind;

  static constexpr int weight_bits = 2;
  static constexpr int wall_shift = 6;
  static constexpr int schur_shift = 12;
};

/// Patches of the list that a thread block takes together.
struct PatchBatch {
  std::int32_t begin;
  std::int32_t count;
  std::int32_t flags;
  std::int32_t copy_begin;  ///< records outside all patches that it takes with it
  std::int32_t copy_count;

  /// Shifted by a side: some face of some patch there has a lower weight than the local matrix, and it is not that the
  /// other end is a wall (ParityPatch::kind).
  static constexpr std::int32_t weaker_face = 1;
  static constexpr std::int32_t weaker_faces = 63;
  /// The faces at some end of some patch differ.
  static constexpr std::int32_t mixed_faces = 64;
};

/// Univariate tables of one direction, weight and parity, in this order: S_O, S_P, C (n x n each, row-major; S_P and C
/// for the other parity; the first row of odd S_P, and the last column of odd S_P and C are zero), eigenvalues of O
/// (times viscosity) and of P (times viscosity, plus mass). From n = 3 on each begins at a multiple of four numbers.
constexpr int parity_padded(int n, int size) { return n < 3 ? size : (size + 3) / 4 * 4; }
constexpr int parity_matrix_size(int n) { return parity_padded(n, n * n); }
constexpr int parity_vector_size(int n) { return parity_padded(n, n); }
constexpr int parity_table_size(int n) { return 3 * parity_matrix_size(n) + 2 * parity_vector_size(n); }
/// Weights that the ends of a patch may have: 0, 1, 2.
inline constexpr int parity_weights = 3;

/// Inverse Schur blocks of so few values are matrices, row after row. Larger ones lie in memory as the tensor cores'
/// operands: tiles of 16 x 8, columns of tiles after each other; in a tile lane 4 g + t of a warp finds its four values
/// (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4).
inline constexpr int largest_plain_schur = 8;
struct SchurTiles {
  int rows;     ///< of tiles
  int columns;  ///< of tiles
  static constexpr int tile = 16 * 8;
  constexpr explicit SchurTiles(int size) : rows((size + 15) / 16), columns((size + 7) / 8) {}
  constexpr int numbers() const { return rows * columns * tile; }
};

/// One colour. Pointers are to device memory unless said otherwise. Vectors hold less than 2^32 numbers.
template <class T>
struct ParityArguments {
  const CellData<T>* cell;  ///< host memory
  CellTopology topology;
  const ParityPatch* patches;
  const PatchBatch* batches;
  std::int32_t batch_count;
  const std::int32_t* uncovered;  ///< records that are copied from x to y, in the order of the batches that take them
  std::int32_t uncovered_count;
  const T* tables;  ///< [direction][weight][parity][parity_table_size]
  const T* schur;   ///< inverse Schur blocks [number][parity class][SchurTiles]
  const T* b;
  const T* x;     ///< nullptr stands for zero
  T* y;           ///< other memory than x
  const T* root;  ///< Colour::root
  /// With `root`: of component c, factors of the eigenvalues in direction c, c + 1, c + 2, and what is added to sums,
  /// or where reactions vary the factor of these.
  T eigenvalue_factor[3][3];
  T reaction[3];
  /// Where reactions vary: the number of Schur blocks of the patch with this lower cell, [record], in place of that of
  /// its kind, and the reaction of that number; otherwise nullptr.
  const std::int32_t* problem;
  const T* reaction_of_problem;
  bool keeps_pressure;  ///< p is p_old and a correction (parity.cuh); not with x = 0
  bool followed;        ///< the next kernel has the other patches of the colour: both may run at the same time
  /// On a level that GPUs share, ghosts of b or x that the kernel brings, and the first batch that reads any.
  Bringing<T> bringing;
  std::int32_t first_waiting;
};

/// Starts the kernel for corrections of residuals that are there (ParityArguments::root).
template <class T, int dim, int order, int variant>
void correct_parity(const ParityArguments<T>& arguments, Stream stream);

}  // namespace solenoid::cuda
