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
///
/// In cells that are parallelepipeds (problem/affine_map.hpp), with u and v the velocities of the boxes that they are
/// made of, it is the same with (gamma G_aa / J) g [u] for gamma [u] and
///
///     G(u) = g (grad u) G / J, in the stress form and (grad u)^T / J beside it;   S_c(u) = {G_ca(u)}.
///
/// There all components meet all derivatives, on faces that of u_a across them too: of hats of both ends and bubbles.

#include "engine/cpu/kernels/point_functions.hpp"
#include "engine/cpu/kernels/points_table.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <int dim, int order, bool sheared>
struct PointViscosity : PointFunctions<dim, order, viscosity_points(order)> {
  using Base = PointFunctions<dim, order, viscosity_points(order)>;
  using Base::block, Base::columns, Base::face_points, Base::n, Base::planes, Base::points, Base::rows, Base::trace;
  using Base::stride;
  using typename Base::Batch, typename Base::Behind, typename Base::R, typename Base::V;
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

  /// At point q of a plane, of derivatives on the unit interval: w G(u), to be tested with such derivatives.
  [[gnu::always_inline]] static void weigh(const ViscosityTables& data, bool stress, const R& w,
                                           R (&gradient)[dim][dim][in_plane], int q) {
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
  [[gnu::always_inline]] static void weigh_sheared(const ViscosityTables& data, bool stress, const R& w,
                                                   R (&gradient)[dim][dim][in_plane], int q) {
    const double turned = stress ? data.turned : 0.0;
    R slope[dim][dim];  // [component][direction]
    for (int c = 0; c < dim; ++c) {
      for (int a = 0; a < dim; ++a) slope[c][a] = data.inverse_h[a] * gradient[c][a][q];
    }
    for (int a = 0; a < dim; ++a) {
      R conormal[dim];
      for (int c = 0; c < dim; ++c) conormal[c] = product(data.inverse[a], slope[c]);
      for (int c = 0; c < dim; ++c) {
        gradient[c][a][q] = data.inverse_h[a] * w * (product(data.metric[c], conormal) + turned * slope[a][c]);
      }
    }
  }
  [[gnu::always_inline]] static R product(const double (&row)[3], const R (&x)[dim]) {
    R sum = row[0] * x[0];
    for (int b = 1; b < dim; ++b) sum += row[b] * x[b];
    return sum;
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
        if constexpr (sheared) {
          weigh_sheared(data, stress, w, gradient, q);
        } else {
          weigh(data, stress, w, gradient, q);
        }
      }
      Base::template for_components<0>([&]<int c>() {
        Base::template test_plane<c>(
            data.functions, [&](int a, int q) { return gradient[c][a][q]; }, part, plane, cells.y[c]);
      });
    }
  }

  /// Of component c on the face `side` across a: the jump, out of this cell, and the mean of the slopes, which point
  /// up; in parallelepipeds that of the values, too. `mean`: the share of the cell in means, 1 where nothing is behind.
  template <int c, int a>
  [[gnu::always_inline]] static void traces(const ViscosityTables& data, const Cells& cells, const Behind& behind,
                                            int side, int part, const R& mean, R* jump, R* slope,
                                            [[maybe_unused]] R* middle) {
    constexpr int along = stride(c, a);
    const bool upper = side % 2 == 1;
    const double out = upper ? 1.0 : -1.0;
    const double h_a = data.inverse_h[a];
    const auto mine = [&](int i) { return cells.x[c][i].part[part]; };
    const auto its = [&](int i) { return behind.at(i, part); };
    R its_value[trace];
    R its_slope[trace];
    Base::template trace_of<along>(data.functions.end, upper, mine, jump);
    Base::template trace_of<along>(data.functions.end, !upper, its, its_value);
    Base::template trace_of<along>(data.functions.end_slope, upper, mine, slope);
    Base::template trace_of<along>(data.functions.end_slope, !upper, its, its_slope);
    for (int i = 0; i < trace; ++i) {
      if constexpr (sheared) middle[i] = mean * (jump[i] + its_value[i]);
      jump[i] -= its_value[i];
      slope[i] = out * h_a * mean * (slope[i] - its_slope[i]);
    }
  }
  /// d_b u_a on the unit interval, of the hats on the face `side` across a.
  template <int a, int b>
  [[gnu::always_inline]] static void tilt_of_hats(const ViscosityTables& data, const Cells& cells, int side, int part,
                                                  R* tilt) {
    const V* const hats = cells.x[a] + (side % 2 == 1 ? block : 0);
    R normal[columns];
    for (int i = 0; i < columns; ++i) normal[i] = hats[i].part[part];
    OnFace<a, a>::template evaluate<b>(data.functions, normal, tilt);
  }
  /// y_a += factor <values, d_b v_a>, of these hats.
  template <int a, int b>
  [[gnu::always_inline]] static void test_tilt_of_hats(const ViscosityTables& data, int side, int part, const R& factor,
                                                       const R* values, Cells& cells) {
    R sums[columns];
    OnFace<a, a>::template test<b>(data.functions, values, sums);
    V* const hats = cells.y[a] + (side % 2 == 1 ? block : 0);
    for (int i = 0; i < columns; ++i) hats[i].part[part] += factor * sums[i];
  }
  /// At a point of a face -w [u] in place of [u], out of this cell, and w (gamma [u] - S) in place of S: what slopes
  /// that point up are tested with, and values.
  [[gnu::always_inline]] static void weigh_face(const R& w, const R& gamma, double out, R& jump, R& shear) {
    const R flux = w * (gamma * jump - out * shear);
    jump = -out * w * jump;
    shear = flux;
  }
  /// y_c gets tests of traces: those of values, and those of slopes times a factor.
  template <int c, int a>
  [[gnu::always_inline]] static void add_traces(const ViscosityTables& data, int side, int part, const R* value,
                                                const R& factor, const R* slope, Cells& cells) {
    constexpr int along = stride(c, a);
    const bool upper = side % 2 == 1;
    for (int line = 0; line < trace; ++line) {
      const int start = line / along * along * n + line % along;
      const R of_slope = factor * slope[line];
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        const bool negative = !upper && j % 2 == 1;
        const double end = negative ? -data.functions.end[j] : data.functions.end[j];
        const double end_slope = upper || negative ? data.functions.end_slope[j] : -data.functions.end_slope[j];
        cells.y[c][start + j * along].part[part] += end * value[line] + end_slope * of_slope;
      }
    }
  }

  /// On boxes, of component c on the face `side` across a, and of the hats there. `one_sided`: lanes that have nothing
  /// behind.
  template <int c, int a>
  static void tangential(const PointViscosityArguments& arguments, const Batch& batch, int side, const float* weights,
                         const V& one_sided, Cells& cells) {
    const ViscosityTables& data = *arguments.tables;
    const double out = side % 2 == 1 ? 1.0 : -1.0;
    const double h_a = data.inverse_h[a];
    const double h_c = data.inverse_h[c];
    Behind behind;
    behind.find(arguments.x, batch, side, c);
    for (int part = 0; part < V::parts; ++part) {
      const R mean = 0.5 + 0.5 * one_sided.part[part];
      R value[trace];
      R slope[trace];
      traces<c, a>(data, cells, behind, side, part, mean, value, slope, nullptr);
      R jump[face_points];
      R shear[face_points];  // S_c
      OnFace<c, a>::evaluate(data.functions, value, jump);
      OnFace<c, a>::evaluate(data.functions, slope, shear);
      if (arguments.stress) {
        R tilt[face_points];
        tilt_of_hats<a, c>(data, cells, side, part, tilt);
        for (int q = 0; q < face_points; ++q) shear[q] += h_c * tilt[q];
      }
      const R gamma = 2.0 * data.penalty * h_a * mean;
      for (int q = 0; q < face_points; ++q) {
        weigh_face(h_a * weight(weights, q, part), gamma, out, jump[q], shear[q]);
      }
      // Tests of v_c, of d_a v_c and of d_c v_a.
      OnFace<c, a>::test(data.functions, shear, value);
      OnFace<c, a>::test(data.functions, jump, slope);
      add_traces<c, a>(data, side, part, value, h_a * mean, slope, cells);
      if (arguments.stress) test_tilt_of_hats<a, c>(data, side, part, h_c * mean, jump, cells);
    }
  }

  /// Of u_a on the face `side` across a: the mean slope of hats of both ends and bubbles.
  template <int a>
  [[gnu::always_inline]] static void slope_across(const ViscosityTables& data, const Cells& cells, const Behind& behind,
                                                  int side, int part, const R& mean, R* slope) {
    const double* const my_end = data.functions.parallel_end_slope[side % 2];
    const double* const its_end = data.functions.parallel_end_slope[1 - side % 2];
    for (int i = 0; i < columns; ++i) {
      R mine{};
      R its{};
#pragma GCC unroll 16
      for (int j = 0; j <= n; ++j) {
        mine += my_end[j] * cells.x[a][i + j * columns].part[part];
        its += its_end[j] * behind.at(i + j * columns, part);
      }
      slope[i] = data.inverse_h[a] * (mean * mine + (1.0 - mean) * its);  // behind an upper side are its own hats
    }
  }
  /// y_a += factor <values, d_a v_a>
  template <int a>
  [[gnu::always_inline]] static void test_slope_across(const ViscosityTables& data, int side, int part, const R& factor,
                                                       const R* values, Cells& cells) {
    const double* const end = data.functions.parallel_end_slope[side % 2];
    R sums[columns];
    OnFace<a, a>::test(data.functions, values, sums);
    for (int i = 0; i < columns; ++i) {
      const R sum = factor * sums[i];
#pragma GCC unroll 16
      for (int j = 0; j <= n; ++j) cells.y[a][i + j * columns].part[part] += end[j] * sum;
    }
  }

  /// In parallelepipeds, at the points of a face across a: what the components are and then, with s = g [u], what is
  /// tested. [u_a] and S_a are not there.
  struct AtPoints {
    R jump[dim][face_points];      // [u_c]; -w s_c, with {sum_b G_ab d_b v_c} / J
    R conormal[dim][face_points];  // {sum_b G_ab d_b u_c} / J; w (gamma s_c - S_c), with [v_c]
    R tilt[dim][face_points];      // d_b u_a, b != a; in the stress form -w [u_b] / J, with d_b v_a
  };

  template <int c, int a>
  [[gnu::always_inline]] static void evaluate_tangential(const ViscosityTables& data, const Cells& cells,
                                                         const Behind& behind, int side, int part, const R& mean,
                                                         AtPoints& on_face) {
    R value[trace];
    R slope[trace];
    R middle[trace];
    traces<c, a>(data, cells, behind, side, part, mean, value, slope, middle);
    OnFace<c, a>::evaluate(data.functions, value, on_face.jump[c]);
    OnFace<c, a>::evaluate(data.functions, slope, on_face.conormal[c]);
    for (R& x : on_face.conormal[c]) x *= data.inverse[a][a];
    for_tangents<a>([&]<int b>() {
      const double factor = data.inverse[a][b] * data.inverse_h[b];
      R tangent[Base::face_points];
      OnFace<c, a>::template evaluate<b>(data.functions, middle, tangent);
      for (int q = 0; q < Base::face_points; ++q) on_face.conormal[c][q] += factor * tangent[q];
    });
  }
  template <int a>
  [[gnu::always_inline]] static void evaluate_normal(const ViscosityTables& data, const Cells& cells,
                                                     const Behind& behind, int side, int part, const R& mean,
                                                     AtPoints& on_face) {
    R slope[columns];
    slope_across<a>(data, cells, behind, side, part, mean, slope);
    OnFace<a, a>::evaluate(data.functions, slope, on_face.conormal[a]);
    for (R& x : on_face.conormal[a]) x *= data.inverse[a][a];
    for_tangents<a>([&]<int b>() {
      tilt_of_hats<a, b>(data, cells, side, part, on_face.tilt[b]);
      for (int q = 0; q < Base::face_points; ++q) {
        on_face.tilt[b][q] *= data.inverse_h[b];
        on_face.conormal[a][q] += data.inverse[a][b] * on_face.tilt[b][q];
      }
    });
  }
  template <int a>
  [[gnu::always_inline]] static void weigh_sheared_face(const PointViscosityArguments& arguments, int side,
                                                        const float* weights, int part, const R& mean,
                                                        AtPoints& on_face) {
    const ViscosityTables& data = *arguments.tables;
    const double out = side % 2 == 1 ? 1.0 : -1.0;
    const double h_a = data.inverse_h[a];
    const double turned = arguments.stress ? data.turned : 0.0;
    const R gamma = 2.0 * data.penalty * h_a * data.inverse[a][a] * mean;
    for (int q = 0; q < face_points; ++q) {
      const R w = h_a * weight(weights, q, part);
      R jump[dim];
      R conormal[dim];
      for (int c = 0; c < dim; ++c) {
        jump[c] = c == a ? R{} : on_face.jump[c][q];
        conormal[c] = on_face.conormal[c][q];
      }
      for (int c = 0; c < dim; ++c) {
        R lowered = product(data.metric[c], jump);
        R shear = product(data.metric[c], conormal);
        if (c != a) {
          shear += turned * on_face.tilt[c][q];
          on_face.tilt[c][q] = -out * turned * w * jump[c];
        }
        weigh_face(w, gamma, out, lowered, shear);
        on_face.jump[c][q] = lowered;
        on_face.conormal[c][q] = shear;
      }
    }
  }
  template <int c, int a>
  [[gnu::always_inline]] static void test_tangential(const ViscosityTables& data, int side, int part, const R& mean,
                                                     const AtPoints& on_face, Cells& cells) {
    R value[trace];
    R slope[trace];
    OnFace<c, a>::test(data.functions, on_face.conormal[c], value);
    OnFace<c, a>::test(data.functions, on_face.jump[c], slope);
    for_tangents<a>([&]<int b>() {
      const R factor = data.inverse[a][b] * data.inverse_h[b] * mean;
      R tangent[Base::trace];
      OnFace<c, a>::template test<b>(data.functions, on_face.jump[c], tangent);
      for (int i = 0; i < Base::trace; ++i) value[i] += factor * tangent[i];
    });
    add_traces<c, a>(data, side, part, value, data.inverse[a][a] * data.inverse_h[a] * mean, slope, cells);
  }
  template <int a>
  [[gnu::always_inline]] static void test_normal(const ViscosityTables& data, int side, int part, const R& mean,
                                                 AtPoints& on_face, Cells& cells) {
    test_slope_across<a>(data, side, part, data.inverse[a][a] * data.inverse_h[a] * mean, on_face.jump[a], cells);
    for_tangents<a>([&]<int b>() {
      R* const values = on_face.tilt[b];
      for (int q = 0; q < Base::face_points; ++q) values[q] += data.inverse[a][b] * on_face.jump[a][q];
      test_tilt_of_hats<a, b>(data, side, part, data.inverse_h[b] * mean, values, cells);
    });
  }

  /// In parallelepipeds, of all components on the face `side` across a.
  template <int a>
  static void all_components(const PointViscosityArguments& arguments, const Batch& batch, int side,
                             const float* weights, const V& one_sided, Cells& cells) {
    const ViscosityTables& data = *arguments.tables;
    Behind behind[dim];
    for (int c = 0; c < dim; ++c) behind[c].find(arguments.x, batch, side, c);
    for (int part = 0; part < V::parts; ++part) {
      const R mean = 0.5 + 0.5 * one_sided.part[part];
      AtPoints on_face;
      evaluate_normal<a>(data, cells, behind[a], side, part, mean, on_face);
      for_tangents<a>([&]<int c>() { evaluate_tangential<c, a>(data, cells, behind[c], side, part, mean, on_face); });
      weigh_sheared_face<a>(arguments, side, weights, part, mean, on_face);
      test_normal<a>(data, side, part, mean, on_face, cells);
      for_tangents<a>([&]<int c>() { test_tangential<c, a>(data, side, part, mean, on_face, cells); });
    }
  }
  /// visit<b>() for the directions in a face across a.
  template <int a, class Visit>
  [[gnu::always_inline]] static void for_tangents(const Visit& visit) {
    Base::template for_components<0>([&]<int b>() {
      if constexpr (b != a) visit.template operator()<b>();
    });
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
      if constexpr (sheared) {
        all_components<a>(arguments, batch, side, of_face, one_sided, cells);
      } else {
        for_tangents<a>([&]<int c>() { tangential<c, a>(arguments, batch, side, of_face, one_sided, cells); });
      }
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

/// Order 0 has no such cells.
template <int dim, int order>
constexpr auto sheared_point_viscosity() {
  void (*add)(const PointViscosityArguments&) = nullptr;
  if constexpr (order > 0) add = &PointViscosity<dim, order, true>::add;
  return add;
}

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
