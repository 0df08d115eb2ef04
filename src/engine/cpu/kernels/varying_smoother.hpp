#pragma once
/// \file
/// The vertex-patch smoother where coefficients vary by cell: the true residual, and local problems with constant
/// coefficients between scalings (level/patch_scale.hpp). Lanes are patches of one colour.

#include <cmath>

#include "engine/cpu/kernels/smoother.hpp"
#include "engine/cpu/kernels/varying_operator.hpp"
#include "level/patch_viscosity.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T, int dim, int order>
struct VaryingSmoother : PatchBatch<T, EquationKind::stokes, dim, order> {
  using Base = PatchBatch<T, EquationKind::stokes, dim, order>;
  using Base::block, Base::cell_columns, Base::columns, Base::corners, Base::pressures, Base::record;
  using Base::pressure_offset;
  using typename Base::V, typename Base::Arrays, typename Base::Batch, typename Base::Cells;

  /// The patch rows of b - A x.
  static void residual(const VaryingData<T>& data, const SmoothArguments<T>& arguments, const Batch& batch,
                       Arrays& work) {
    // Upper cells first: a cell subtracts from the hats of the next ones, which have b by then.
    for (int bits = corners - 1; bits >= 0; --bits) {
      const Cells cells(arguments.topology, batch.cells[bits]);
      V* pressure = Base::gather(arguments, batch, cells, bits, work);
      if (arguments.x == nullptr) continue;

      Ahead<T, dim, order> ahead = Base::ahead_of(arguments, batch, bits);
      alignas(SOLENOID_SIMD_BYTES) T scratch[block * interleave];
      const LaneCoefficients<T, dim> lanes(data, batch.cells[bits], cells);
      const T* p = cells.own.template view<block>(arguments.x, dim * block, scratch);
      V q[block]{};
      subtract_element<0>(data, arguments, lanes, cells, bits, p, ahead, q, work);
      subtract_element<1>(data, arguments, lanes, cells, bits, p, ahead, q, work);
      if constexpr (dim == 3) subtract_element<2>(data, arguments, lanes, cells, bits, p, ahead, q, work);
      for (int i = 0; i < block; ++i) pressure[pressure_offset[i]] += q[i];
    }
  }

  template <int c>
  static void subtract_element(const VaryingData<T>& data, const SmoothArguments<T>& arguments,
                               const LaneCoefficients<T, dim>& lanes, const Cells& cells, int bits, const T* p,
                               Ahead<T, dim, order>& ahead, V* q, Arrays& work) {
    V own[block];
    V upper[cell_columns];
    VaryingComponent<T, dim, order, c>::run(*arguments.cell, data, lanes, cells, arguments.x, p, ahead, own, upper, q);
    Base::subtract(c, bits, own, upper, work);
  }

  /// nu_p^(1/2)
  static V root_of_viscosity(const VaryingData<T>& data, const PatchData<T>& patch, const Batch& batch) {
    int open_ends = 0;
    for (int a = 0; a < dim && data.stress; ++a) open_ends += (patch.hat[a][0] ? 1 : 0) + (patch.hat[a][1] ? 1 : 0);
    V root;
    for (int l = 0; l < width; ++l) {
      T sum{};
      T largest{};
      for (int bits = 0; bits < corners; ++bits) {
        const T nu = data.viscosity[batch.cells[bits][l]];
        sum += nu;
        largest = std::max(largest, nu);
      }
      root.set(l, std::sqrt(patch_viscosity(sum / T(corners), largest, open_ends)));
    }
    return root;
  }

  /// T times a residual or a correction.
  static void scale(const PatchData<T>& patch, const V& of_velocity, const V& of_pressure, Arrays& work) {
    for (int c = 0; c < dim; ++c) {
      V* velocity = work.velocity[c];
      for (int i = patch.first[c] * columns; i < (patch.last[c] + 1) * columns; ++i) velocity[i] *= of_velocity;
    }
    for (int i = 0; i < pressures; ++i) work.pressure[i] *= of_pressure;
  }

  /// T S^+ T of the residual in `work`.
  static void solve_scaled(const VaryingData<T>& data, const SmoothArguments<T>& arguments, int problem,
                           const Batch& batch, Arrays& work) {
    const PatchData<T>& patch = arguments.problems[problem];
    const V root = root_of_viscosity(data, patch, batch);
    V inverse;
    for (int l = 0; l < width; ++l) inverse.set(l, T(1) / root[l]);
    scale(patch, inverse, root, work);
    Base::solve_local(arguments, problem, work);
    scale(patch, inverse, root, work);
  }

  static void smooth(const VaryingData<T>& data, const SmoothArguments<T>& arguments) {
    Base::smooth(
        arguments, [&](const Batch& batch, Arrays& work) { residual(data, arguments, batch, work); },
        [&](int problem, const Batch& batch, Arrays& work) { solve_scaled(data, arguments, problem, batch, work); });
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
