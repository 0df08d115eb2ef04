#pragma once
/// \file
/// Checked launches. Included by CUDA sources only.
///
/// A kernel may start while the one before it is still running: it calls wait_for_earlier_kernels() before it touches
/// anything that kernels write. Until then it can look up what was set up beforehand, and its start takes no time of
/// its own. One that is not launched `early` starts once all before it are done.

#include <cuda_runtime.h>

#include <cstddef>

#include "engine/cuda/error.hpp"
#include "engine/cuda/kernels/arguments.hpp"
#include "engine/cuda/profile.hpp"

namespace solenoid::cuda {

// More has to be asked for: 48 KB, of which kernels have some in static arrays.
inline constexpr std::size_t default_shared_bytes = 46 << 10;
inline constexpr std::size_t most_shared_bytes = 227 << 10;  // that a thread block may ask for

/// To be called by all threads of every kernel. Once it returns, all that earlier kernels wrote is there: the one
/// before has waited for those before it. Then the next one may start, or, if `alone`, when this one's blocks are done:
/// where several blocks with much work share a multiprocessor, those of the next kernel would find some multiprocessors
/// full and crowd on others. (For the same reason no kernel starts before its predecessor has got here.)
__device__ inline void wait_for_earlier_kernels([[maybe_unused]] bool alone = false) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  if (!alone) cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Brings what lies there closer.
__device__ inline void prefetch(const void* there) { asm volatile("prefetch.global.L1 [%0];" ::"l"(there)); }

/// Brings so many bytes, a multiple of 16 where the address is one, to the second-level cache.
__device__ inline void prefetch_bulk([[maybe_unused]] const void* there, [[maybe_unused]] int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(there), "r"(bytes));
#endif
}

/// Whether kernels of the current device may start early.
inline bool starts_early() {
  static const bool early = [] {
    int device = 0;
    int major = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    return major >= 9;
  }();
  return early;
}

template <bool early = true, class... Parameters, class... Arguments>
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
    profile->begin(function, blocks.x * blocks.y, threads.x * threads.y * threads.z, shared_bytes, stream);
  }
  cudaLaunchAttribute serialization{};
  serialization.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  serialization.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = blocks;
  configuration.blockDim = threads;
  configuration.dynamicSmemBytes = shared_bytes;
  configuration.stream = stream;
  configuration.attrs = &serialization;
  configuration.numAttrs = early && starts_early() ? 1 : 0;
  check(cudaLaunchKernelEx(&configuration, kernel, static_cast<Parameters>(arguments)...), name);
  if (profile != nullptr) profile->end(stream);
  note_launch(name);
}

/// Blocks of `size` that `count` things fill.
template <class I>
constexpr unsigned blocks_for(I count, I size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

}  // namespace solenoid::cuda
