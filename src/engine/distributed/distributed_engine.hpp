#pragma once
/// \file
/// An engine of one of several ranks.

#include <memory>

#include "engine/distributed/transport.hpp"
#include "engine/engine.hpp"

namespace solenoid {

/// Kernels of levels with a partition are those of `engine` on the owned cells and around them, with ghosts brought in
/// where they are needed and sums over all ranks. Transfers between a level with a partition and one without gather and
/// spread. Levels without a partition are left to `engine`: every rank does the same.
std::unique_ptr<Engine> make_distributed_engine(std::unique_ptr<Engine> engine,
                                                std::unique_ptr<distributed::Transport> transport,
                                                std::shared_ptr<const Communicator> ranks);
/// Of an engine made here: from now on ghosts are NaN where they are not what their owners have. For tests.
void poison_ghosts(Engine& engine);

}  // namespace solenoid
