#pragma once
/// \file
/// Integrals of fields whose coefficients lie on the device.

#include <memory>

#include "engine/cuda/cuda_kernels.hpp"
#include "engine/engine.hpp"

namespace solenoid::cuda {

std::unique_ptr<Integrator> make_integrator(Shared& shared, const Level& level);

}  // namespace solenoid::cuda
