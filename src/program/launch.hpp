#pragma once
/// \file
/// A program of which a launcher (mpirun, srun) may have started several processes.

#include <functional>

namespace solenoid::program {

/// Runs the program, which returns an exit code. Of several ranks the first one speaks: what others print is not seen.
/// If some rank fails and the others do not, all are ended, with a line that names it.
int run_as_ranks(const std::function<int()>& program);

}  // namespace solenoid::program
