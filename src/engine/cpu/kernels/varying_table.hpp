#pragma once
/// \file
/// What the kernels of coefficients that vary by cell and the engine exchange.

#include "engine/cpu/kernels/table.hpp"

namespace solenoid::cpu {

template <class T>
struct VaryingTable {
  void (*apply)(const VaryingData<T>&, const ApplyArguments<T>&);
  /// Local problems are those of PatchData, scaled (level/patch_scale.hpp).
  void (*smooth)(const VaryingData<T>&, const SmoothArguments<T>&);
};

/// The instance for this machine. \throws InputError that lists the orders of this build.
template <class T>
const VaryingTable<T>& varying_table(int dim, int order);

}  // namespace solenoid::cpu
