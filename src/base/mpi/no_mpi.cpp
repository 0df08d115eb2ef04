#include <fmt/format.h>

#include "base/launcher.hpp"
#include "base/mpi/mpi_library.hpp"
#include "solenoid/communicator.hpp"
#include "solenoid/error.hpp"

namespace solenoid {

std::shared_ptr<const Communicator> mpi_communicator(const void* /*mpi_comm*/) {
  throw ResourceError("this build is without MPI: build with SOLENOID_MPI=ON (Debian: libopenmpi-dev)");
}

MpiLibrary mpi_library() { return {}; }

std::shared_ptr<const Communicator> launched_ranks() {
  const int processes = launched_processes();
  if (processes <= 1) return nullptr;
  throw ResourceError(fmt::format(
      "{} processes were launched, but this build is without MPI, so that each would solve the whole problem: "
      "build with SOLENOID_MPI=ON (Debian: libopenmpi-dev), or start one process",
      processes));
}

}  // namespace solenoid
