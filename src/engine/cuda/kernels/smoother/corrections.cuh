#pragma once
/// \file
/// The parity smoother for corrections of residuals. Apart from parity.cuh, so that what takes longest to compile is
/// compiled in a file of its own.

#include "engine/cuda/kernels/smoother/parity.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order, int variant>
void correct_parity(const ParityArguments<T>& arguments, Stream stream) {
  if constexpr (has_parity_kernel<T, dim, order, variant>()) {
    launch_parity<T, dim, order, variant, true>(arguments, stream);
  }
}

}  // namespace solenoid::cuda
