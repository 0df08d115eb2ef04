/// \file
/// Stands for HDF5 files of images in builds without HDF5.

#include "image/array_file.hpp"
#include "solenoid/error.hpp"

namespace solenoid {

ArrayFile open_hdf5(const std::filesystem::path& /*file*/, const std::string& /*dataset*/) {
  throw InputError(
      "this build reads no HDF5 files (CMake found no HDF5, or SOLENOID_HDF5 is off): install it (Debian: libhdf5-dev) "
      "and build again, or write the image as a .npy or a raw file");
}

}  // namespace solenoid
