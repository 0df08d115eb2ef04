#pragma once
/// \file
/// Vectors between scalings of patches (level/patch_scale.hpp) on the device.

#include <cstdint>

#include "engine/cuda/kernels/elements.hpp"

namespace solenoid::cuda {

/// Of records.
struct RecordShape {
  std::int64_t numbers;  ///< of all
  int dim;
  int size;
  int velocities;  ///< numbers of a record before the pressures
  int block;       ///< of a component
  int hats;        ///< of these
};

/// r = T b, the residuals of the patches of a colour where x is zero (Colour::root).
template <class T>
void scale_by_patch(const PatchesOfColour<T>& patches, const CellTopology& topology, const RecordShape& records,
                    const T* b, T* r, Stream stream);

}  // namespace solenoid::cuda
