#pragma once
/// \file
/// What a viscosity at points adds to the operator of the means, cell by cell. Lanes are cells.
///
/// With w = nu - nu_K at a point of a cell and w = nu_F - nu_F,K at one of a face (engine/point_weights.hpp)
///
///     y += sum_K (w G(u), grad v) + sum_F <w gamma [u] - w S(u), [v]> - <w S(v), [u]>,
///     G(u) = grad u, S_c(u) = {d_a u_c};   in the stress form G(u) = 2 eps(u), S_c(u) = {d_a u_c + d_c u_a},
///
/// by k + 2 Gauss points per direction; across a face only components c != a jump. Every face is computed by both of
/// its cells, from the same numbers; the rows of its hats, which only d_c v_a reaches, by half from either. Inside
/// plane by plane, as the convective term. Traffic: x once, y twice, four bytes for each point.

#include "engine/cpu/kernels/point_functions.hpp"
#include "engine/cpu/kernels/points_table.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <int dim, int order>
struct PointViscosity : PointFunctions<dim, order, viscosity_points(order)> {
  using Base = PointFunctions<dim, order, viscosity_points(order)>;
  using Base::block, Base::columns, Base::face_points, Base::n, Base::planes, Base::points, Base::rows, Base::trace;
  using Base::stride;
  using typename Base::Batch, typename Base::R, typename Base::V;
  template <int c, int a>
  using OnFace = typename Base::template OnFace<c, a>;
  static constexpr int in_plane = points * points;
  static constexpr int weights_of_cell = point_weights_of_cell(dim, order);

  struct Cells {
    V x[dim][rows];
    V y[dim][rows];
  };

  /// Weight i of a register of cells.
  [[gnu::always_inline]] static R weight(const float* weights, int i, int part) {
    R result;
    for (int l = 0; l < V::lanes; ++l) result[l] = weights[i * interleave + part * V::lanes + l];
    return result;
  }

  static void inside(const ViscosityTables& data, bool stress, const float* weights, Cells& cells, int part) {
    for (int plane = 0; plane < planes; ++plane) {
      R gradient[dim][dim][in_plane];  // [component][direction]
      Base::template for_components<0>([&]<int c>() {
        Base::template for_components<0>([&]<int a>() {
          Base::template values_on_plane<c, a>(data.functions, cells.x[c], part, plane, gradient[c][a]);
        });
      });
      for (int q = 0; q < in_plane; ++q) {
        const R w = weight(weights, plane * in_plane + q, part);
        for (int c = 0; c < dim; ++c) {
          for (int a = c; a < dim; ++a) {
            const double h_a = data.inverse_h[a];
            const double h_c = data.inverse_h[c];
            const R of_c = h_a * gradient[c][a][q];
            const R of_a = h_c * gradient[a][c][q];
            const R other_of_c = stress ? of_a : R{};
            const R other_of_a = stress ? of_c : R{};
            gradient[c][a][q] = h_a * w * (of_c + other_of_c);
            if (a != c) gradient[a][c][q] = h_c * w * (of_a + other_of_a);
          }
        }
      }
      Base::template for_components<0>([&]<int c>() {
        Base::template test_plane<c>(
            data.functions, [&](int a, int q) { return gradient[c][a][q]; }, part, plane, cells.y[c]);
      });
    }
  }

  /// Of component c on the face `side` across a, and of the hats there. `one_sided`: lanes that have nothing behind.
  template <int c, int a>
  static void tangential(const PointViscosityArguments& arguments, const Batch& batch, int side, const float* weights,
                         const V& one_sided, Cells& cells) {
    constexpr int along = stride(c, a);
    const ViscosityTables& data = *arguments.tables;
    const bool upper = side % 2 == 1;
    const double out = upper ? 1.0 : -1.0;
    const double h_a = data.inverse_h[a];
    const double h_c = data.inverse_h[c];
    alignas(SOLENOID_SIMD_BYTES) double scratch[rows * interleave];
    const double* const piece[2] = {
        batch.behind[side].template view<block>(arguments.x, c * block, scratch),
        batch.hats_behind(side, c).template view<columns>(arguments.x, c * block, scratch + block * interleave)};
    for (int part = 0; part < V::parts; ++part) {
      const auto mine = [&](int i) { return cells.x[c][i].part[part]; };
      const auto its = [&](int i) {
        const double* at = i < block ? piece[0] + i * interleave : piece[1] + (i - block) * interleave;
        return *reinterpret_cast<const typename V::Unaligned*>(at + part * V::lanes);
      };
      // Of the traces the jump [u], out of this cell, and the mean of the slopes, which point up.
      R value[trace];
      R slope[trace];
      R its_value[trace];
      R its_slope[trace];
      Base::template trace_of<along>(data.functions.end, upper, mine, value);
      Base::template trace_of<along>(data.functions.end, !upper, its, its_value);
      Base::template trace_of<along>(data.functions.end_slope, upper, mine, slope);
      Base::template trace_of<along>(data.functions.end_slope, !upper, its, its_slope);
      const R mean = 0.5 + 0.5 * one_sided.part[part];
      for (int i = 0; i < trace; ++i) {
        value[i] -= its_value[i];
        slope[i] = out * h_a * mean * (slope[i] - its_slope[i]);
      }
      R jump[face_points];
      R shear[face_points];  // S_c
      OnFace<c, a>::evaluate(data.functions, value, jump);
      OnFace<c, a>::evaluate(data.functions, slope, shear);
      const V* const hats = cells.x[a] + (upper ? block : 0);
      if (arguments.stress) {
        R normal[columns];
        R tilt[face_points];  // d_c u_a
        for (int i = 0; i < columns; ++i) normal[i] = hats[i].part[part];
        OnFace<a, a>::template evaluate<c>(data.functions, normal, tilt);
        for (int q = 0; q < face_points; ++q) shear[q] += h_c * tilt[q];
      }
      const double gamma = 2.0 * data.penalty * h_a;
      for (int q = 0; q < face_points; ++q) {
        const R w = h_a * weight(weights, q, part);
        const R flux = w * (gamma * mean * jump[q] - out * shear[q]);
        jump[q] = -out * w * jump[q];
        shear[q] = flux;
      }
      // Tests of v_c, of d_a v_c and of d_c v_a.
      OnFace<c, a>::test(data.functions, shear, value);
      OnFace<c, a>::test(data.functions, jump, slope);
      for (int line = 0; line < trace; ++line) {
        const int start = line / along * along * n + line % along;
        const R of_slope = h_a * mean * slope[line];
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) {
          const bool negative = !upper && j % 2 == 1;
          const double end = negative ? -data.functions.end[j] : data.functions.end[j];
          const double end_slope = upper || negative ? data.functions.end_slope[j] : -data.functions.end_slope[j];
          cells.y[c][start + j * along].part[part] += end * value[line] + end_slope * of_slope;
        }
      }
      if (!arguments.stress) continue;
      R sums[columns];
      OnFace<a, a>::template test<c>(data.functions, jump, sums);
      V* const its_hats = cells.y[a] + (upper ? block : 0);
      for (int i = 0; i < columns; ++i) its_hats[i].part[part] += 0.5 * h_c * sums[i];
    }
  }

  template <int a>
  static void faces_across(const PointViscosityArguments& arguments, const Batch& batch, const float* weights,
                           Cells& cells) {
    for (const int side : {2 * a, 2 * a + 1}) {
      V one_sided{};
      for (int l = 0; l < width && batch.boundary[side]; ++l) {
        one_sided.set(l, batch.face(side, l) == Face::interior ? 0.0 : 1.0);
      }
      const float* const of_face = weights + (power(points, dim) + side * face_points) * interleave;
      Base::template for_components<0>([&]<int c>() {
        if constexpr (c != a) tangential<c, a>(arguments, batch, side, of_face, one_sided, cells);
      });
    }
  }

  static void add(const PointViscosityArguments& arguments) {
    for (std::int32_t first = arguments.begin; first < arguments.end; first += width) {
      std::int32_t numbers[width];
      for (int l = 0; l < width; ++l) {
        numbers[l] = first + l < arguments.end ? first + l : arguments.topology.null;
      }
      const Batch batch(arguments.topology, numbers);
      const float* const weights = arguments.weights + record_offset(first, weights_of_cell);
      Cells cells{};
      for (int c = 0; c < dim; ++c) {
        batch.own.template load_values<block>(arguments.x, c * block, cells.x[c]);
        batch.behind[2 * c + 1].template load_values<columns>(arguments.x, c * block, cells.x[c] + block);
      }
      for (int part = 0; part < V::parts; ++part) inside(*arguments.tables, arguments.stress, weights, cells, part);
      Base::template for_components<0>([&]<int a>() { faces_across<a>(arguments, batch, weights, cells); });
      double* const upper = arguments.upper + record_offset(first, dim * columns);
      for (int c = 0; c < dim; ++c) {
        V y[block];
        batch.own.template load_values<block>(arguments.y, c * block, y);
        for (int i = 0; i < block; ++i) y[i] += arguments.sign * cells.y[c][i];
        batch.own.template write<false>(block, arguments.y, c * block, y);
        for (int i = 0; i < columns; ++i) {
          store(upper + (c * columns + i) * interleave, arguments.sign * cells.y[c][block + i]);
        }
      }
    }
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
