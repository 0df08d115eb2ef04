#pragma once
/// \file
/// The operator of the marker-and-cell scheme (an element of order 0 with lumped mass).

#include "engine/cuda/kernels/arguments.hpp"
#include "engine/mac_stencil.hpp"

namespace solenoid::cuda {

/// y = A x, or b - A x if b is not nullptr, on all records.
template <class T>
void apply_mac(const MacStencil<T>& stencil, const CellTopology& topology, const T* x, const T* b, T* y, Stream stream);

}  // namespace solenoid::cuda
