#pragma once
/// \file
/// Images made of a few numbers. They are periodic, and the same for any number of threads.

#include <array>
#include <cstdint>

#include "base/threads.hpp"
#include "solenoid/image.hpp"

namespace solenoid {

enum class Pattern {
  spheres,  ///< solid spheres, in 2D discs, at random places, that do not overlap
  grains,   ///< that may overlap
  fibres,   ///< solid cylinders with round ends at random places, in random directions; they may overlap
  blobs,    ///< noise, smoothed by a Gaussian: solid where it is largest
  array,    ///< one solid sphere in the middle of each cell of a lattice
  channel,  ///< pores between walls across y
  duct      ///< pores between walls across y and z
};

/// Lengths are in voxels.
struct Generator {
  Pattern pattern = Pattern::spheres;
  int dim = 3;
  std::array<int, 3> extent{64, 64, 64};
  double porosity = 0.5;  ///< hit as well as one sphere more or less, one voxel more or less (blobs), does
  double radius = 8.0;    ///< of spheres, grains and fibres
  double length = 32.0;   ///< of fibres, without their ends
  double feature = 8.0;   ///< standard deviation of the Gaussian
  int period = 0;         ///< of the lattice; 0: the extent
  int width = 0;          ///< of a channel or a duct; 0: all but one voxel
  std::uint64_t seed = 1;
  std::array<double, 3> voxel{1, 1, 1};  ///< its size in metres
};

/// \throws InputError if there is no such image.
VoxelImage generate_image(const Generator& what, int threads = cores());

}  // namespace solenoid
