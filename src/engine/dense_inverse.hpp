#pragma once
/// \file
/// Kernels::invert_dense for engines with memory of the host.

#include <span>

#include "engine/engine.hpp"

namespace solenoid {

/// On all cores; the result does not depend on their number.
template <class T>
void invert_on_host(std::span<const DenseField> fields, double* matrix, T* inverse);

}  // namespace solenoid
