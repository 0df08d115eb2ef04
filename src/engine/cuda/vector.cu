#include "engine/cuda/vector.hpp"

#include <algorithm>

#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 256;

/// Blocks of a kernel whose threads stride over `size` numbers.
unsigned blocks(std::int64_t size) {
  return static_cast<unsigned>(std::min<std::int64_t>((size + threads - 1) / threads, 132 * 32));
}

template <class F>
__device__ void for_all(std::int64_t size, const F& visit) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step) visit(i);
}

template <class S, class T>
__global__ void add_kernel(std::int64_t size, T a, const S* __restrict__ x, T* __restrict__ y) {
  for_all(size, [=](std::int64_t i) { y[i] += a * static_cast<T>(x[i]); });
}
template <class S, class T>
__global__ void convert_kernel(std::int64_t size, const S* __restrict__ x, T* __restrict__ y) {
  for_all(size, [=](std::int64_t i) { y[i] = static_cast<T>(x[i]); });
}
template <class T>
__global__ void scale_kernel(std::int64_t size, T a, T* x) {
  for_all(size, [=](std::int64_t i) { x[i] *= a; });
}
template <class T, int count>
__global__ void combine_kernel(std::int64_t size, const __grid_constant__ VectorBatch<T> v, T* __restrict__ w) {
  for_all(size, [&](std::int64_t i) {
    T sum = w[i];
#pragma unroll
    for (int k = 0; k < count; ++k) sum += v.factor[k] * v.vector[k][i];
    w[i] = sum;
  });
}

/// Sum over the thread block, in thread 0.
__device__ double block_sum(double sum) {
  __shared__ double sums[threads / 32];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  __syncthreads();  // of an earlier call
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0;
  for (int i = 0; threadIdx.x == 0 && i < threads / 32; ++i) sum += sums[i];
  return sum;
}

/// partial[i][block] = (v[i], w) over what the block strides over.
template <class T, int count>
__global__ __launch_bounds__(threads) void dots_kernel(std::int64_t size, const __grid_constant__ VectorBatch<T> v,
                                                       const T* __restrict__ w, double* partial) {
  double sum[count]{};
  for_all(size, [&](std::int64_t i) {
    const auto value = static_cast<double>(w[i]);
#pragma unroll
    for (int k = 0; k < count; ++k) sum[k] += static_cast<double>(v.vector[k][i]) * value;
  });
#pragma unroll
  for (int k = 0; k < count; ++k) {
    const double total = block_sum(sum[k]);
    if (threadIdx.x == 0) partial[k * reduction_blocks + blockIdx.x] = total;
  }
}

/// result[i] = factor * sum of partial[i][.]; one thread block per i.
__global__ __launch_bounds__(threads) void sum_kernel(const double* partial, double factor, double* result) {
  double sum = 0.0;
  for (int k = static_cast<int>(threadIdx.x); k < reduction_blocks; k += threads) {
    sum += partial[static_cast<int>(blockIdx.x) * reduction_blocks + k];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) result[blockIdx.x] = factor * sum;
}

struct MeanArguments {
  std::int32_t cells;
  std::int32_t records;
  std::int32_t null;
  const std::int32_t* below;
  int record_size;
  int value;
};
template <class F>
__device__ void for_mean(const MeanArguments& arguments, const F& visit) {
  for_all(arguments.records, [&](std::int64_t r) {
    if (r >= arguments.cells && (arguments.below == nullptr || arguments.below[r] == arguments.null)) return;
    visit(record_offset(r, arguments.record_size) + arguments.value * interleave);
  });
}
template <class T>
__global__ __launch_bounds__(threads) void sum_values_kernel(MeanArguments arguments, const T* x, double* partial) {
  double sum = 0.0;
  for_mean(arguments, [&](std::int64_t i) { sum += static_cast<double>(x[i]); });
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
template <class T>
__global__ void subtract_kernel(MeanArguments arguments, const double* mean, T* x) {
  const T value = static_cast<T>(*mean);
  for_mean(arguments, [&](std::int64_t i) { x[i] -= value; });
}

template <class T>
__global__ void copy_records_kernel(std::int64_t count, const std::int32_t* list, int record_size, const T* x, T* y) {
  // Neighbouring threads have neighbouring records.
  for_all(count, [=](std::int64_t i) {
    const std::int64_t at = record_offset(list[i], record_size);
    for (int k = 0; k < record_size; ++k) y[at + k * interleave] = x == nullptr ? T(0) : x[at + k * interleave];
  });
}

/// One warp per row.
template <class T>
__global__ void multiply_dense_kernel(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b,
                                      T* x) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (row >= count) return;
  T sum = 0;
  for (std::int64_t j = threadIdx.x % 32; j < count; j += 32) sum += matrix[row * count + j] * b[index[j]];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) x[index[row]] = sum;
}

template <class T, int count = 1>
void launch_dots(std::int64_t size, const VectorBatch<T>& v, const T* w, double* partial, Stream stream) {
  if constexpr (count < batch_vectors) {
    if (v.count > count) return launch_dots<T, count + 1>(size, v, w, partial, stream);
  }
  launch("dots", dots_kernel<T, count>, reduction_blocks, threads, 0, stream, size, v, w, partial);
}

template <class T, int count = 1>
void launch_combine(std::int64_t size, const VectorBatch<T>& v, T* w, Stream stream) {
  if constexpr (count < batch_vectors) {
    if (v.count > count) return launch_combine<T, count + 1>(size, v, w, stream);
  }
  launch("axpys", combine_kernel<T, count>, blocks(size), threads, 0, stream, size, v, w);
}

}  // namespace

template <class S, class T>
void add(std::int64_t size, T a, const S* x, T* y, Stream stream) {
  launch("axpy", add_kernel<S, T>, blocks(size), threads, 0, stream, size, a, x, y);
}

template <class S, class T>
void convert(std::int64_t size, const S* x, T* y, Stream stream) {
  launch("convert", convert_kernel<S, T>, blocks(size), threads, 0, stream, size, x, y);
}

template <class T>
void scale(std::int64_t size, T a, T* x, Stream stream) {
  launch("scale", scale_kernel<T>, blocks(size), threads, 0, stream, size, a, x);
}

template <class T>
void dots(std::int64_t size, const VectorBatch<T>& v, const T* w, double* partial, double* result, Stream stream) {
  launch_dots(size, v, w, partial, stream);
  launch("sums of dots", sum_kernel, static_cast<unsigned>(v.count), threads, 0, stream, partial, 1.0, result);
}

template <class T>
void combine(std::int64_t size, const VectorBatch<T>& v, T* w, Stream stream) {
  launch_combine(size, v, w, stream);
}

template <class T>
void remove_mean(const CellTopology& topology, int record_size, int value, const std::int32_t* below,
                 std::int64_t count, double* partial, T* x, Stream stream) {
  const MeanArguments arguments{topology.cells, topology.records, topology.null, below, record_size, value};
  launch("project: sum", sum_values_kernel<T>, reduction_blocks, threads, 0, stream, arguments,
         static_cast<const T*>(x), partial);
  double* const mean = partial + reduction_blocks;
  launch("project: mean", sum_kernel, 1, threads, 0, stream, partial, 1.0 / static_cast<double>(count), mean);
  launch("project: subtract", subtract_kernel<T>, blocks(topology.records), threads, 0, stream, arguments,
         static_cast<const double*>(mean), x);
}

template <class T>
void copy_records(std::int64_t count, const std::int32_t* list, int record_size, const T* x, T* y, Stream stream) {
  launch("copy of records", copy_records_kernel<T>, blocks(count), threads, 0, stream, count, list, record_size, x, y);
}

template <class T>
void multiply_dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x, Stream stream) {
  launch("dense", multiply_dense_kernel<T>, static_cast<unsigned>((count * 32 + threads - 1) / threads), threads, 0,
         stream, count, index, matrix, b, x);
}

cudaError_t probe() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, sum_kernel);
}

template void add<float, float>(std::int64_t, float, const float*, float*, Stream);
template void add<float, double>(std::int64_t, double, const float*, double*, Stream);
template void add<double, double>(std::int64_t, double, const double*, double*, Stream);
template void convert<float, float>(std::int64_t, const float*, float*, Stream);
template void convert<float, double>(std::int64_t, const float*, double*, Stream);
template void convert<double, float>(std::int64_t, const double*, float*, Stream);
template void convert<double, double>(std::int64_t, const double*, double*, Stream);

#define SOLENOID_INSTANTIATE(T)                                                                                        \
  template void scale<T>(std::int64_t, T, T*, Stream);                                                                 \
  template void dots<T>(std::int64_t, const VectorBatch<T>&, const T*, double*, double*, Stream);                      \
  template void combine<T>(std::int64_t, const VectorBatch<T>&, T*, Stream);                                           \
  template void remove_mean<T>(const CellTopology&, int, int, const std::int32_t*, std::int64_t, double*, T*, Stream); \
  template void copy_records<T>(std::int64_t, const std::int32_t*, int, const T*, T*, Stream);                         \
  template void multiply_dense<T>(std::int64_t, const std::int64_t*, const T*, const T*, T*, Stream);
SOLENOID_INSTANTIATE(float)
SOLENOID_INSTANTIATE(double)
#undef SOLENOID_INSTANTIATE

}  // namespace solenoid::cuda
