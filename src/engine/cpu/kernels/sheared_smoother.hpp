#pragma once
/// \file
/// The vertex-patch smoother on cells that are parallelepipeds: the true residual, and separable local problems
/// (level/patch_weights.hpp), between scalings where coefficients vary by cell (varying_smoother.hpp). Lanes are
/// patches of one colour.

#include "engine/cpu/kernels/sheared_operator.hpp"
#include "engine/cpu/kernels/varying_smoother.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T, int dim, int order>
struct ShearedSmoother : PatchBatch<T, EquationKind::stokes, dim, order> {
  using Base = PatchBatch<T, EquationKind::stokes, dim, order>;
  using Base::block, Base::cell_columns, Base::corners, Base::record;
  using Base::pressure_offset;
  using typename Base::V, typename Base::Arrays, typename Base::Batch, typename Base::Cells;

  /// The patch rows of b - A x.
  static void residual(const ShearedData<T>& data, const VaryingData<T>* varying, const SmoothArguments<T>& arguments,
                       const Batch& batch, Arrays& work) {
    // Upper cells first: a cell subtracts from the hats of the next ones, which have b by then.
    for (int bits = corners - 1; bits >= 0; --bits) {
      const Cells cells(arguments.topology, batch.cells[bits]);
      V* pressure = Base::gather(arguments, batch, cells, bits, work);
      if (arguments.x == nullptr) continue;

      Ahead<T, dim, order> ahead = Base::ahead_of(arguments, batch, bits);
      V out[record];
      V upper[dim][cell_columns];
      std::optional<LaneCoefficients<T, dim>> lanes;
      if (varying != nullptr) lanes.emplace(*varying, batch.cells[bits], cells);
      ShearedElement<T, dim, order>::run(*arguments.cell, data, lanes ? &*lanes : nullptr, arguments.topology,
                                         batch.cells[bits], cells, arguments.x, ahead, out, upper);
      for (int c = 0; c < dim; ++c) {
        Base::subtract(c, bits, out + c * block, upper[c], work);
      }
      for (int i = 0; i < block; ++i) pressure[pressure_offset[i]] += out[dim * block + i];
    }
  }

  static void smooth(const ShearedData<T>& data, const VaryingData<T>* varying, const SmoothArguments<T>& arguments) {
    Base::smooth(
        arguments, [&](const Batch& batch, Arrays& work) { residual(data, varying, arguments, batch, work); },
        [&](int problem, const Batch& batch, Arrays& work) {
          if (varying == nullptr) {
            Base::solve_local(arguments, problem, work);
          } else {
            VaryingSmoother<T, dim, order>::solve_scaled(*varying, arguments, problem, batch, work);
          }
        });
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
