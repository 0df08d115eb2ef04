#pragma once
/// \file
/// Sparse matrices made on the processor.

#include <memory>

#include "engine/assembly.hpp"
#include "engine/cpu/team.hpp"

namespace solenoid::cpu {

/// `engine` and `team` must outlive it.
std::unique_ptr<SparseAssembly> make_assembly(Engine& engine, Team& team);

}  // namespace solenoid::cpu
