#pragma once
/// \file
/// Velocities at Gauss points of cells and of their faces, and tests against all functions there, by sum
/// factorisation. Lanes are cells.

#include "engine/cpu/kernels/operator.hpp"
#include "engine/point_tables.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

/// With m points per direction.
template <int dim, int order, int m>
struct PointFunctions {
  static constexpr int n = order + 1;
  static constexpr int points = m;
  static constexpr int planes = dim == 3 ? points : 1;
  static constexpr int block = power(n, dim);
  static constexpr int columns = power(n, dim - 1);
  static constexpr int rows = block + columns;  // of a component, with its upper hats
  static constexpr int record = record_size(dim, order);
  using V = Simd<double>;
  using R = typename V::Register;
  using Batch = CellBatch<dim, record>;

  /// Functions of component c in direction a.
  static constexpr int size(int c, int a) { return a >= dim ? 1 : a == c ? n + 1 : n; }
  static constexpr int stride(int c, int a) { return a >= dim ? 0 : velocity_stride(dim, order, c, a); }

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

  /// The table for direction t of functions of component c, with a derivative in direction d.
  template <int c, int d, int t>
  [[gnu::always_inline]] static auto table(const PointTables& data) {
    return t == d ? data.slope[c == t] : data.value[c == t];
  }
  template <int c, int d, int t>
  [[gnu::always_inline]] static auto test_table(const PointTables& data) {
    return t == d ? data.test_slope[c == t] : data.test_value[c == t];
  }
  static constexpr int none = -1;

  template <int c, class Visit>
  [[gnu::always_inline]] static void for_components(const Visit& visit) {
    if constexpr (c < dim) {
      visit.template operator()<c>();
      for_components<c + 1>(visit);
    }
  }

  // Inside ------------------------------------------------------------------------------------------------------------

  /// Values of component c, or its derivative in direction d, at the points of a plane, x fastest.
  template <int c, int d = none>
  [[gnu::always_inline]] static void values_on_plane(const PointTables& data, const V* u, int part, int plane,
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
          const double* factors = table<c, d, 2>(data)[plane];
          sum = factors[0] * sum;
#pragma GCC unroll 16
          for (int l = 1; l < nz; ++l) sum += factors[l] * from[l * stride(c, 2)].part[part];
        }
        coefficients[i + nx * j] = sum;
      }
    }
    R half[nx * points];
    for (int i = 0; i < nx; ++i) to_points<ny, points>(table<c, d, 1>(data), coefficients + i, nx, half + i, nx);
    for (int q = 0; q < points; ++q)
      to_points<nx, points>(table<c, d, 0>(data), half + nx * q, 1, values + points * q, 1);
  }

  /// y_c += sum_a (flux(a, q), d_a v_c) over the points q of a plane.
  template <int c, class Flux>
  [[gnu::always_inline]] static void test_plane(const PointTables& data, const Flux& flux, int part, int plane, V* y) {
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
        for (int r = 0; r < points; ++r) product[a][r] = flux(a, q + points * r);
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
        for (int i = 0; i < nx; ++i) to[i * stride(c, 0)].part[part] += flat[i];
      } else {
        R steep[nx];
        from_points<points, nx, false>(data.test_value[c == 0], in_z + j, ny, steep, 1);
        const double* value = data.test_value[c == 2][plane];
        const double* slope = data.test_slope[c == 2][plane];
        for (int i = 0; i < nx; ++i) {
#pragma GCC unroll 16
          for (int l = 0; l < nz; ++l) {
            to[i * stride(c, 0) + l * stride(c, 2)].part[part] += value[l] * flat[i] + slope[l] * steep[i];
          }
        }
      }
    }
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

    /// With a derivative in direction d, or none.
    template <int d = none>
    [[gnu::always_inline]] static void evaluate(const PointTables& data, const R* coefficients, R* values) {
      R half[points * second_size];
      for (int j = 0; j < second_size; ++j) {
        to_points<first_size, points>(table<c, d, first>(data), coefficients + j * second_stride, first_stride,
                                      dim == 3 ? half + j * points : values, 1);
      }
      if constexpr (dim == 3) {
        for (int q = 0; q < points; ++q) {
          to_points<second_size, points>(table<c, d, second>(data), half + q, points, values + q, points);
        }
      }
    }
    template <int d = none>
    [[gnu::always_inline]] static void test(const PointTables& data, const R* values, R* sums) {
      R half[points * second_size];
      if constexpr (dim == 3) {
        for (int q = 0; q < points; ++q) {
          from_points<points, second_size, false>(test_table<c, d, second>(data), values + q, points, half + q, points);
        }
      }
      for (int j = 0; j < second_size; ++j) {
        from_points<points, first_size, false>(test_table<c, d, first>(data), dim == 3 ? half + j * points : values, 1,
                                               sums + j * second_stride, first_stride);
      }
    }
  };

  /// What stands behind a face, or its zeros behind a side: of a component the lines and their upper hats.
  struct Behind {
    alignas(SOLENOID_SIMD_BYTES) double scratch[rows * interleave];
    const double* piece[2];

    void find(const double* x, const Batch& batch, int side, int c) {
      piece[0] = batch.behind[side].template view<block>(x, c * block, scratch);
      piece[1] = batch.hats_behind(side, c).template view<columns>(x, c * block, scratch + block * interleave);
    }
    [[gnu::always_inline]] [[nodiscard]] R at(int i, int part) const {
      const double* from = i < block ? piece[0] + i * interleave : piece[1] + (i - block) * interleave;
      return *reinterpret_cast<const typename V::Unaligned*>(from + part * V::lanes);
    }
  };

  /// Traces of a component on the upper or lower end of its lines in a direction with stride `along`.
  template <int along, class Get>
  [[gnu::always_inline]] static void trace_of(const double* end, bool upper, const Get& get, R* out) {
    for (int line = 0; line < trace; ++line) {
      const int start = line / along * along * n + line % along;
      R even{};
      R odd{};
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) (j % 2 == 0 ? even : odd) += end[j] * get(start + j * along);
      out[line] = upper ? even + odd : even - odd;
    }
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
