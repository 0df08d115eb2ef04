#pragma once
/// \file
/// Arrays of others in the memory of a CUDA device. Implemented by engine/cuda.

#include <cstddef>

namespace solenoid {

/// From and to an array in the memory of any CUDA device, once all work on it is done. \throws InputError if it lies
/// elsewhere, ResourceError where there is no CUDA.
void copy_from_cuda(void* host, const void* array, std::size_t bytes);
void copy_to_cuda(void* array, const void* host, std::size_t bytes);

}  // namespace solenoid
