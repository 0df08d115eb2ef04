#pragma once
/// \file
/// The table of kernels of one instance.

#include "engine/cuda/kernels/general_smoother.cuh"
#include "engine/cuda/kernels/operator.cuh"
#include "engine/cuda/kernels/smoother.cuh"
#include "engine/cuda/kernels/transfer.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
KernelTable<T> make_table() {
  constexpr ParityKernel<T> parity = parity_kernel<T, dim, order>();
  return {&Operator<T, dim, order>::apply,
          parity.smooth,
          parity.patches,
          &GeneralSmoother<T, dim, order>::smooth,
          &Transfer<T, dim, order>::launch_restrict_to,
          &Transfer<T, dim, order>::launch_prolong_add};
}

}  // namespace solenoid::cuda
