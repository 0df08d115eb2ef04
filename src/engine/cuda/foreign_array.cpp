#include "engine/cuda/foreign_array.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "base/cuda_array.hpp"
#include "engine/cuda/error.hpp"
#include "engine/engine.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace cuda {
namespace {

/// The device in whose memory an array lies.
int device_of(const void* array, const char* name) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, array), name);
  const bool on_device = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  if (!on_device) throw InputError(fmt::format("{}: the array does not lie in the memory of a CUDA device", name));
  return attributes.device;
}

/// The current one of this thread is another as long as this exists.
class OnDevice {
 public:
  explicit OnDevice(int device) : before_(cuda_device()) { check(cudaSetDevice(device), "cudaSetDevice"); }
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

}  // namespace

void take_array(const double* array, const char* name) {
  const int device = device_of(array, name);
  if (device != cuda_device()) {
    throw InputError(fmt::format("{}: the array lies on GPU {}, expected one on GPU {}, which the flow is on", name,
                                 device, cuda_device()));
  }
  check(cudaDeviceSynchronize(), "waiting for the device");
}

}  // namespace cuda

void copy_from_cuda(void* host, const void* array, std::size_t bytes) {
  const cuda::OnDevice here(cuda::device_of(array, "copy from a device"));
  cuda::check(cudaDeviceSynchronize(), "waiting for the device");
  cuda::check(cudaMemcpy(host, array, bytes, cudaMemcpyDeviceToHost), "copy from a device");
}

void copy_to_cuda(void* array, const void* host, std::size_t bytes) {
  const cuda::OnDevice here(cuda::device_of(array, "copy to a device"));
  cuda::check(cudaDeviceSynchronize(), "waiting for the device");
  cuda::check(cudaMemcpy(array, host, bytes, cudaMemcpyHostToDevice), "copy to a device");
}

}  // namespace solenoid
