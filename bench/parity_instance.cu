/// \file
/// One kernel instance, chosen by macros: PRECISION, DIM, ORDER.

#include "parity_instance.hpp"

#include "engine/cuda/kernels/smoother.cuh"

namespace solenoid::bench {
namespace {

using T = PRECISION;

/// What the device says.
template <int variant>
void query(Instance& instance) {
  const auto function = cuda::smooth_parity<T, DIM, ORDER, variant>;
  cudaFuncAttributes attributes{};
  cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, instance.shared_bytes);
  cudaFuncGetAttributes(&attributes, function);
  instance.registers = attributes.numRegs;
  instance.local_bytes = static_cast<int>(attributes.localSizeBytes);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&instance.blocks, function, instance.threads, instance.shared_bytes);
}

template <int variant>
bool add() {
  static constexpr cuda::ParityKernel<T> kernel = cuda::parity_kernel<T, DIM, ORDER, variant>();
  if (kernel.smooth == nullptr) return false;
  using Smoother = cuda::ShapedParitySmoother<T, DIM, ORDER, variant>;
  constexpr cuda::ParityShape shape = cuda::parity_shape<T>(DIM, ORDER, variant);
  instances().push_back({DIM, ORDER, variant, shape.resident, shape.teams * Smoother::threads, Smoother::shared_bytes,
                         &kernel, query<variant>});
  return true;
}

const bool registered[]{add<0>(), add<1>(), add<2>()};

}  // namespace
}  // namespace solenoid::bench
