#pragma once
/// \file
/// Patches whose local problem does not split by parity, in the smoother that works without old velocities: from
/// right-hand sides in classes (kernels/halo_smoother.hpp) to those of cells, and from there by the local solver of the
/// smoother with the true residual.

#include "engine/cpu/kernels/halo_fields.hpp"
#include "engine/cpu/kernels/local_solver.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

/// Solves for patches of one problem, one per lane of all registers.
template <class T, int dim, int order>
class WholePatches {
 public:
  using Local = LocalSolver<T, EquationKind::stokes, dim, order, false>;
  using Arrays = typename Local::Arrays;
  using Waiting = WaitingPatches<T, dim, order>;
  using Fields = typename Waiting::Fields;

  WholePatches(const HaloArguments<T>& arguments, Fields& fields, Arrays& arrays)
      : arguments_(arguments), fields_(fields), arrays_(arrays) {}

  /// Solves for the last patches of a problem that wait (there are some), and writes y.
  void solve(int problem, Waiting& waiting) {
    patch_ = arguments_.problems + problem;
    const int many = waiting.take(width);
    for (int part = 0; part < V::parts; ++part) {
      waiting.fields(part, fields_);
      for (int c = 0; c < dim; ++c) gather_velocity(part, c);
      gather_pressure(part);
    }
    Local::solve({patch_, LocalSolverKind::direct, &arrays_});
    std::int32_t lower[width];
    waiting.lower_cells(many, width, arguments_.topology.null, lower);
    write(lower, (1U << many) - 1);
  }

 private:
  static constexpr int n = order + 1;
  static constexpr int classes = 1 << dim;
  static constexpr int columns = power(n, dim - 1);
  static constexpr int block = power(n, dim);
  static constexpr int middle = order;  // row of HaloFields::velocity
  // Sums and differences twice are so many times the value.
  static constexpr T of_all = T(1) / T(classes);
  static constexpr T of_upper = T(2) * of_all;
  using V = Simd<T>;
  using R = typename V::Register;

  void gather_velocity(int part, int c) {
    const auto cell = [&](int i) { return arrays_.velocity[c] + Local::velocity_start(c, to_directions<dim>(i, c)); };
    for (int column = 0; column < columns; ++column) {
      const int flip = flip_of_column<n>(column);
      R v[classes];
      for (int i = 1; i < classes; i += 2) v[i] = fields_.velocity[c][(i ^ flip) - 1][middle * columns + column];
      butterfly<dim, true>(v);
      for (int i = 1; i < classes; i += 2) cell(i)[Local::velocity_offset[column]].part[part] = of_upper * v[i];
      for (int row = 0; row < order; ++row) {
        const int at = Local::velocity_offset[(row + 1) * columns + column];
        for (int i = 0; i < classes; ++i) v[i] = fields_.velocity[c][i ^ flip ^ row % 2][row * columns + column];
        butterfly<dim>(v);
        for (int i = 0; i < classes; ++i) cell(i)[at].part[part] = of_all * v[i];
      }
      if (!patch_->hat[c][0] && !patch_->hat[c][1]) continue;
      for (int i = 0; i < classes; ++i) v[i] = fields_.hats[c][i ^ flip][column];
      butterfly<dim>(v);
      for (int i = 0; i < classes; ++i) {
        cell(i)[Local::velocity_offset[i % 2 == 0 ? column : block + column]].part[part] = of_all * v[i];
      }
    }
  }

  void gather_pressure(int part) {
    for (int value = 0; value < block; ++value) {
      const int flip = flip_of_pressure<n>(value);
      R v[classes];
      for (int i = 0; i < classes; ++i) v[i] = fields_.pressure[i ^ flip][value];
      butterfly<dim>(v);
      for (int i = 0; i < classes; ++i) {
        arrays_.pressure[Local::pressure_start(i) + Local::pressure_offset[value]].part[part] = of_all * v[i];
      }
    }
  }

  /// y = new velocities, old pressure plus its correction.
  void write(const std::int32_t* lower, LaneSet active) {
    std::int32_t cells[classes][width];
    find_patch_cells<dim>(arguments_.topology, lower, cells);
    for (int bits = 0; bits < classes; ++bits) {
      const Lanes<Local::record> places(cells[bits], arguments_.topology.null);
      V values[block];
      for (int c = 0; c < dim; ++c) {
        const V* const velocity = arrays_.velocity[c] + Local::velocity_start(c, bits);
        const bool upper = (bits >> c & 1) != 0;
        const int first = upper || patch_->hat[c][0] ? 0 : columns;
        for (int i = first; i < block; ++i) values[i] = velocity[Local::velocity_offset[i]];
        places.template write<false>(block - first, arguments_.y, c * block + first, values + first, active);
        if (!upper || !patch_->hat[c][1]) continue;
        std::int32_t beyond[width];
        look_up(arguments_.topology.neighbour[2 * c + 1], cells[bits], beyond);
        for (int i = 0; i < columns; ++i) values[i] = velocity[Local::velocity_offset[block + i]];
        const Lanes<Local::record> hats(beyond, arguments_.topology.null);
        hats.template write<false>(columns, arguments_.y, c * block, values, active);
      }
      const V* const pressure = arrays_.pressure + Local::pressure_start(bits);
      for (int i = 0; i < block; ++i) values[i] = V{};
      if (arguments_.x != nullptr) places.template load_values<block>(arguments_.x, dim * block, values);
      for (int i = 0; i < block; ++i) values[i] += pressure[Local::pressure_offset[i]];
      places.template write<false>(block, arguments_.y, dim * block, values, active);
    }
  }

  const HaloArguments<T>& arguments_;
  Fields& fields_;  // of a register
  Arrays& arrays_;
  const PatchData<T>* patch_ = nullptr;
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
