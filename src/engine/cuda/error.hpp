#pragma once
/// \file
/// Checked CUDA calls.

#include <cuda_runtime_api.h>

namespace solenoid::cuda {

/// \throws ResourceError that says what failed and, if the error belongs to earlier work, after which kernel.
void check(cudaError_t status, const char* what);

/// Remembers the kernel that was launched last: what goes wrong while a kernel runs surfaces in later calls.
void note_launch(const char* kernel) noexcept;

}  // namespace solenoid::cuda
