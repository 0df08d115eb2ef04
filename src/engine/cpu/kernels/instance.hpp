#pragma once
/// \file
/// The table of kernels of one instance.

#include "engine/cpu/kernels/halo_smoother.hpp"
#include "engine/cpu/kernels/local_solver.hpp"
#include "engine/cpu/kernels/operator.hpp"
#include "engine/cpu/kernels/small_patches.hpp"
#include "engine/cpu/kernels/smoother.hpp"
#include "engine/cpu/kernels/transfer.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T, EquationKind equation, int dim, int order>
constexpr KernelTable<T> make_table() {
  KernelTable<T> table{};
  table.locate = &CellBatch<dim, record_size(dim, order, equation)>::locate;
  table.apply = &Operator<T, equation, dim, order>::apply;
  table.workspace_bytes = &PatchBatch<T, equation, dim, order>::workspace_bytes;
  table.smooth = &smooth_patches<T, equation, dim, order>;
  table.solve[0] = &LocalSolver<T, equation, dim, order, false>::solve;
  table.solve[1] = &LocalSolver<T, equation, dim, order, true>::solve;
  if constexpr (equation == EquationKind::stokes) {
    table.find_places = &find_patch_places<dim>;
    table.halo_workspace_bytes = &HaloSmoother<T, dim, order>::workspace_bytes;
    table.smooth_halo = &HaloSmoother<T, dim, order>::smooth;
  }
  table.smooth_small = &smooth_small<T>;
  table.restrict_to = &Transfer<T, equation, dim, order>::restrict_to;
  table.prolong_add = &Transfer<T, equation, dim, order>::prolong_add;
  return table;
}

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
