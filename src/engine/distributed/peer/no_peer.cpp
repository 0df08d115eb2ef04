/// \file
/// Stands for messages between GPUs in builds without CUDA.

#include "engine/distributed/transport.hpp"
#include "solenoid/error.hpp"

namespace solenoid::distributed {

std::string peer_unavailable(const Communicator& /*ranks*/) { return "this build is without CUDA"; }

std::unique_ptr<Transport> make_peer_transport(Engine& /*engine*/, std::shared_ptr<const Communicator> /*ranks*/) {
  throw ResourceError("transport peer: this build is without CUDA");
}

}  // namespace solenoid::distributed
