#pragma once
/// \file
/// Vector operations on the device. Sums are formed in double precision in an order that depends on sizes only.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/cuda/kernels/arguments.hpp"
#include "mesh/layout.hpp"

namespace solenoid::cuda {

/// Vectors that one pass takes along.
inline constexpr int batch_vectors = 8;
/// Partial sums of a reduction: one per thread block and vector, in a buffer that the engine owns.
inline constexpr int reduction_blocks = 1024;

/// Vectors in precision S and what they are multiplied with in combinations of precision T.
template <class S, class T = S>
struct VectorBatch {
  const S* vector[batch_vectors];
  T factor[batch_vectors];
  int count;
};

/// What reductions need, on the device. One reduction runs at a time.
struct Reduction {
  double* partial;         ///< batch_vectors * reduction_blocks numbers
  double* value;           ///< for a result that stays on the device
  std::uint32_t* arrived;  ///< blocks that are done: 0 between reductions
};

/// Results for the host, in host memory that the device writes to: a ticket follows what it belongs to.
struct HostResults {
  static constexpr int most = 64;
  double value[most];
  std::uint64_t ticket;
};

/// x = 0, y += a x, y = x, between precisions too, and y = a x; S is float or double.
template <class T>
void zero(std::int64_t size, T* x, Stream stream);
template <class T>
void add(std::int64_t size, T a, const T* x, T* y, Stream stream);
template <class S, class T>
void convert(std::int64_t size, const S* x, T* y, Stream stream);
template <class T>
void scale(std::int64_t size, T a, const T* x, T* y, Stream stream);

/// The numbers of a vector that sums are of: the first `whole`, all of a vector without ghosts, then those of two
/// ranges of records.
struct OwnedNumbers {
  std::int64_t whole;
  std::int32_t cells;  ///< so many records from first_cell on
  std::int32_t first_cell;
  std::int32_t hats;
  std::int32_t first_hat;
  int record_size;
};
OwnedNumbers owned_numbers(const VectorLayout& layout, int record_size);

/// results->value[first + i] = (v[i], w), then results->ticket = ticket unless that is 0.
template <class T>
void dots(const OwnedNumbers& numbers, const VectorBatch<T>& v, const T* w, const Reduction& reduction,
          HostResults* results, int first, std::uint64_t ticket, Stream stream);
/// w = scale (w + sum_i factor[i] v[i])
template <class S, class T>
void combine(std::int64_t size, const VectorBatch<S, T>& v, T scale, T* w, Stream stream);
/// x = sum_i a[i] v[i], a[i] those of the batch, and y = sum_i b[i] v[i]
template <class T>
struct SecondSum {
  T factor[batch_vectors];
  T* sum;
};
template <class T>
void two_sums(std::int64_t size, const VectorBatch<T>& v, T* x, const SecondSum<T>& y, Stream stream);

/// What the L2 norm of a velocity needs of a level.
template <class T>
struct VelocityLayout {
  T mass[max_n + 1][max_n + 1];  ///< of P on a cell
  const std::int32_t* upper[3];  ///< [direction][cell]: record with the upper hats
  std::int32_t cells;
  int velocities;
  int n;
  int columns;  ///< of a component: n^(dim - 1)
  int record_size;
};
/// results->value[0] = the square of the norm, then results->ticket = ticket.
template <class T>
void velocity_square(const VelocityLayout<T>& layout, const T* x, const Reduction& reduction, HostResults* results,
                     std::uint64_t ticket, Stream stream);

/// `count` records: those in `list` or, if that is nullptr, all cells and those hat-only records that have a neighbour
/// in the list `below` (nullptr: none of them).
struct MeanRecords {
  const std::int32_t* list;
  const std::int32_t* below;
  std::int64_t count;
};

/// *sum = the sum of value `value` over those of these records that are owned; *sum / count is subtracted from it in
/// all.
template <class T>
void sum_mean(const CellTopology& topology, const VectorLayout& layout, int record_size, int value,
              const MeanRecords& of, const Reduction& reduction, const T* x, double* sum, Stream stream);
template <class T>
void subtract_mean(const CellTopology& topology, int record_size, int value, const MeanRecords& of, const double* sum,
                   std::int64_t count, T* x, Stream stream);

/// Removes from value `value` of these records its mean over them.
template <class T>
void remove_mean(const CellTopology& topology, int record_size, int value, const MeanRecords& of,
                 const Reduction& reduction, T* x, Stream stream);

/// y = x, or 0 if x is nullptr, on the records in `list`.
template <class T>
void copy_records(std::int64_t count, const std::int32_t* list, int record_size, const T* x, T* y, Stream stream);

/// values[i] = x[index[i]]
template <class T>
void gather(std::int64_t count, const std::int64_t* index, const T* x, T* values, Stream stream);

/// x[index[i]] = values[i]
template <class T>
void scatter(std::int64_t count, const std::int64_t* index, const T* values, T* x, Stream stream);
/// x[index[i]] += values[i], each place once
template <class T>
void scatter_add(std::int64_t count, const std::int64_t* index, const T* values, T* x, Stream stream);

/// Whether this build has code for the current device.
cudaError_t probe();

}  // namespace solenoid::cuda
