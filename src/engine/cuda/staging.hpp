#pragma once
/// \file
/// Large copies between the host's memory and the device's. What the driver copies from ordinary memory goes through a
/// buffer of its own, by one thread; here several threads have buffers that the device reads and writes itself.

#include <cstddef>
#include <memory>

#include "engine/cuda/kernels/arguments.hpp"

namespace solenoid::cuda {

class Staging {
 public:
  /// Both return when the copy is done. \throws Interrupted where work is to end early, ResourceError
  void upload(const void* host, void* device, std::size_t bytes, Stream stream);
  void download(const void* device, void* host, std::size_t bytes, Stream stream);

 private:
  struct FreeHost {
    void operator()(std::byte* memory) const;
  };
  template <class Copy>
  void in_chunks(std::size_t bytes, Stream stream, const Copy& copy);

  std::unique_ptr<std::byte, FreeHost> buffers_;  // of all threads, once it is needed
};

}  // namespace solenoid::cuda
