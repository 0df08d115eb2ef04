#pragma once
/// \file
/// Kernels for sparse matrices on the cpu engine.

#include <memory>

#include "engine/cpu/team.hpp"
#include "engine/sparse.hpp"

namespace solenoid::cpu {

/// `team` must outlive them.
template <class T>
std::unique_ptr<SparseKernels<T>> make_sparse_kernels(Team& team);

}  // namespace solenoid::cpu
