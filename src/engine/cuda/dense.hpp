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

/// Exchanges the unknowns [begin, end) of a matrix of `count` unknowns: M x = b becomes M' x' = b' with these unknowns,
/// negative, in b' and their right-hand sides in x'. M and M' are symmetric; only the lower triangle counts.
struct Exchange {
  std::int64_t count;
  double* matrix;
  int begin;
  int end;
  double* pivot;    ///< [dense_tile][dense_tile]: the inverse of their block
  double* columns;  ///< [whole tiles of rows][dense_tile]: their columns, zero in their own rows
  double* solved;   ///< the same times the pivot
  int* filled;      ///< [tile of rows]: whether `columns` has numbers there
};
void exchange(const Exchange& step, Stream stream);

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
