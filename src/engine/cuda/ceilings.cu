#include "engine/cuda/ceilings.hpp"

#include <algorithm>
#include <vector>

#include "engine/ceilings.hpp"
#include "engine/cuda/launch.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 512;

/// Every thread block reads the whole array, which fits into the second-level cache, past the first-level one.
__global__ void __launch_bounds__(threads) read_cache(const float4* from, int count, int passes, float4* to) {
  wait_for_earlier_kernels();
  constexpr int ahead = 8;
  float4 sum{};
  for (int pass = 0; pass < passes; ++pass) {
    // Blocks begin at different places, so that they do not all ask for the same lines at once.
    const int shift = static_cast<int>(blockIdx.x) * 4099 % count;
    for (int begin = 0; begin < count; begin += ahead * threads) {
      float4 v[ahead];
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        const int at = begin + i * threads + static_cast<int>(threadIdx.x) + shift;
        v[i] = __ldcg(from + (at < count ? at : at - count));
      }
#pragma unroll
      for (int i = 0; i < ahead; ++i) sum.x += v[i].x, sum.y += v[i].y, sum.z += v[i].z, sum.w += v[i].w;
    }
  }
  if (sum.x + sum.y + sum.z + sum.w == 1.0F) *to = sum;  // never: keeps the loads
}

/// Loads of 16 bytes without bank conflicts.
__global__ void __launch_bounds__(threads) read_shared(int passes, float4* to) {
  wait_for_earlier_kernels();
  constexpr int loads = 16;
  __shared__ float4 values[threads];
  values[threadIdx.x] = {};
  __syncthreads();
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(values + threadIdx.x));
  float4 sum{};
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      float4 v;
      asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                   : "r"(at));
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
  }
  if (sum.x + sum.y + sum.z + sum.w == 1.0F) *to = sum;
}

/// Chains of x <- a x + b.
constexpr int chains = 8;
constexpr int fma_steps = 64;
template <class T>
__global__ void __launch_bounds__(threads) multiply_add(T a, T b, int passes, T* to) {
  wait_for_earlier_kernels();
  T x[chains];
  for (int i = 0; i < chains; ++i) x[i] = static_cast<T>(threadIdx.x + i);
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
    for (int step = 0; step < fma_steps; ++step) {
#pragma unroll
      for (int i = 0; i < chains; ++i) x[i] = a * x[i] + b;
    }
  }
  T sum{};
  for (int i = 0; i < chains; ++i) sum += x[i];
  if (sum == T(-1)) *to = sum;
}

class Events {
 public:
  Events() {
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Events() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// Seconds that work() takes.
  template <class Work>
  double median(Stream stream, const Work& work) {
    constexpr int runs = 10;
    work();
    std::vector<float> milliseconds(runs);
    for (float& time : milliseconds) {
      check(cudaEventRecord(begin_, stream), "cudaEventRecord");
      work();
      check(cudaEventRecord(end_, stream), "cudaEventRecord");
      check(cudaEventSynchronize(end_), "cudaEventSynchronize");
      check(cudaEventElapsedTime(&time, begin_, end_), "cudaEventElapsedTime");
    }
    std::nth_element(milliseconds.begin(), milliseconds.begin() + runs / 2, milliseconds.end());
    return milliseconds[runs / 2] * 1e-3;
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

Ceilings measure_ceilings(void* from, void* to, std::size_t bytes, Stream stream) {
  int device = 0;
  int multiprocessors = 0;
  int cache_bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
  const unsigned blocks = 4 * static_cast<unsigned>(multiprocessors);  // as many as are resident
  const double all_threads = static_cast<double>(blocks) * threads;
  Events events;
  Ceilings ceilings{};
  ceilings.memory = 2.0 * static_cast<double>(bytes) / events.median(stream, [&] {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
  });
  constexpr int granule = 8 * threads;  // of what a thread block reads at a time
  const int count = std::max(1, cache_bytes / 4 / static_cast<int>(sizeof(float4)) / granule) * granule;
  constexpr int cache_passes = 2;
  ceilings.cache = 16.0 * count * cache_passes * blocks / events.median(stream, [&] {
    launch("ceiling of the cache", read_cache, blocks, threads, 0, stream, static_cast<const float4*>(from), count,
           cache_passes, static_cast<float4*>(to));
  });
  constexpr int shared_passes = 4000;
  constexpr int loads = 16;
  ceilings.shared = 16.0 * loads * shared_passes * all_threads / events.median(stream, [&] {
    launch("ceiling of shared memory", read_shared, blocks, threads, 0, stream, shared_passes,
           static_cast<float4*>(to));
  });
  constexpr int fma_passes = 400;
  constexpr double flops = 2.0 * chains * fma_steps * fma_passes;
  ceilings.fma_float = flops * all_threads / events.median(stream, [&] {
    launch("ceiling of fp32", multiply_add<float>, blocks, threads, 0, stream, 0.5F, 1.0F, fma_passes,
           static_cast<float*>(to));
  });
  ceilings.fma_double = flops * all_threads / events.median(stream, [&] {
    launch("ceiling of fp64", multiply_add<double>, blocks, threads, 0, stream, 0.5, 1.0, fma_passes,
           static_cast<double*>(to));
  });
  return ceilings;
}

}  // namespace solenoid::cuda
