#pragma once
/// \file
/// What the smoother of Poisson's equation (poisson.cuh) exchanges with the engine: plain data.

#include <cstdint>

#include "engine/cuda/kernels/smoother/colour.hpp"
#include "engine/kernel_data.hpp"

namespace solenoid::cuda {

/// Patches of one colour and kind that a thread block takes together.
struct PoissonBatch {
  std::int32_t begin;  ///< in the list of lower cells
  std::int32_t count;
  std::int32_t kind;
};

/// One colour. Pointers are to device memory unless said otherwise.
template <class T>
struct PoissonArguments {
  const CellData<T>* cell;  ///< host memory
  CellTopology topology;
  const PatchData<T>* kinds;  ///< tables are whole matrices
  const std::int32_t* lower;
  const PoissonBatch* batches;
  std::int32_t batch_count;
  Colour<T> colour;
};

}  // namespace solenoid::cuda
