#pragma once
/// \file
/// Sums of the cpu engine over flows at points: moments and integrals. With the same bits for any number of threads.

#include <memory>

#include "engine/cpu/team.hpp"
#include "engine/engine.hpp"
#include "engine/flow_moments.hpp"
#include "level/level.hpp"

namespace solenoid::cpu {

/// Of a level, which must outlive it. \throws InputError if this build lacks the order.
std::unique_ptr<FlowMoments> make_cpu_flow_moments(Team& team, const Level& level);
/// The same; nullptr for Poisson's equation.
std::unique_ptr<Integrator> make_cpu_integrator(Team& team, const Level& level);

}  // namespace solenoid::cpu
