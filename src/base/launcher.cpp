#include "base/launcher.hpp"

#include <array>
#include <cstdlib>

namespace solenoid {

int launched_processes() {
  // Of OpenMPI; of MPICH, Intel MPI and Slurm's PMI; of Slurm, whose job steps may have one task each.
  for (const char* const name : std::array{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* const value = std::getenv(name); value != nullptr) return std::atoi(value);
  }
  return 1;
}

}  // namespace solenoid
