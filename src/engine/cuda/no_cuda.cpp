/// \file
/// Stands for the cuda engine in builds without CUDA.

#include "base/cuda_array.hpp"
#include "engine/engine.hpp"
#include "solenoid/error.hpp"

namespace solenoid {

std::string cuda_unavailable() {
  return "this build has no CUDA engine (CMake found no nvcc, or SOLENOID_CUDA is off)";
}

int cuda_devices() { return 0; }
int cuda_device() { return 0; }
DenseLimits cuda_dense_limits() { return {}; }
void use_cuda_device(int /*device*/) {}
void copy_from_cuda(void* /*host*/, const void* /*array*/, std::size_t /*bytes*/) {
  throw ResourceError("arrays in the memory of a CUDA device: " + cuda_unavailable());
}
void copy_to_cuda(void* /*array*/, const void* /*host*/, std::size_t /*bytes*/) {
  throw ResourceError("arrays in the memory of a CUDA device: " + cuda_unavailable());
}

std::unique_ptr<Engine> make_cuda_engine() {
  throw ResourceError("device cuda was asked for, but " + cuda_unavailable() + "; use --device cpu");
}

}  // namespace solenoid
