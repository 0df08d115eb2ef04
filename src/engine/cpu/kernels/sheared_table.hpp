#pragma once
/// \file
/// What the kernels of cells that are parallelepipeds and the engine exchange.

#include "engine/cpu/kernels/table.hpp"
#include "engine/sheared_data.hpp"

namespace solenoid::cpu {

template <class T>
struct ShearedTable {
  // With coefficients that vary by cell, or nullptr.
  void (*apply)(const ShearedData<T>&, const VaryingData<T>*, const ApplyArguments<T>&);
  /// Local problems are those of PatchData (level/patch_weights.hpp).
  void (*smooth)(const ShearedData<T>&, const VaryingData<T>*, const SmoothArguments<T>&);
};

/// The instance for this machine. \throws InputError that lists the orders of this build.
template <class T>
const ShearedTable<T>& sheared_table(int dim, int order);

}  // namespace solenoid::cpu
