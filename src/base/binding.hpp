#pragma once
/// \file
/// Cores that a process, or a rank among others, is bound to.

#include <sys/types.h>

#include <string>
#include <vector>

#include "solenoid/communicator.hpp"

namespace solenoid {

/// Numbers of the cores that a process may run on, ascending; 0: this thread. Empty if nobody says.
std::vector<int> allowed_cores(pid_t process = 0);

/// Threads of a rank that nobody gives a number: as many as it may run on cores, of which those ranks of its host that
/// may run on the same have their share. Collective.
int share_of_cores(const Communicator& ranks);

/// Which ranks their launcher has bound to fewer cores than they could use, and what to do; empty if none. They could
/// use one for each of so many `threads`, or where that is 0 their share of the host. Ranks that are not bound may have
/// too few cores, too: that is the machine, or its owner's will. Collective, and the same on all.
std::string too_narrow_binding(const Communicator& ranks, int threads);

}  // namespace solenoid
