/// \file
/// Stands for HDF5 files of images' fields in builds without HDF5.

#include "solenoid/error.hpp"
#include "solenoid/output.hpp"

namespace solenoid {

void write_image_fields(const Solution& /*flow*/, const std::filesystem::path& /*file*/, const std::string& /*axes*/,
                        double /*most_bytes*/) {
  throw InputError(solution_files_unavailable());
}

}  // namespace solenoid
