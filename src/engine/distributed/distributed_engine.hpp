#pragma once
/// \file
/// An engine of one of several ranks.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/distributed/transport.hpp"
#include "engine/engine.hpp"
#include "engine/packed_records.hpp"

namespace solenoid {

/// Kernels of levels with a partition are those of `engine` on the owned cells and around them, with ghosts brought in
/// where they are needed and sums over all ranks. Transfers between a level with a partition and one without gather and
/// spread. Levels without a partition are left to `engine`: every rank does the same.
std::unique_ptr<Engine> make_distributed_engine(std::unique_ptr<Engine> engine,
                                                std::unique_ptr<distributed::Transport> transport,
                                                std::shared_ptr<const Communicator> ranks);
/// Of an engine made here: from now on ghosts are NaN where they are not what their owners have. For tests.
void poison_ghosts(Engine& engine);
/// Of such an engine: while they are watched, messages are exchanged between kernels, never within one. For tests.
void watch_messages(Engine& engine, bool watched);
/// Of an engine with poisoned ghosts whose messages are watched: of the values that messages of a smoothing step bring,
/// one class of a record after the other, [first, last) do not arrive from now on. Returns what the last such messages
/// since it was called before were to bring. For tests.
std::vector<PackedRecords> lose_values(Engine& engine, std::int64_t first, std::int64_t last);

}  // namespace solenoid
