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
  return {&Operator<T, dim, order>::apply,
          {parity_kernel<T, dim, order, 0>(), parity_kernel<T, dim, order, 1>(), parity_kernel<T, dim, order, 2>()},
          &GeneralSmoother<T, dim, order>::smooth,
          &Transfer<T, dim, order>::launch_restrict_to,
          &Transfer<T, dim, order>::launch_prolong_add};
}

}  // namespace solenoid::cuda
