#pragma once
/// \file
/// What the operator of coefficients that vary by cell (varying_operator.cuh) exchanges with the engine: plain data.

#include "engine/cuda/kernels/arguments.hpp"

namespace solenoid::cuda {

/// y = A x, or y = b - A x if b is given, on all cells and hat-only records. Pointers are to device memory unless said
/// otherwise.
template <class T>
struct VaryingArguments {
  const CellData<T>* cell;        ///< host memory; its coefficients are not looked at
  const VaryingData<T>* varying;  ///< host memory
  CellTopology topology;
  RecordBlocks blocks;  ///< all cells
  /// nu_p^(1/2) of the patch that a record belongs to, or 0, [record]: then the result times T (level/patch_scale.hpp),
  /// zero where there is no patch; or nullptr.
  const T* patch_root;
  const T* x;
  const T* b;
  T* y;
};

/// Starts the kernels of a dimension and order.
template <class T, int dim, int order>
void apply_varying(const VaryingArguments<T>& arguments, Stream stream);

}  // namespace solenoid::cuda
