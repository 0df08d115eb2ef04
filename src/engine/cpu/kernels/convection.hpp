#pragma once
/// \file
/// The convective term, cell by cell. Lanes are cells.
///
/// Inside, plane by plane across the last direction: coefficients to points (last direction, then y, then x), products
/// u_a u_c, and back (y, x, last direction), so that of the points only those of a plane are there at a time. Every
/// face is computed by both of its cells, from the same numbers. A cell has the rows of its bubbles and a share of
/// either hat; that of the upper hat is left for the cell above. Traffic: u and y once each, hats once more.

#include "engine/cpu/kernels/point_functions.hpp"
#include "engine/cpu/kernels/points_table.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <int dim, int order>
struct ConvectiveTerm : PointFunctions<dim, order, convection_points(order)> {
  using Base = PointFunctions<dim, order, convection_points(order)>;
  using Base::block, Base::columns, Base::face_points, Base::n, Base::planes, Base::points, Base::rows, Base::trace;
  using Base::stride;
  using typename Base::Batch, typename Base::R, typename Base::V;
  template <int c, int a>
  using OnFace = typename Base::template OnFace<c, a>;

  struct Cells {
    V u[dim][rows];
    V y[dim][rows];
  };

  [[gnu::always_inline]] static R absolute(const R& x) { return x > 0.0 ? x : -x; }
  [[gnu::always_inline]] static R maximum(const R& x, const R& y) { return x > y ? x : y; }

  static R inside(const ConvectionData& data, Cells& cells, int part) {
    R rate{};
    for (int plane = 0; plane < planes; ++plane) {
      R values[dim][points * points];
      R scaled[dim][points * points];
      Base::template for_components<0>(
          [&]<int c>() { Base::template values_on_plane<c>(data.functions, cells.u[c], part, plane, values[c]); });
      for (int q = 0; q < points * points; ++q) {
        R crossing{};
#pragma GCC unroll 3
        for (int a = 0; a < dim; ++a) {
          scaled[a][q] = data.scale[a] * values[a][q];
          crossing += absolute(scaled[a][q]);
        }
        rate = maximum(rate, crossing);
      }
      // y_c -= sum_a (u_a u_c, d_a v_c)
      Base::template for_components<0>([&]<int c>() {
        Base::template test_plane<c>(
            data.functions, [&](int a, int q) { return -scaled[a][q] * values[c][q]; }, part, plane, cells.y[c]);
      });
    }
    return rate;
  }

  /// <u_n {u} + s |u_n| / 2 [u], [v]> of component c on the face `side` of the cells; nothing stands behind a side.
  template <int c, int a>
  [[gnu::always_inline]] static void tangential(const ConvectionArguments& arguments, const Batch& batch, int side,
                                                const R (*normal)[face_points], const V& upwind, Cells& cells) {
    constexpr int along = stride(c, a);
    const ConvectionData& data = *arguments.data;
    const bool upper = side % 2 == 1;
    alignas(SOLENOID_SIMD_BYTES) double scratch[rows * interleave];
    const double* const piece[2] = {
        batch.behind[side].template view<block>(arguments.u, c * block, scratch),
        batch.hats_behind(side, c).template view<columns>(arguments.u, c * block, scratch + block * interleave)};
    for (int part = 0; part < V::parts; ++part) {
      R mine[trace];
      R its[trace];
      Base::template trace_of<along>(
          data.functions.end, upper, [&](int i) { return cells.u[c][i].part[part]; }, mine);
      Base::template trace_of<along>(
          data.functions.end, !upper,
          [&](int i) {
            const double* at = i < block ? piece[0] + i * interleave : piece[1] + (i - block) * interleave;
            return *reinterpret_cast<const typename V::Unaligned*>(at + part * V::lanes);
          },
          its);
      R my_values[face_points];
      R its_values[face_points];
      OnFace<c, a>::evaluate(data.functions, mine, my_values);
      OnFace<c, a>::evaluate(data.functions, its, its_values);
      const R s = upwind.part[part];
      // w: outward. minus is mine, so that [v] = v.
      for (int q = 0; q < face_points; ++q) {
        const R w = normal[part][q];
        my_values[q] = 0.5 * (w * (my_values[q] + its_values[q]) + s * absolute(w) * (my_values[q] - its_values[q]));
      }
      R sums[trace];
      OnFace<c, a>::test(data.functions, my_values, sums);
      for (int line = 0; line < trace; ++line) {
        const int start = line / along * along * n + line % along;
        const R sum = data.scale[a] * sums[line];
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) {
          cells.y[c][start + j * along].part[part] +=
              (upper || j % 2 == 0 ? data.functions.end[j] : -data.functions.end[j]) * sum;
        }
      }
    }
  }

  /// <max(u_n, 0) u_n, v_n> where the face is an outflow side; u_n is outward.
  template <int a>
  static void normal_on_sides(const ConvectionData& data, const Batch& batch, int side, const R (*normal)[face_points],
                              Cells& cells) {
    const double outward = side % 2 == 1 ? 1.0 : -1.0;
    V open{};
    for (int l = 0; l < width; ++l) open.set(l, batch.face(side, l) == Face::outflow ? outward * data.scale[a] : 0.0);
    for (int part = 0; part < V::parts; ++part) {
      R flux[face_points];
      for (int q = 0; q < face_points; ++q) flux[q] = maximum(normal[part][q], R{}) * normal[part][q];
      R sums[columns];
      OnFace<a, a>::test(data.functions, flux, sums);
      V* hats = cells.y[a] + (side % 2 == 1 ? block : 0);
      for (int i = 0; i < columns; ++i) hats[i].part[part] += open.part[part] * sums[i];
    }
  }

  template <int a>
  static void faces_across(const ConvectionArguments& arguments, const Batch& batch, Cells& cells) {
    const ConvectionData& data = *arguments.data;
    for (const int side : {2 * a, 2 * a + 1}) {
      const V* hats = cells.u[a] + (side % 2 == 1 ? block : 0);
      R normal[V::parts][face_points];  // outward
      for (int part = 0; part < V::parts; ++part) {
        R coefficients[columns];
        for (int i = 0; i < columns; ++i) coefficients[i] = side % 2 == 1 ? hats[i].part[part] : -hats[i].part[part];
        OnFace<a, a>::evaluate(data.functions, coefficients, normal[part]);
      }
      V upwind{};
      for (int l = 0; l < width; ++l) {
        upwind.set(l, batch.face(side, l) == Face::interior ? arguments.upwind : 1.0);
      }
      Base::template for_components<0>([&]<int c>() {
        if constexpr (c != a) tangential<c, a>(arguments, batch, side, normal, upwind, cells);
      });
      if (batch.boundary[side]) normal_on_sides<a>(data, batch, side, normal, cells);
    }
  }

  static void apply(ConvectionArguments& arguments) {
    R rate{};
    for (std::int32_t first = arguments.begin; first < arguments.end; first += width) {
      std::int32_t numbers[width];
      for (int l = 0; l < width; ++l) {
        numbers[l] = first + l < arguments.end ? first + l : arguments.topology.null;
      }
      const Batch batch(arguments.topology, numbers);
      Cells cells{};
      for (int c = 0; c < dim; ++c) {
        batch.own.template load_values<block>(arguments.u, c * block, cells.u[c]);
        batch.behind[2 * c + 1].template load_values<columns>(arguments.u, c * block, cells.u[c] + block);
      }
      for (int part = 0; part < V::parts; ++part) rate = maximum(rate, inside(*arguments.data, cells, part));
      Base::template for_components<0>([&]<int a>() { faces_across<a>(arguments, batch, cells); });
      const V no_pressure[block]{};
      double* const upper = arguments.upper + record_offset(first, dim * columns);
      for (int c = 0; c < dim; ++c) {
        batch.own.template write<false>(block, arguments.y, c * block, cells.y[c]);
        for (int i = 0; i < columns; ++i) store(upper + (c * columns + i) * interleave, cells.y[c][block + i]);
      }
      batch.own.template write<false>(block, arguments.y, dim * block, no_pressure);
    }
    arguments.rate = 0.0;
    for (int l = 0; l < V::lanes; ++l) arguments.rate = std::max(arguments.rate, rate[l]);
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
