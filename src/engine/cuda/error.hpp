#pragma once
/// \file
/// Checked CUDA calls.

#include <cuda_runtime_api.h>

namespace solenoid::cuda {

/// \throws ResourceError that says what failed and, if the error belongs to earlier work, after which kernel.
void check(cudaError_t status, const char* what);

/// Remembers the kernel that was launched last: what goes wrong while a kernel runs surfaces in later calls.
void note_launch(const char* kernel) noexcept;

/// While one exists in this thread, launches do nothing but load their kernels onto the device, which otherwise happens
/// when a kernel is launched for the first time and takes longer than the solve of a small problem.
class Rehearsal {
 public:
  Rehearsal() noexcept;
  ~Rehearsal();
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;
  [[nodiscard]] static bool active() noexcept;
};

}  // namespace solenoid::cuda
