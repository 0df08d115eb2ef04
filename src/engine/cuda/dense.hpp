#pragma once
/// \file
/// Dense symmetric matrices on the device, row-major: products and the steps of an inversion (dense_inverse.cpp).

#include <cstdint>

#include "engine/cuda/kernels/arguments.hpp"

namespace solenoid::cuda {

/// Unknowns up to which a warp of multiply_dense has a row in registers;
inline constexpr int most_in_registers = 2048;
/// up to which, in single precision, the second-level cache has all of the matrix (4^3 cells of RT_1 with any sides);
inline constexpr int most_in_cache = 2304;
/// and up to which shared memory has the vector.
inline constexpr int most_dense = 8192;

/// x[index[i]] = sum_j matrix[i][j] b[index[j]], for at most most_dense unknowns
template <class T>
void multiply_dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x, Stream stream);

/// Unknowns that are exchanged for their equations together, and rows and columns of a tile.
inline constexpr int dense_tile = 64;

/// A symmetric matrix that is inverted in place, of which only the lower triangle counts, and memory for that.
struct Exchanged {
  std::int64_t count;
  double* matrix;
  double* pivot;    ///< [dense_tile][dense_tile]: the inverse of the block of those unknowns that are exchanged
  double* columns;  ///< [whole tiles of rows][dense_tile]: their columns, zero in their own rows
  double* solved;   ///< the same times the pivot
  int* filled;      ///< [tile of rows]: whether `columns` has numbers there

  static constexpr std::int64_t tiles(std::int64_t count) { return (count + dense_tile - 1) / dense_tile; }
  /// Numbers of `pivot`, `columns` and `solved`.
  static constexpr std::int64_t work(std::int64_t count) { return (2 * tiles(count) + 1) * dense_tile * dense_tile; }
  static Exchanged with(std::int64_t count, double* matrix, double* work, int* filled) {
    constexpr std::int64_t tile = dense_tile * dense_tile;
    return {count, matrix, work, work + tile, work + (tiles(count) + 1) * tile, filled};
  }
};
/// Exchanges the unknowns [begin, end) of each of `number` matrices, which have at most `most` unknowns: M x = b
/// becomes M' x' = b' with these unknowns, negative, in b' and their right-hand sides in x'. M' is symmetric, too.
/// After all unknowns M' = -M^-1. `matrices` are device memory; all have the unknown `begin`, and what they lack of the
/// others is left out.
void exchange(const Exchanged* matrices, int number, std::int64_t most, int begin, int end, Stream stream);

/// shift = the entry on the diagonal of the unknowns [begin, end) that is largest in size, 1 if all are zero.
void find_shift(std::int64_t count, const double* matrix, std::int64_t begin, std::int64_t end, double* shift,
                Stream stream);

/// Adds s n n^T, where n is 1 / sqrt(size) on the unknowns in `constant` (`size` of them) and s is *shift, or its
/// inverse.
void add_constant(std::int64_t count, double* matrix, std::int64_t size, const std::int64_t* constant,
                  const double* shift, bool inverse, Stream stream);

/// to = - from, both triangles from the lower one
template <class T>
void negate_dense(std::int64_t count, const double* from, T* to, Stream stream);

}  // namespace solenoid::cuda
