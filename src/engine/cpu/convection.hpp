#pragma once
/// \file
/// The convective term of the cpu engine.

#include <memory>

#include "engine/convection.hpp"
#include "engine/cpu/team.hpp"
#include "level/level.hpp"

namespace solenoid::cpu {

/// Of a level, which must outlive it. \throws InputError if this build lacks the order.
std::unique_ptr<Convection> make_cpu_convection(Team& team, const Level& level, ConvectiveFlux flux);

}  // namespace solenoid::cpu
