#include "engine/cuda/smoother/patch_scaling.hpp"

#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 256;

template <class T>
__device__ T factor_at(const PatchScaling<T>& scaling, std::int64_t i) {
  const std::int64_t row = i / interleave;
  const T root = __ldg(scaling.root + row / scaling.record_size * interleave + i % interleave);
  if (row % scaling.record_size >= scaling.velocities) return root;
  return root == T(0) ? T(0) : T(1) / root;
}

template <class T>
__global__ void scale_kernel(const __grid_constant__ PatchScaling<T> scaling, const T* x, T* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  wait_for_earlier_kernels();
  if (i < scaling.numbers) y[i] = factor_at(scaling, i) * x[i];
}

template <class T>
__global__ void add_kernel(const __grid_constant__ PatchScaling<T> scaling, T factor, const T* x, const T* base, T* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  wait_for_earlier_kernels();
  if (i < scaling.numbers) y[i] = (base == nullptr ? T(0) : base[i]) + factor * (factor_at(scaling, i) * x[i]);
}

}  // namespace

template <class T>
void scale_by_patch(const PatchScaling<T>& scaling, const T* x, T* y, Stream stream) {
  launch("to local problems", scale_kernel<T>, blocks_for(scaling.numbers, std::int64_t{threads}), threads, 0, stream,
         scaling, x, y);
}
template <class T>
void add_by_patch(const PatchScaling<T>& scaling, T factor, const T* x, const T* base, T* y, Stream stream) {
  launch("from local problems", add_kernel<T>, blocks_for(scaling.numbers, std::int64_t{threads}), threads, 0, stream,
         scaling, factor, x, base, y);
}

template void scale_by_patch(const PatchScaling<float>&, const float*, float*, Stream);
template void scale_by_patch(const PatchScaling<double>&, const double*, double*, Stream);
template void add_by_patch(const PatchScaling<float>&, float, const float*, const float*, float*, Stream);
template void add_by_patch(const PatchScaling<double>&, double, const double*, const double*, double*, Stream);

}  // namespace solenoid::cuda
