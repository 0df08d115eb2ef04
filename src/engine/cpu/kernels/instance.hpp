#pragma once
/// \file
/// The table of kernels of one instance.

#include "engine/cpu/kernels/operator.hpp"
#include "engine/cpu/kernels/smoother.hpp"
#include "engine/cpu/kernels/transfer.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T, EquationKind equation, int dim, int order>
constexpr KernelTable<T> make_table() {
  return {static_cast<std::int64_t>(sizeof(PatchArrays<T, equation, dim, order>)),
          &CellBatch<dim, record_size(dim, order, equation)>::locate,
          &Operator<T, equation, dim, order>::apply,
          &PatchSmoother<T, equation, dim, order, true>::smooth,
          &PatchSmoother<T, equation, dim, order, false>::smooth,
          &Transfer<T, equation, dim, order>::restrict_to,
          &Transfer<T, equation, dim, order>::prolong_add};
}

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
