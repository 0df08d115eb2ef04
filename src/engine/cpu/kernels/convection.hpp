#pragma once
/// \file
/// The convective term, cell by cell. Lanes are cells.
///
/// Inside, plane by plane across the last direction: coefficients to points (last direction, then y, then x), products
/// u_a w_c, and back (y, x, last direction), so that of the points only those of a plane are there at a time. Every
/// face is computed by both of its cells, from the same numbers. A cell has the rows of its bubbles and a share of
/// either hat; that of the upper hat is left for the cell above. Traffic: u and y once each, hats once more.
///
/// w is what is carried: u; in cells that are parallelepipeds w = g u / J^2 (problem/affine_map.hpp), with u and v the
/// velocities of the boxes that they are made of: v . u in space is v . w times J, and all else is as in boxes.

#include "engine/cpu/kernels/point_functions.hpp"
#include "engine/cpu/kernels/points_table.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <int dim, int order, bool sheared>
struct ConvectiveTerm : PointFunctions<dim, order, convection_points(order)> {
  using Base = PointFunctions<dim, order, convection_points(order)>;
  using Base::block, Base::columns, Base::face_points, Base::n, Base::planes, Base::points, Base::rows, Base::trace;
  using Base::stride;
  using typename Base::Batch, typename Base::Behind, typename Base::R, typename Base::V;
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
        if constexpr (sheared) {
          R here[dim];
          for (int c = 0; c < dim; ++c) here[c] = values[c][q];
          for (int c = 0; c < dim; ++c) values[c][q] = carried(data, c, here);
        }
      }
      // y_c -= sum_a (u_a w_c, d_a v_c)
      Base::template for_components<0>([&]<int c>() {
        Base::template test_plane<c>(
            data.functions, [&](int a, int q) { return -scaled[a][q] * values[c][q]; }, part, plane, cells.y[c]);
      });
    }
    return rate;
  }

  /// Component c of what is carried.
  [[gnu::always_inline]] static R carried(const ConvectionData& data, int c, const R (&u)[dim]) {
    R sum = data.carried[c][0] * u[0];
    for (int b = 1; b < dim; ++b) sum += data.carried[c][b] * u[b];
    return sum;
  }

  /// Component c at the points of the face `side`, from the cells and from behind it.
  template <int c, int a>
  [[gnu::always_inline]] static void on_both_sides(const ConvectionData& data, const Cells& cells, const Behind& behind,
                                                   int side, int part, R* mine, R* its) {
    constexpr int along = stride(c, a);
    const bool upper = side % 2 == 1;
    R my_trace[trace];
    R its_trace[trace];
    Base::template trace_of<along>(
        data.functions.end, upper, [&](int i) { return cells.u[c][i].part[part]; }, my_trace);
    Base::template trace_of<along>(
        data.functions.end, !upper, [&](int i) { return behind.at(i, part); }, its_trace);
    OnFace<c, a>::evaluate(data.functions, my_trace, mine);
    OnFace<c, a>::evaluate(data.functions, its_trace, its);
  }
  /// w_n {w} + s |w_n| / 2 [w], w_n outward; minus is mine, so that [v] = v.
  [[gnu::always_inline]] static R flux(const R& normal, const R& s, const R& mine, const R& its) {
    return 0.5 * (normal * (mine + its) + s * absolute(normal) * (mine - its));
  }
  /// y_c += <values, v_c> on the face.
  template <int c, int a>
  [[gnu::always_inline]] static void test_tangential(const ConvectionData& data, int side, int part, const R* values,
                                                     Cells& cells) {
    constexpr int along = stride(c, a);
    const bool upper = side % 2 == 1;
    R sums[trace];
    OnFace<c, a>::test(data.functions, values, sums);
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
  /// y_a += <values, v_a> where the face is an outflow side.
  template <int a>
  [[gnu::always_inline]] static void test_normal(const ConvectionData& data, int side, int part, const R* values,
                                                 const V& open, Cells& cells) {
    R sums[columns];
    OnFace<a, a>::test(data.functions, values, sums);
    V* hats = cells.y[a] + (side % 2 == 1 ? block : 0);
    for (int i = 0; i < columns; ++i) hats[i].part[part] += open.part[part] * sums[i];
  }

  /// On boxes, <u_n {u} + s |u_n| / 2 [u], [v]> of component c on the face `side` of the cells.
  template <int c, int a>
  [[gnu::always_inline]] static void tangential(const ConvectionArguments& arguments, const Batch& batch, int side,
                                                const R (*normal)[face_points], const V& upwind, Cells& cells) {
    const ConvectionData& data = *arguments.data;
    Behind behind;
    behind.find(arguments.u, batch, side, c);
    for (int part = 0; part < V::parts; ++part) {
      R mine[face_points];
      R its[face_points];
      on_both_sides<c, a>(data, cells, behind, side, part, mine, its);
      for (int q = 0; q < face_points; ++q) mine[q] = flux(normal[part][q], upwind.part[part], mine[q], its[q]);
      test_tangential<c, a>(data, side, part, mine, cells);
    }
  }
  /// In parallelepipeds all components are carried together; those of what stands behind sides are 0.
  template <int a>
  static void all_components(const ConvectionArguments& arguments, const Batch& batch, int side,
                             const R (*normal)[face_points], const V& upwind, const V& inner, const V& open,
                             Cells& cells) {
    const ConvectionData& data = *arguments.data;
    const double outward = side % 2 == 1 ? 1.0 : -1.0;
    Behind behind[dim];
    for (int c = 0; c < dim; ++c) {
      if (c != a) behind[c].find(arguments.u, batch, side, c);
    }
    for (int part = 0; part < V::parts; ++part) {
      R mine[dim][face_points];
      R its[dim][face_points];
      for (int q = 0; q < face_points; ++q) {
        mine[a][q] = outward * normal[part][q];
        its[a][q] = inner.part[part] * mine[a][q];
      }
      Base::template for_components<0>([&]<int c>() {
        if constexpr (c != a) on_both_sides<c, a>(data, cells, behind[c], side, part, mine[c], its[c]);
      });
      for (int q = 0; q < face_points; ++q) {
        R here[dim];
        R there[dim];
        for (int c = 0; c < dim; ++c) {
          here[c] = mine[c][q];
          there[c] = its[c][q];
        }
        for (int c = 0; c < dim; ++c) {
          mine[c][q] = flux(normal[part][q], upwind.part[part], carried(data, c, here), carried(data, c, there));
        }
      }
      Base::template for_components<0>([&]<int c>() {
        if constexpr (c != a) test_tangential<c, a>(data, side, part, mine[c], cells);
      });
      if (batch.boundary[side]) test_normal<a>(data, side, part, mine[a], open, cells);
    }
  }
  /// On boxes, <max(u_n, 0) u_n, v_n> on outflow sides; u_n is outward.
  template <int a>
  static void normal_on_sides(const ConvectionData& data, int side, const R (*normal)[face_points], const V& open,
                              Cells& cells) {
    const double outward = side % 2 == 1 ? 1.0 : -1.0;
    for (int part = 0; part < V::parts; ++part) {
      R leaving[face_points];
      for (int q = 0; q < face_points; ++q) leaving[q] = outward * (maximum(normal[part][q], R{}) * normal[part][q]);
      test_normal<a>(data, side, part, leaving, open, cells);
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
      V open{};
      [[maybe_unused]] V inner{};
      for (int l = 0; l < width; ++l) {
        const Face face = batch.face(side, l);
        upwind.set(l, face == Face::interior ? arguments.upwind : 1.0);
        open.set(l, face == Face::outflow ? data.scale[a] : 0.0);
        if constexpr (sheared) inner.set(l, face == Face::interior ? 1.0 : 0.0);
      }
      if constexpr (sheared) {
        all_components<a>(arguments, batch, side, normal, upwind, inner, open, cells);
      } else {
        Base::template for_components<0>([&]<int c>() {
          if constexpr (c != a) tangential<c, a>(arguments, batch, side, normal, upwind, cells);
        });
        if (batch.boundary[side]) normal_on_sides<a>(data, side, normal, open, cells);
      }
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

/// Order 0 has no such cells.
template <int dim, int order>
constexpr auto sheared_convection() {
  void (*apply)(ConvectionArguments&) = nullptr;
  if constexpr (order > 0) apply = &ConvectiveTerm<dim, order, true>::apply;
  return apply;
}

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
