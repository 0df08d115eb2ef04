#pragma once
/// \file
/// What the threads of a block have, joined.

namespace solenoid::cuda {

/// Joins a number of all threads of the block, in an order that is always the same; the first thread has the result.
/// `threads`: of the block, whole warps.
template <int threads, class Join>
__device__ double block_join(double value, const Join& join) {
  static_assert(threads % 32 == 0);
  constexpr int warps = threads / 32;
  __shared__ double of_warp[warps];
  const int thread = static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  for (int distance = 16; distance > 0; distance /= 2) {
    value = join(value, __shfl_down_sync(0xffffffffU, value, distance));
  }
  __syncthreads();
  if (thread % 32 == 0) of_warp[thread / 32] = value;
  __syncthreads();
  if (thread == 0) {
    for (int warp = 1; warp < warps; ++warp) value = join(value, of_warp[warp]);
  }
  return value;
}
template <int threads>
__device__ double block_sum(double value) {
  return block_join<threads>(value, [](double a, double b) { return a + b; });
}

}  // namespace solenoid::cuda
