#include "engine/cuda/vector.hpp"

#include <algorithm>

#include "engine/cuda/kernels/block_sum.cuh"
#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 256;
constexpr int many_threads = 1024;
/// Records of levels that one thread block works on.
constexpr int few_records = 4 * many_threads;

/// Blocks of a kernel whose threads stride over `size` numbers.
unsigned blocks(std::int64_t size) {
  return static_cast<unsigned>(std::min<std::int64_t>((size + threads - 1) / threads, 132 * 32));
}

/// Thread blocks of a reduction: their number, and so the order of sums, depends on the size only.
unsigned reduction_grid(std::int64_t size) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(size / (4 * threads), 1, reduction_blocks));
}

template <class F>
__device__ void for_all(std::int64_t size, const F& visit) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
#pragma unroll 4
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step) visit(i);
}

/// y[i] = value(i); several are loaded before the first is stored.
template <class T, class F>
__device__ void set_all(std::int64_t size, T* y, const F& value) {
  constexpr int ahead = 4;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + (ahead - 1) * step < size; i += ahead * step) {
    T values[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) values[k] = value(i + k * step);
#pragma unroll
    for (int k = 0; k < ahead; ++k) y[i + k * step] = values[k];
  }
  for (; i < size; i += step) y[i] = value(i);
}

template <class T>
__global__ void zero_kernel(std::int64_t size, T* x) {
  wait_for_earlier_kernels();
  set_all(size, x, [](std::int64_t) { return T(0); });
}
template <class T>
__global__ void add_kernel(std::int64_t size, T a, const T* x, T* y) {
  wait_for_earlier_kernels();
  set_all(size, y, [=](std::int64_t i) { return y[i] + a * x[i]; });
}
template <class S, class T>
__global__ void convert_kernel(std::int64_t size, const S* x, T* y) {
  wait_for_earlier_kernels();
  set_all(size, y, [=](std::int64_t i) { return static_cast<T>(x[i]); });
}
template <class T>
__global__ void scale_kernel(std::int64_t size, T a, const T* x, T* y) {
  wait_for_earlier_kernels();
  set_all(size, y, [=](std::int64_t i) { return a * x[i]; });
}
template <class S, class T, int count>
__global__ void combine_kernel(std::int64_t size, const __grid_constant__ VectorBatch<S, T> v, T scale, T* w) {
  wait_for_earlier_kernels();
  set_all(size, w, [&](std::int64_t i) {
    T sum = w[i];
#pragma unroll
    for (int k = 0; k < count; ++k) sum += v.factor[k] * static_cast<T>(v.vector[k][i]);
    return scale * sum;
  });
}
template <class T, int count>
__global__ void two_sums_kernel(std::int64_t size, const __grid_constant__ VectorBatch<T> v, T* x,
                                const __grid_constant__ SecondSum<T> y) {
  wait_for_earlier_kernels();
  for_all(size, [&](std::int64_t i) {
    T first = T(0);
    T second = T(0);
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const T value = v.vector[k][i];
      first += v.factor[k] * value;
      second += y.factor[k] * value;
    }
    x[i] = first;
    y.sum[i] = second;
  });
}

/// Adds what the thread blocks found: each gives `sum` of thread 0 for `count` values. True in the block that arrives
/// last; there total(i, sum) is called for each i, by one thread. The order of the sums does not depend on who is last.
template <int count, class F>
__device__ bool finish_reduction(const Reduction& reduction, const double (&sum)[count], const F& total) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    for (int k = 0; k < count; ++k) reduction.partial[k * reduction_blocks + blockIdx.x] = sum[k];
    __threadfence();
    last = atomicAdd(reduction.arrived, 1u) + 1 == gridDim.x;
  }
  __syncthreads();
  if (!last) return false;
  __threadfence();
  static_assert(count <= threads / 32);
  const int k = static_cast<int>(threadIdx.x / 32);  // one warp for each value
  if (k < count) {
    double all = 0.0;
    for (unsigned i = threadIdx.x % 32; i < gridDim.x; i += 32)
      all += __ldcg(&reduction.partial[k * reduction_blocks + i]);
    for (int offset = 16; offset > 0; offset /= 2) all += __shfl_down_sync(0xffffffffu, all, offset);
    if (threadIdx.x % 32 == 0) total(k, all);
  }
  if (threadIdx.x == 0) *reduction.arrived = 0;
  return true;
}

/// The same for the host: results->value[first + k], then the ticket unless that is 0.
template <int count>
__device__ void report_reduction(const Reduction& reduction, const double (&sum)[count], HostResults* results,
                                 int first, std::uint64_t ticket) {
  const bool last = finish_reduction(reduction, sum, [&](int k, double total) {
    results->value[first + k] = total;
    __threadfence_system();
  });
  if (!last || ticket == 0) return;
  __syncthreads();
  if (threadIdx.x == 0) *static_cast<volatile std::uint64_t*>(&results->ticket) = ticket;
}

/// results[first + i] = (v[i], w)
template <class T, int count>
__global__ __launch_bounds__(threads) void dots_kernel(const __grid_constant__ OwnedNumbers numbers,
                                                       const __grid_constant__ VectorBatch<T> v,
                                                       const T* __restrict__ w, Reduction reduction,
                                                       HostResults* results, int first, std::uint64_t ticket) {
  wait_for_earlier_kernels();
  double sum[count]{};
  const auto add = [&](std::int64_t i) {
    const auto value = static_cast<double>(w[i]);
#pragma unroll
    for (int k = 0; k < count; ++k) sum[k] += static_cast<double>(v.vector[k][i]) * value;
  };
  for_all(numbers.whole, add);
  const std::int32_t rest = numbers.cells + numbers.hats;
  for_all(std::int64_t{rest} * numbers.record_size, [&](std::int64_t i) {
    const auto record = static_cast<std::int32_t>(i % rest);
    const std::int32_t r =
        record < numbers.cells ? numbers.first_cell + record : numbers.first_hat + record - numbers.cells;
    add(record_offset(r, numbers.record_size) + i / rest * interleave);
  });
#pragma unroll
  for (int k = 0; k < count; ++k) sum[k] = block_sum<threads>(sum[k]);
  report_reduction(reduction, sum, results, first, ticket);
}

template <class T>
__host__ __device__ std::int64_t lines_of(const VelocityLayout<T>& layout) {
  return whole_blocks(layout.cells) * layout.velocities * layout.columns;
}

/// In its own direction a component has the mass matrix of P, in the others that of O, which is the identity. A thread
/// has a line of functions of a component in its direction, threads side by side those of cells side by side.
template <class T>
__global__ __launch_bounds__(threads) void velocity_square_kernel(const __grid_constant__ VelocityLayout<T> layout,
                                                                  const T* __restrict__ x, Reduction reduction,
                                                                  HostResults* results, std::uint64_t ticket) {
  wait_for_earlier_kernels();
  const int n = layout.n;
  double sum[1]{};
  for_all(lines_of(layout), [&](std::int64_t line) {
    const auto column = static_cast<std::uint32_t>(line / interleave);  // spares long divisions
    const std::uint32_t of_block = layout.velocities * layout.columns;
    const std::uint32_t block = column / of_block;
    const std::int64_t cell = std::int64_t{block} * interleave + line % interleave;
    if (cell >= layout.cells) return;
    const int c = static_cast<int>(column - block * of_block) / layout.columns;
    const int m = static_cast<int>(column - block * of_block) % layout.columns;
    const int first = (c * n * layout.columns + m) * interleave;
    const T* const own = x + record_offset(cell, layout.record_size) + first;
    const T* const upper = x + record_offset(layout.upper[c][cell], layout.record_size) + first;
    const auto value = [&](int i) { return i < n ? own[i * layout.columns * interleave] : *upper; };
    for (int i = 0; i <= n; ++i) {
      T row = T(0);
      for (int j = 0; j <= n; ++j) {
        if (mass_couples(n, i, j)) row += layout.mass[i][j] * value(j);
      }
      sum[0] += static_cast<double>(row) * static_cast<double>(value(i));
    }
  });
  sum[0] = block_sum<threads>(sum[0]);
  report_reduction(reduction, sum, results, 0, ticket);
}

struct MeanArguments {
  std::int32_t cells;
  std::int32_t records;  ///< to look at: all, or those in the list
  std::int32_t null;
  const std::int32_t* list;
  const std::int32_t* below;
  int record_size;
  int value;
  double inverse_count;
  std::int32_t owned_cells;  ///< the others, and hat-only records from owned_records on, do not count in sums
  std::int32_t owned_records;
};
template <class F>
__device__ void for_mean(const MeanArguments& arguments, const F& visit) {
  for_all(arguments.records, [&](std::int64_t i) {
    const std::int64_t r = arguments.list == nullptr ? i : arguments.list[i];
    const bool hat_only = arguments.list == nullptr && r >= arguments.cells;
    if (hat_only && (arguments.below == nullptr || arguments.below[r] == arguments.null)) return;
    visit(record_offset(r, arguments.record_size) + arguments.value * interleave, r);
  });
}
template <class T>
__global__ __launch_bounds__(threads) void mean_kernel(MeanArguments arguments, const T* x, Reduction reduction,
                                                       double* result) {
  wait_for_earlier_kernels();
  double sum[1]{};
  for_mean(arguments, [&](std::int64_t i, std::int64_t r) {
    const bool owned = r < arguments.owned_cells || (r >= arguments.cells && r < arguments.owned_records);
    if (owned) sum[0] += static_cast<double>(x[i]);
  });
  sum[0] = block_sum<threads>(sum[0]);
  finish_reduction(reduction, sum, [&](int, double total) { *result = total * arguments.inverse_count; });
}
template <class T>
__global__ void subtract_kernel(MeanArguments arguments, const double* mean, double factor, T* x) {
  wait_for_earlier_kernels();
  const T value = static_cast<T>(*mean * factor);
  for_mean(arguments, [&](std::int64_t i, std::int64_t) { x[i] -= value; });
}
/// Both at once for a small level: one thread block.
template <class T>
__global__ __launch_bounds__(many_threads) void remove_mean_kernel(MeanArguments arguments, T* x) {
  wait_for_earlier_kernels();
  __shared__ T mean;
  double sum = 0.0;
  for_mean(arguments, [&](std::int64_t i, std::int64_t) { sum += static_cast<double>(x[i]); });
  sum = block_sum<many_threads>(sum);
  if (threadIdx.x == 0) mean = static_cast<T>(sum * arguments.inverse_count);
  __syncthreads();
  for_mean(arguments, [&](std::int64_t i, std::int64_t) { x[i] -= mean; });
}

MeanArguments mean_arguments(const CellTopology& topology, int record_size, int value, const MeanRecords& of) {
  const std::int32_t records = of.list == nullptr ? topology.records : static_cast<std::int32_t>(of.count);
  return {topology.cells, records,         topology.null, of.list,
          of.below,       record_size,     value,         1.0 / static_cast<double>(of.count),
          topology.cells, topology.records};
}

template <class T>
__global__ void copy_records_kernel(std::int64_t count, const std::int32_t* list, int record_size, const T* x, T* y) {
  wait_for_earlier_kernels();
  // Neighbouring threads have neighbouring records.
  for_all(count, [=](std::int64_t i) {
    const std::int64_t at = record_offset(list[i], record_size);
    for (int k = 0; k < record_size; ++k) y[at + k * interleave] = x == nullptr ? T(0) : x[at + k * interleave];
  });
}

template <class T>
__global__ void gather_kernel(std::int64_t count, const std::int64_t* index, const T* x, T* values) {
  wait_for_earlier_kernels();
  set_all(count, values, [=](std::int64_t i) { return x[index[i]]; });
}
template <class T>
__global__ void scatter_kernel(std::int64_t count, const std::int64_t* index, const T* values, T* x) {
  wait_for_earlier_kernels();
  for_all(count, [=](std::int64_t i) { x[index[i]] = values[i]; });
}
template <class T>
__global__ void scatter_add_kernel(std::int64_t count, const std::int64_t* index, const T* values, T* x) {
  wait_for_earlier_kernels();
  for_all(count, [=](std::int64_t i) { x[index[i]] += values[i]; });
}

/// Calls f.operator()<count>() for count = the number of vectors, or all numbers while kernels are loaded.
template <int count = 1, class F>
void with_count(int vectors, const F& f) {
  if (vectors == count || Rehearsal::active()) f.template operator()<count>();
  if constexpr (count < batch_vectors) with_count<count + 1>(vectors, f);
}

}  // namespace

template <class T>
void zero(std::int64_t size, T* x, Stream stream) {
  launch("zero", zero_kernel<T>, blocks(size), threads, 0, stream, size, x);
}

template <class T>
void add(std::int64_t size, T a, const T* x, T* y, Stream stream) {
  launch("axpy", add_kernel<T>, blocks(size), threads, 0, stream, size, a, x, y);
}

template <class S, class T>
void convert(std::int64_t size, const S* x, T* y, Stream stream) {
  launch("convert", convert_kernel<S, T>, blocks(size), threads, 0, stream, size, x, y);
}

template <class T>
void scale(std::int64_t size, T a, const T* x, T* y, Stream stream) {
  launch("scale", scale_kernel<T>, blocks(size), threads, 0, stream, size, a, x, y);
}

OwnedNumbers owned_numbers(const VectorLayout& layout, int record_size) {
  if (!layout.has_ghosts()) return {std::int64_t{layout.storage()} * record_size, 0, 0, 0, 0, record_size};
  const RecordRange cells = layout.owned_cells();
  const std::int32_t whole = cells.last() / interleave * interleave;
  const RecordRange hats = layout.owned_hats();
  return {std::int64_t{whole} * record_size, cells.last() - whole, whole, hats.size(), hats.first(), record_size};
}

template <class T>
void dots(const OwnedNumbers& numbers, const VectorBatch<T>& v, const T* w, const Reduction& reduction,
          HostResults* results, int first, std::uint64_t ticket, Stream stream) {
  with_count(v.count, [&]<int count>() {
    launch("dots", dots_kernel<T, count>, reduction_grid(numbers.whole), threads, 0, stream, numbers, v, w, reduction,
           results, first, ticket);
  });
}

template <class T>
void velocity_square(const VelocityLayout<T>& layout, const T* x, const Reduction& reduction, HostResults* results,
                     std::uint64_t ticket, Stream stream) {
  launch("L2 norm", velocity_square_kernel<T>, reduction_grid(lines_of(layout)), threads, 0, stream, layout, x,
         reduction, results, ticket);
}

template <class S, class T>
void combine(std::int64_t size, const VectorBatch<S, T>& v, T scale, T* w, Stream stream) {
  with_count(v.count, [&]<int count>() {
    launch("axpys", combine_kernel<S, T, count>, blocks(size), threads, 0, stream, size, v, scale, w);
  });
}

template <class T>
void two_sums(std::int64_t size, const VectorBatch<T>& v, T* x, const SecondSum<T>& y, Stream stream) {
  with_count(v.count, [&]<int count>() {
    launch("two sums", two_sums_kernel<T, count>, blocks(size), threads, 0, stream, size, v, x, y);
  });
}

template <class T>
void remove_mean(const CellTopology& topology, int record_size, int value, const MeanRecords& of,
                 const Reduction& reduction, T* x, Stream stream) {
  const MeanArguments arguments = mean_arguments(topology, record_size, value, of);
  const std::int32_t records = arguments.records;
  const bool few = records <= few_records;
  if (few || Rehearsal::active()) {
    launch("project", remove_mean_kernel<T>, 1, many_threads, 0, stream, arguments, x);
  }
  if (!few || Rehearsal::active()) {
    launch("project: mean", mean_kernel<T>, reduction_grid(records), threads, 0, stream, arguments,
           static_cast<const T*>(x), reduction, reduction.value);
    launch("project: subtract", subtract_kernel<T>, blocks(records), threads, 0, stream, arguments,
           static_cast<const double*>(reduction.value), 1.0, x);
  }
}

template <class T>
void sum_mean(const CellTopology& topology, const VectorLayout& layout, int record_size, int value,
              const MeanRecords& of, const Reduction& reduction, const T* x, double* sum, Stream stream) {
  MeanArguments arguments = mean_arguments(topology, record_size, value, of);
  arguments.inverse_count = 1.0;
  arguments.owned_cells = layout.owned_cells().last();
  arguments.owned_records = layout.owned_hats().last();
  launch("project: mean", mean_kernel<T>, reduction_grid(arguments.records), threads, 0, stream, arguments, x,
         reduction, sum);
}

template <class T>
void subtract_mean(const CellTopology& topology, int record_size, int value, const MeanRecords& of, const double* sum,
                   std::int64_t count, T* x, Stream stream) {
  const MeanArguments arguments = mean_arguments(topology, record_size, value, of);
  if (arguments.records == 0) return;
  launch("project: subtract", subtract_kernel<T>, blocks(arguments.records), threads, 0, stream, arguments, sum,
         1.0 / static_cast<double>(count), x);
}

template <class T>
void copy_records(std::int64_t count, const std::int32_t* list, int record_size, const T* x, T* y, Stream stream) {
  launch("copy of records", copy_records_kernel<T>, blocks(count), threads, 0, stream, count, list, record_size, x, y);
}

template <class T>
void gather(std::int64_t count, const std::int64_t* index, const T* x, T* values, Stream stream) {
  launch("gather", gather_kernel<T>, blocks(count), threads, 0, stream, count, index, x, values);
}

template <class T>
void scatter(std::int64_t count, const std::int64_t* index, const T* values, T* x, Stream stream) {
  launch("scatter", scatter_kernel<T>, blocks(count), threads, 0, stream, count, index, values, x);
}
template <class T>
void scatter_add(std::int64_t count, const std::int64_t* index, const T* values, T* x, Stream stream) {
  launch("scatter, add", scatter_add_kernel<T>, blocks(count), threads, 0, stream, count, index, values, x);
}

cudaError_t probe() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, scale_kernel<float>);
}

template void combine<float, float>(std::int64_t, const VectorBatch<float>&, float, float*, Stream);
template void combine<float, double>(std::int64_t, const VectorBatch<float, double>&, double, double*, Stream);
template void combine<double, double>(std::int64_t, const VectorBatch<double>&, double, double*, Stream);
template void convert<float, float>(std::int64_t, const float*, float*, Stream);
template void convert<float, double>(std::int64_t, const float*, double*, Stream);
template void convert<double, float>(std::int64_t, const double*, float*, Stream);
template void convert<double, double>(std::int64_t, const double*, double*, Stream);

#define SOLENOID_INSTANTIATE(T)                                                                                       \
  template void zero<T>(std::int64_t, T*, Stream);                                                                    \
  template void add<T>(std::int64_t, T, const T*, T*, Stream);                                                        \
  template void scale<T>(std::int64_t, T, const T*, T*, Stream);                                                      \
  template void dots<T>(const OwnedNumbers&, const VectorBatch<T>&, const T*, const Reduction&, HostResults*, int,    \
                        std::uint64_t, Stream);                                                                       \
  template void sum_mean<T>(const CellTopology&, const VectorLayout&, int, int, const MeanRecords&, const Reduction&, \
                            const T*, double*, Stream);                                                               \
  template void subtract_mean<T>(const CellTopology&, int, int, const MeanRecords&, const double*, std::int64_t, T*,  \
                                 Stream);                                                                             \
  template void velocity_square<T>(const VelocityLayout<T>&, const T*, const Reduction&, HostResults*, std::uint64_t, \
                                   Stream);                                                                           \
  template void remove_mean<T>(const CellTopology&, int, int, const MeanRecords&, const Reduction&, T*, Stream);      \
  template void copy_records<T>(std::int64_t, const std::int32_t*, int, const T*, T*, Stream);                        \
  template void gather<T>(std::int64_t, const std::int64_t*, const T*, T*, Stream);                                   \
  template void scatter<T>(std::int64_t, const std::int64_t*, const T*, T*, Stream);                                  \
  template void scatter_add<T>(std::int64_t, const std::int64_t*, const T*, T*, Stream);                              \
  template void two_sums<T>(std::int64_t, const VectorBatch<T>&, T*, const SecondSum<T>&, Stream);
SOLENOID_INSTANTIATE(float)
SOLENOID_INSTANTIATE(double)
#undef SOLENOID_INSTANTIATE

}  // namespace solenoid::cuda
