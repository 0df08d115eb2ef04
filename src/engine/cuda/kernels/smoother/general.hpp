#pragma once
/// \file
/// What the smoother for every kind of patch and local solver (general.cuh) exchanges with the engine: plain
/// data.

#include <cstdint>

#include "engine/kernel_data.hpp"

namespace solenoid::cuda {

/// A patch of the list that the kernel works on.
struct GeneralPatch {
  /// The lower cell, and those above it in y, z and both: what would take look-ups that wait for each other.
  std::int32_t cells[4];
  std::int32_t kind;
};

/// One colour. Pointers are to device memory unless said otherwise.
template <class T>
struct GeneralArguments {
  const CellData<T>* cell;  ///< host memory
  CellTopology topology;
  const PatchData<T>* kinds;  ///< tables are whole matrices
  LocalSolverKind local;
  const GeneralPatch* patches;
  std::int32_t count;
  /// The kernel launched before this one has the other patches of the colour: both may run at the same time.
  bool beside;
  const T* b;
  const T* x;  ///< nullptr stands for zero
  T* y;        ///< other memory than x; gets the new values, or `damping` times the correction is added
  bool add;
  T damping;
};

}  // namespace solenoid::cuda
