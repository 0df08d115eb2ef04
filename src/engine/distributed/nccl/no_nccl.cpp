/// \file
/// Stands for NCCL in builds without it.

#include "engine/distributed/transport.hpp"
#include "solenoid/error.hpp"

namespace solenoid::distributed {

std::string nccl_unavailable() { return "this build is without NCCL (SOLENOID_NCCL)"; }

std::unique_ptr<Transport> make_nccl_transport(Engine& /*engine*/, std::shared_ptr<const Communicator> /*ranks*/) {
  throw ResourceError("transport nccl: " + nccl_unavailable());
}

}  // namespace solenoid::distributed
