#pragma once
/// \file
/// The kernel of small patches on the device.

#include <cstdint>

#include "engine/cuda/kernels/arguments.hpp"

namespace solenoid::cuda {

/// `count` small patches of one shape, which share no unknown.
template <class T>
struct SmallArguments {
  PatchUnknowns of;
  int record_size;
  const T* inverse;  ///< symmetric
  const T* r;
  T* x;
  T damping;
};

/// Patches of a thread block where there are enough for all multiprocessors, and where there are few or large ones.
inline constexpr int many_small_patches = 16;
inline constexpr int few_small_patches = 4;

/// x += damping * inverse times r. `many`: there are enough patches for all multiprocessors.
template <class T>
void smooth_small(const SmallArguments<T>& arguments, bool many, Stream stream);

}  // namespace solenoid::cuda
