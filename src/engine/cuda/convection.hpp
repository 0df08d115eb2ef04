#pragma once
/// \file
/// The convective term of the cuda engine.

#include <memory>

#include "engine/convection.hpp"
#include "engine/cuda/cuda_kernels.hpp"

namespace solenoid::cuda {

/// Of a level, which must outlive it. \throws InputError if this build lacks the order.
std::unique_ptr<Convection> make_convection(Shared& shared, const Level& level, ConvectiveFlux flux);

}  // namespace solenoid::cuda
