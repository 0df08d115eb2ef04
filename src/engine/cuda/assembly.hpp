#pragma once
/// \file
/// Sparse matrices made on the device.

#include <memory>

#include "engine/assembly.hpp"
#include "engine/cuda/cuda_kernels.hpp"

namespace solenoid::cuda {

/// `shared` must outlive it.
std::unique_ptr<SparseAssembly> make_assembly(Shared& shared);

}  // namespace solenoid::cuda
