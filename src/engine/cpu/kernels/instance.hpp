#pragma once
/// \file
/// The table of kernels of one instance.

#include "engine/cpu/kernels/operator.hpp"
#include "engine/cpu/kernels/smoother.hpp"
#include "engine/cpu/kernels/transfer.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T, int dim, int order>
constexpr KernelTable<T> make_table() {
  return {static_cast<std::int64_t>(sizeof(PatchArrays<T, dim, order>)),
          &CellBatch<T, dim, order>::locate,
          &Operator<T, dim, order>::apply,
          &PatchSmoother<T, dim, order, true>::smooth,
          &PatchSmoother<T, dim, order, false>::smooth,
          &Transfer<T, dim, order>::restrict_to,
          &Transfer<T, dim, order>::prolong_add};
}

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
