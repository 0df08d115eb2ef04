#pragma once
/// \file
/// Second moments of flows on the device.

#include <memory>

#include "engine/cuda/cuda_kernels.hpp"
#include "engine/flow_moments.hpp"

namespace solenoid::cuda {

/// Of a level, which must outlive it. \throws InputError if this build lacks the order.
std::unique_ptr<FlowMoments> make_flow_moments(Shared& shared, const Level& level);

}  // namespace solenoid::cuda
