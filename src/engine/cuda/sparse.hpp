#pragma once
/// \file
/// Kernels for sparse matrices on the device.

#include <memory>

#include "engine/cuda/cuda_kernels.hpp"
#include "engine/sparse.hpp"

namespace solenoid::cuda {

/// `shared` must outlive them.
template <class T>
std::unique_ptr<SparseKernels<T>> make_sparse_kernels(Shared& shared);

}  // namespace solenoid::cuda
