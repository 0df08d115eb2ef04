#pragma once
/// \file
/// Vectors between scalings of patches (level/patch_scale.hpp) on the device.

#include <cstdint>

#include "engine/cuda/kernels/arguments.hpp"

namespace solenoid::cuda {

/// T of the patches of a colour: nu_p^(-1/2) on velocities, nu_p^(1/2) on pressures.
template <class T>
struct PatchScaling {
  const T* root;  ///< nu_p^(1/2), [record]; 0: no patch has the record, and T is zero there
  std::int64_t numbers;
  int record_size;
  int velocities;  ///< numbers of a record before the pressures
};

/// y = T x
template <class T>
void scale_by_patch(const PatchScaling<T>& scaling, const T* x, T* y, Stream stream);
/// y = base + factor T x, in place or not; base == nullptr stands for zero.
template <class T>
void add_by_patch(const PatchScaling<T>& scaling, T factor, const T* x, const T* base, T* y, Stream stream);

}  // namespace solenoid::cuda
