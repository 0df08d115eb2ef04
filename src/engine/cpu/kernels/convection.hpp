#pragma once
/// \file
/// The convective term, cell by cell. Lanes are cells.
///
/// Inside, plane by plane across the last direction: coefficients to points (last direction, then y, then x), products
/// u_a u_c, and back (y, x, last direction), so that of the points only those of a plane are there at a time. Every
/// face is computed by both of its cells, from the same numbers. A cell has the rows of its bubbles and a share of
/// either hat; that of the upper hat is left for the cell above. Traffic: u and y once each, hats once more.

#include "engine/cpu/kernels/convection_table.hpp"
#include "engine/cpu/kernels/operator.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <int dim, int order>
struct ConvectiveTerm {
  static constexpr int n = order + 1;
  static constexpr int points = convection_points(order);
  static constexpr int planes = dim == 3 ? points : 1;
  static constexpr int block = power(n, dim);
  static constexpr int columns = power(n, dim - 1);
  static constexpr int rows = block + columns;  // of a component, with its upper hats
  static constexpr int record = record_size(dim, order);
  using V = Simd<double>;
  using R = typename V::Register;
  using Batch = CellBatch<dim, record>;
  using Tables = const double (*)[ConvectionData::max_points][max_n + 1];

  /// Functions of component c in direction a.
  static constexpr int size(int c, int a) { return a >= dim ? 1 : a == c ? n + 1 : n; }
  static constexpr int stride(int c, int a) { return a >= dim ? 0 : velocity_stride(dim, order, c, a); }

  struct Cells {
    V u[dim][rows];
    V y[dim][rows];
  };

  /// out[j] = sum_i table[j][i] in[i] for lines: j < to, i < from.
  template <int from, int to>
  [[gnu::always_inline]] static void to_points(const double (*table)[max_n + 1], const R* in, int in_stride, R* out,
                                               int out_stride) {
    R x[from];
#pragma GCC unroll 16
    for (int i = 0; i < from; ++i) x[i] = in[i * in_stride];
#pragma GCC unroll 16
    for (int j = 0; j < to; ++j) {
      R sum = table[j][0] * x[0];
#pragma GCC unroll 16
      for (int i = 1; i < from; ++i) sum += table[j][i] * x[i];
      out[j * out_stride] = sum;
    }
  }
  /// out[i] (+)= sum_j table[j][i] in[j]: i < to, j < from.
  template <int from, int to, bool add>
  [[gnu::always_inline]] static void from_points(const double (*table)[max_n + 1], const R* in, int in_stride, R* out,
                                                 int out_stride) {
    R sum[to];
#pragma GCC unroll 16
    for (int i = 0; i < to; ++i) sum[i] = add ? out[i * out_stride] : R{};
#pragma GCC unroll 16
    for (int j = 0; j < from; ++j) {
      const R x = in[j * in_stride];
#pragma GCC unroll 16
      for (int i = 0; i < to; ++i) sum[i] += table[j][i] * x;
    }
#pragma GCC unroll 16
    for (int i = 0; i < to; ++i) out[i * out_stride] = sum[i];
  }

  [[gnu::always_inline]] static R absolute(const R& x) { return x > 0.0 ? x : -x; }
  [[gnu::always_inline]] static R maximum(const R& x, const R& y) { return x > y ? x : y; }

  // Inside ------------------------------------------------------------------------------------------------------------

  /// Values of component c at the points of a plane, x fastest.
  template <int c>
  [[gnu::always_inline]] static void values_on_plane(const ConvectionData& data, const V* u, int part, int plane,
                                                     R* values) {
    constexpr int nx = size(c, 0);
    constexpr int ny = size(c, 1);
    constexpr int nz = size(c, 2);
    R coefficients[nx * ny];
    for (int j = 0; j < ny; ++j) {
      for (int i = 0; i < nx; ++i) {
        const V* from = u + i * stride(c, 0) + j * stride(c, 1);
        R sum = from[0].part[part];
        if constexpr (dim == 3) {
          const double* factors = data.value[c == 2][plane];
          sum = factors[0] * sum;
#pragma GCC unroll 16
          for (int l = 1; l < nz; ++l) sum += factors[l] * from[l * stride(c, 2)].part[part];
        }
        coefficients[i + nx * j] = sum;
      }
    }
    R half[nx * points];
    for (int i = 0; i < nx; ++i) to_points<ny, points>(data.value[c == 1], coefficients + i, nx, half + i, nx);
    for (int q = 0; q < points; ++q)
      to_points<nx, points>(data.value[c == 0], half + nx * q, 1, values + points * q, 1);
  }

  /// y_c -= sum_a (u_a u_c, d_a v_c) over a plane; scaled[a]: the values of u_a, times the factor of such integrals.
  template <int c>
  [[gnu::always_inline]] static void test_plane(const ConvectionData& data, const R (*scaled)[points * points],
                                                const R* values, int part, int plane, V* y) {
    constexpr int nx = size(c, 0);
    constexpr int ny = size(c, 1);
    constexpr int nz = size(c, 2);
    R in_x[points * ny];  // [point in x][y]: of the terms with a derivative along x, y, z
    R in_y[points * ny];
    [[maybe_unused]] R in_z[points * ny];
    for (int q = 0; q < points; ++q) {
      R product[dim][points];
      for (int a = 0; a < dim; ++a) {
#pragma GCC unroll 16
        for (int r = 0; r < points; ++r) product[a][r] = scaled[a][q + points * r] * values[q + points * r];
      }
      from_points<points, ny, false>(data.test_value[c == 1], product[0], 1, in_x + q * ny, 1);
      from_points<points, ny, false>(data.test_slope[c == 1], product[1], 1, in_y + q * ny, 1);
      if constexpr (dim == 3) from_points<points, ny, false>(data.test_value[c == 1], product[2], 1, in_z + q * ny, 1);
    }
    for (int j = 0; j < ny; ++j) {
      R flat[nx];
      from_points<points, nx, false>(data.test_slope[c == 0], in_x + j, ny, flat, 1);
      from_points<points, nx, true>(data.test_value[c == 0], in_y + j, ny, flat, 1);
      V* to = y + j * stride(c, 1);
      if constexpr (dim == 2) {
        for (int i = 0; i < nx; ++i) to[i * stride(c, 0)].part[part] -= flat[i];
      } else {
        R steep[nx];
        from_points<points, nx, false>(data.test_value[c == 0], in_z + j, ny, steep, 1);
        const double* value = data.test_value[c == 2][plane];
        const double* slope = data.test_slope[c == 2][plane];
        for (int i = 0; i < nx; ++i) {
#pragma GCC unroll 16
          for (int l = 0; l < nz; ++l) {
            to[i * stride(c, 0) + l * stride(c, 2)].part[part] -= value[l] * flat[i] + slope[l] * steep[i];
          }
        }
      }
    }
  }

  template <int c, class Visit>
  [[gnu::always_inline]] static void for_components(const Visit& visit) {
    if constexpr (c < dim) {
      visit.template operator()<c>();
      for_components<c + 1>(visit);
    }
  }

  static R inside(const ConvectionData& data, Cells& cells, int part) {
    R rate{};
    for (int plane = 0; plane < planes; ++plane) {
      R values[dim][points * points];
      R scaled[dim][points * points];
      for_components<0>([&]<int c>() { values_on_plane<c>(data, cells.u[c], part, plane, values[c]); });
      for (int q = 0; q < points * points; ++q) {
        R crossing{};
#pragma GCC unroll 3
        for (int a = 0; a < dim; ++a) {
          scaled[a][q] = data.scale[a] * values[a][q];
          crossing += absolute(scaled[a][q]);
        }
        rate = maximum(rate, crossing);
      }
      for_components<0>([&]<int c>() { test_plane<c>(data, scaled, values[c], part, plane, cells.y[c]); });
    }
    return rate;
  }

  // Faces -------------------------------------------------------------------------------------------------------------

  /// Of a face across a, first that along a + 1, then, in 3D, that along a + 2; the first is faster.
  static constexpr int face_points = power(points, dim - 1);
  static constexpr int trace = (n + 1) * power(n, dim - 2);  // of a component that is tangential to the face

  /// The functions of component c on a face across a: traces count the other tangential direction faster than c, hats
  /// (c = a) their first faster.
  template <int c, int a>
  struct OnFace {
    static constexpr int first = (a + 1) % dim;
    static constexpr int second = dim == 3 ? (a + 2) % dim : dim;
    static constexpr int first_size = size(c, first);
    static constexpr int second_size = size(c, second);
    static constexpr int first_stride = c == a || c != first ? 1 : power(n, dim - 2);
    static constexpr int second_stride = c == a || c == second ? n : 1;

    [[gnu::always_inline]] static void evaluate(const ConvectionData& data, const R* coefficients, R* values) {
      R half[points * second_size];
      for (int j = 0; j < second_size; ++j) {
        to_points<first_size, points>(data.value[c == first], coefficients + j * second_stride, first_stride,
                                      dim == 3 ? half + j * points : values, 1);
      }
      if constexpr (dim == 3) {
        for (int q = 0; q < points; ++q) {
          to_points<second_size, points>(data.value[c == second], half + q, points, values + q, points);
        }
      }
    }
    [[gnu::always_inline]] static void test(const ConvectionData& data, const R* values, R* sums) {
      R half[points * second_size];
      if constexpr (dim == 3) {
        for (int q = 0; q < points; ++q) {
          from_points<points, second_size, false>(data.test_value[c == second], values + q, points, half + q, points);
        }
      }
      for (int j = 0; j < second_size; ++j) {
        from_points<points, first_size, false>(data.test_value[c == first], dim == 3 ? half + j * points : values, 1,
                                               sums + j * second_stride, first_stride);
      }
    }
  };

  /// Traces of a component on the upper or lower end of its lines in a direction with stride `along`.
  template <int along, class Get>
  [[gnu::always_inline]] static void trace_of(const ConvectionData& data, bool upper, const Get& get, R* out) {
    for (int line = 0; line < trace; ++line) {
      const int start = line / along * along * n + line % along;
      R even{};
      R odd{};
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) (j % 2 == 0 ? even : odd) += data.end[j] * get(start + j * along);
      out[line] = upper ? even + odd : even - odd;
    }
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
      trace_of<along>(
          data, upper, [&](int i) { return cells.u[c][i].part[part]; }, mine);
      trace_of<along>(
          data, !upper,
          [&](int i) {
            const double* at = i < block ? piece[0] + i * interleave : piece[1] + (i - block) * interleave;
            return *reinterpret_cast<const typename V::Unaligned*>(at + part * V::lanes);
          },
          its);
      R my_values[face_points];
      R its_values[face_points];
      OnFace<c, a>::evaluate(data, mine, my_values);
      OnFace<c, a>::evaluate(data, its, its_values);
      const R s = upwind.part[part];
      // w: outward. minus is mine, so that [v] = v.
      for (int q = 0; q < face_points; ++q) {
        const R w = normal[part][q];
        my_values[q] = 0.5 * (w * (my_values[q] + its_values[q]) + s * absolute(w) * (my_values[q] - its_values[q]));
      }
      R sums[trace];
      OnFace<c, a>::test(data, my_values, sums);
      for (int line = 0; line < trace; ++line) {
        const int start = line / along * along * n + line % along;
        const R sum = data.scale[a] * sums[line];
#pragma GCC unroll 16
        for (int j = 0; j < n; ++j) {
          cells.y[c][start + j * along].part[part] += (upper || j % 2 == 0 ? data.end[j] : -data.end[j]) * sum;
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
      OnFace<a, a>::test(data, flux, sums);
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
        OnFace<a, a>::evaluate(data, coefficients, normal[part]);
      }
      V upwind{};
      for (int l = 0; l < width; ++l) {
        upwind.set(l, batch.face(side, l) == Face::interior ? arguments.upwind : 1.0);
      }
      for_components<0>([&]<int c>() {
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
      for_components<0>([&]<int a>() { faces_across<a>(arguments, batch, cells); });
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
