/// \file
/// Stands for files of solutions in builds without HDF5.

#include "solenoid/checkpoint.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solution.hpp"

namespace solenoid {

std::string solution_files_unavailable() {
  return "this build has no solution files (CMake found no HDF5, or SOLENOID_HDF5 is off): install it (Debian: "
         "libhdf5-dev) and build again";
}

void Solution::save(const std::filesystem::path& /*file*/) const { throw InputError(solution_files_unavailable()); }
Solution load_solution(const std::filesystem::path& /*file*/) { throw InputError(solution_files_unavailable()); }
void Checkpoint::save(const std::filesystem::path& /*file*/) const { throw InputError(solution_files_unavailable()); }
Checkpoint load_checkpoint(const std::filesystem::path& /*file*/) { throw InputError(solution_files_unavailable()); }

}  // namespace solenoid
