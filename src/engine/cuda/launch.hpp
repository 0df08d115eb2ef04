#pragma once
/// \file
/// Checked launches. Included by CUDA sources only.

#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/error.hpp"
#include "engine/cuda/kernels/arguments.hpp"
#include "engine/cuda/profile.hpp"

namespace solenoid::cuda {

inline constexpr std::size_t default_shared_bytes = 48 << 10;  // more has to be asked for

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 blocks, dim3 threads, std::size_t shared_bytes,
            Stream stream, const Arguments&... arguments) {
  if (Rehearsal::active()) {
    cudaFuncAttributes attributes;
    check(cudaFuncGetAttributes(&attributes, kernel), name);
    return;
  }
  if (blocks.x == 0) return;
  if (shared_bytes > default_shared_bytes) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          name);
  }
  Profile* const profile = Profile::active();
  if (profile != nullptr) {
    const void* const function = reinterpret_cast<const void*>(kernel);
    profile->begin(function, blocks.x, threads.x * threads.y * threads.z, shared_bytes, stream);
  }
  kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...);
  check(cudaGetLastError(), name);
  if (profile != nullptr) profile->end(stream);
  note_launch(name);
}

/// Blocks of `size` that `count` things fill.
template <class I>
constexpr unsigned blocks_for(I count, I size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

}  // namespace solenoid::cuda
