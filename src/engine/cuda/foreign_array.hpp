#pragma once
/// \file
/// Arrays of other programs in the memory of a device. (copy_from_cuda() and copy_to_cuda() are in
/// base/cuda_array.hpp.)

namespace solenoid::cuda {

/// Waits for all work on the current device, in whatever stream, so that an array may be read and written here.
/// \throws InputError if it does not lie in the memory of this device.
void take_array(const double* array, const char* name);

}  // namespace solenoid::cuda
