#pragma once
/// \file
/// The choice of a transport.

#include <memory>

#include "engine/distributed/transport.hpp"

namespace solenoid::distributed {

/// Of GPUs that have one rank each: of the transports that work the one that is fastest in a small trial, the same on
/// all ranks. Collective.
std::unique_ptr<Transport> fastest_transport(Engine& engine, const std::shared_ptr<const Communicator>& ranks);

}  // namespace solenoid::distributed
