#pragma once
/// \file
/// Vector operations on the device. Sums are formed in double precision in an order that depends on sizes only.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/cuda/kernels/arguments.hpp"

namespace solenoid::cuda {

/// Vectors that one pass takes along.
inline constexpr int batch_vectors = 8;
/// Partial sums of a reduction: one per thread block and vector, in a buffer that the engine owns.
inline constexpr int reduction_blocks = 1024;

template <class T>
struct VectorBatch {
  const T* vector[batch_vectors];
  T factor[batch_vectors];  ///< of combinations
  int count;
};

/// y += a x and y = x between precisions; S is float or double.
template <class S, class T>
void add(std::int64_t size, T a, const S* x, T* y, Stream stream);
template <class S, class T>
void convert(std::int64_t size, const S* x, T* y, Stream stream);
template <class T>
void scale(std::int64_t size, T a, T* x, Stream stream);

/// result[i] = (v[i], w); `result` may be host memory that the device sees.
template <class T>
void dots(std::int64_t size, const VectorBatch<T>& v, const T* w, double* partial, double* result, Stream stream);
/// w += sum_i factor[i] v[i]
template <class T>
void combine(std::int64_t size, const VectorBatch<T>& v, T* w, Stream stream);

/// Removes from value `value` of the records [0, cells), and of those hat-only records that have the neighbour list
/// `below` (nullptr: none of them), its mean over `count` records.
template <class T>
void remove_mean(const CellTopology& topology, int record_size, int value, const std::int32_t* below,
                 std::int64_t count, double* partial, T* x, Stream stream);

/// y = x, or 0 if x is nullptr, on the records in `list`.
template <class T>
void copy_records(std::int64_t count, const std::int32_t* list, int record_size, const T* x, T* y, Stream stream);

/// x[index[i]] = sum_j matrix[i][j] b[index[j]]
template <class T>
void multiply_dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x, Stream stream);

/// Whether this build has code for the current device.
cudaError_t probe();

}  // namespace solenoid::cuda
