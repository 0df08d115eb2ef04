#pragma once
/// \file
/// The kernels of a level on the cpu engine.

#include <memory>

#include "engine/cpu/team.hpp"
#include "engine/engine.hpp"

namespace solenoid::cpu {

/// `team` and `level` must outlive them. \throws InputError if this build lacks the order.
template <class T>
std::unique_ptr<Kernels<T>> make_cpu_kernels(Team& team, const Level& level, LocalSolverKind local);

}  // namespace solenoid::cpu
