#pragma once
/// \file
/// What a launcher of several processes says in the environment.

namespace solenoid {

/// How many processes mpirun, mpiexec or srun started together with this one; 1 without any.
int launched_processes();

}  // namespace solenoid
