#pragma once
/// \file
/// What kernels take and what they occupy, noted while they are launched.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "engine/cuda/error.hpp"

namespace solenoid {
struct KernelUse;
}

namespace solenoid::cuda {

/// While one exists in this thread, every launch is timed by events. Not while work is recorded.
class Profile {
 public:
  Profile() noexcept;
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  /// That of this thread, or nullptr.
  [[nodiscard]] static Profile* active() noexcept;

  /// Around a launch.
  void begin(const void* kernel, unsigned blocks, unsigned threads, std::size_t shared_bytes, CUstream_st* stream);
  void end(CUstream_st* stream);

  /// All kernels in the order of their first launch. The work must be done.
  [[nodiscard]] std::vector<KernelUse> kernels() const;

 private:
  struct Launch {
    const void* kernel;
    unsigned blocks;
    unsigned threads;
    std::size_t shared_bytes;
    cudaEvent_t begin;
    cudaEvent_t end;
  };
  std::vector<Launch> launches_;
};

}  // namespace solenoid::cuda
