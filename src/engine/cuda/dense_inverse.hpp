#pragma once
/// \file
/// Kernels::invert_dense on the device.

#include <span>

#include "engine/cuda/kernels/arguments.hpp"
#include "engine/engine.hpp"

namespace solenoid::cuda {

/// Returns when it is done: kernels load inverses before they wait for earlier ones.
template <class T>
void invert_dense(Engine& engine, std::span<const DenseField> fields, double* matrix, T* inverse, Stream stream);

}  // namespace solenoid::cuda
