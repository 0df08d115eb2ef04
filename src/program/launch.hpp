#pragma once
/// \file
/// A program of which a launcher (mpirun, srun) may have started several processes.

#include <functional>

#include "solenoid/communicator.hpp"

namespace solenoid::program {

/// Runs the program, which returns an exit code. Of several ranks the first one speaks: what others print is not seen.
/// If some rank fails and the others do not, all are ended, with a line that names it.
int run_as_ranks(const std::function<int()>& program);

/// A line on stderr, by the first rank, if ranks that are to run so many threads each (0: their share of the cores) are
/// bound to fewer cores than that, unless it is to be quiet. Collective.
void warn_of_binding(const Communicator& ranks, int threads, bool quiet);

}  // namespace solenoid::program
