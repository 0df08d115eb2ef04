/// \file
/// One kernel instance, chosen by macros: PRECISION, DIM, ORDER.

#include "parity_instance.hpp"

#include "engine/cuda/kernels/smoother.cuh"

namespace solenoid::bench {
namespace {

using T = PRECISION;
using Smoother = cuda::TunedParitySmoother<T, DIM, ORDER>;
constexpr cuda::ParityKernel<T> kernel = cuda::parity_kernel<T, DIM, ORDER>();

/// What the device says.
void query(Instance& instance) {
  const auto function = cuda::smooth_parity<T, DIM, ORDER>;
  cudaFuncAttributes attributes{};
  cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, Smoother::shared_bytes);
  cudaFuncGetAttributes(&attributes, function);
  instance.registers = attributes.numRegs;
  instance.local_bytes = static_cast<int>(attributes.localSizeBytes);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&instance.blocks, function, Smoother::threads, Smoother::shared_bytes);
}

const bool registered = [] {
  if (kernel.smooth == nullptr) return false;
  Instance instance{
      DIM,     ORDER, cuda::parity_shape<T>(DIM, ORDER).resident, Smoother::threads, Smoother::shared_bytes,
      &kernel, query};
  instances().push_back(instance);
  return true;
}();

}  // namespace
}  // namespace solenoid::bench
