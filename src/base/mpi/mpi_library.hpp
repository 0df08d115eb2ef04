#pragma once
/// \file
/// The library of MPI, for callers that have initialised one.

#include <cstddef>
#include <string>

namespace solenoid {

struct MpiLibrary {
  std::string version;                 ///< what it says of itself; empty: this build is without MPI
  std::size_t communicator_bytes = 0;  ///< size of an MPI_Comm
  bool running = false;                ///< initialised, and not ended yet
};

/// May be called at any time: initialises nothing.
MpiLibrary mpi_library();

}  // namespace solenoid
