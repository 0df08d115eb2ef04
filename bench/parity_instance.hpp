#pragma once
/// \file
/// The kernel instances that the benchmark of the parity smoother was built with.

#include <variant>
#include <vector>

#include "engine/cuda/kernels/parity.hpp"

namespace solenoid::bench {

struct Instance {
  int dim;
  int order;
  int variant;
  bool resident;
  int threads;
  int shared_bytes;
  std::variant<const cuda::ParityKernel<float>*, const cuda::ParityKernel<double>*> kernel;
  void (*query)(Instance&);  ///< fills in the rest
  int registers = 0;
  int local_bytes = 0;
  int blocks = 0;  ///< per multiprocessor
};

std::vector<Instance>& instances();

}  // namespace solenoid::bench
