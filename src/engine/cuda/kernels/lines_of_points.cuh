#pragma once
/// \file
/// Velocities and their gradients at the Gauss points of cells by sum factorisation: functions of x of a component,
/// along z and y to points, wait as lines of points along x for what is done there.

#include <algorithm>

#include "engine/cuda/kernels/shape.cuh"
#include "engine/point_tables.hpp"

namespace solenoid::cuda {

/// What of PointTables one order needs, for so many points.
template <int order, int points>
struct FunctionsAtPoints {
  static constexpr int n = order + 1;

  double value[2][points][n + 1];
  double slope[2][points][n + 1];
  double weight[points];

  explicit FunctionsAtPoints(const PointTables& from) {
    for (int p = 0; p < 2; ++p) {
      for (int q = 0; q < points; ++q) {
        for (int i = 0; i <= n; ++i) {
          value[p][q][i] = from.value[p][q][i];
          slope[p][q][i] = from.slope[p][q][i];
        }
      }
    }
    for (int q = 0; q < points; ++q) weight[q] = from.weight[q];
  }
};

/// Sizes, and what the lines of a cell are made of.
template <int dim, int order, int points_>
struct LinesOfPoints {
  static constexpr int n = order + 1;
  static constexpr int points = points_;
  static constexpr int lines = power(points, dim - 1);  // along x
  static constexpr int block = power(n, dim);

  /// Functions of component c in direction a.
  static constexpr int size(int c, int a) { return a >= dim ? 1 : a == c ? n + 1 : n; }
  /// True for functions of P.
  static constexpr int space(int c, int a) { return c == a ? 1 : 0; }
  /// Place of a component among the functions of x of all.
  static constexpr int first(int c) { return c == 0 ? 0 : 1 + c * n; }
  static constexpr int functions = first(dim);
  /// [direction][function][line]: the values of what is to be differentiated in each direction, derivatives in y and z
  /// taken.
  static constexpr int place(int direction, int function, int line) {
    return (direction * functions + function) * lines + line;
  }
  static constexpr int numbers = dim * functions * lines;

  static constexpr int columns = power(n, dim - 1);
  static constexpr int rows = block + columns;  // of a component, with its upper hats
  // On a face across a the first direction is a + 1, and so is its first tangential component; the second ones a + 2.
  static constexpr int tangential = dim - 1;
  static constexpr int second_points = dim == 3 ? points : 1;
  static constexpr int traces = (n + 1) + (dim == 3 ? n : 0);  // functions of the first direction, of all components
  static constexpr int trace(int t) { return t * (n + 1); }

  /// Turns of a loop that are unrolled where nothing in registers is indexed by its counter: all, but for high orders,
  /// which spill anyway and took minutes to compile.
  static constexpr int turns = order < 4 ? 16 : 1;

  /// visit(component, its function of x) for one of the functions of x.
  template <class F>
  __device__ static void with_component(int function, const F& visit) {
    with_constant<dim>(function < first(1)   ? 0
                       : function < first(2) ? 1
                                             : 2,
                       [&](auto c) { visit(c, function - first(c)); });
  }

  /// Place of a coefficient among those of component c of a cell, of which the upper hats come last.
  template <int c>
  __device__ static int place_in_component(const int (&index)[3]) {
    int place = 0;
#pragma unroll
    for (int a = 0; a < dim; ++a) place += index[a] * velocity_stride(dim, order, c, a);
    return place;
  }
  /// A coefficient of component c of the cell `record`, whose upper hats lie in `above`.
  template <int c>
  __device__ static double coefficient(const double* x, std::int32_t record, std::int32_t above,
                                       const int (&index)[3]) {
    const bool upper = index[c] == n;
    const int place = c * block + place_in_component<c>(index) - (upper ? block : 0);
    return __ldg(x + Shape<dim, order>::offset(upper ? above : record) + place * interleave);
  }

  /// put(direction, line, value) for function i of x of component c of a cell.
  template <int c, class Put>
  __device__ static void to_lines(const FunctionsAtPoints<order, points>& tables, const double* x, std::int32_t record,
                                  std::int32_t above, int i, const Put& put) {
    constexpr int ny = size(c, 1);
    constexpr int nz = size(c, 2);
    double u[ny][nz];
    unrolled<ny, nz>([&](int j, int l) { u[j][l] = coefficient<c>(x, record, above, {i, j, l}); });
#pragma unroll turns
    for (int qz = 0; qz < (dim == 3 ? points : 1); ++qz) {
      double value[ny];
      double slope[ny];
#pragma unroll
      for (int j = 0; j < ny; ++j) {
        value[j] = dim == 3 ? 0.0 : u[j][0];
        slope[j] = 0.0;
#pragma unroll
        for (int l = 0; l < nz; ++l) {
          if (dim < 3) continue;
          value[j] += tables.value[space(c, 2)][qz][l] * u[j][l];
          slope[j] += tables.slope[space(c, 2)][qz][l] * u[j][l];
        }
      }
#pragma unroll turns
      for (int qy = 0; qy < points; ++qy) {
        double of_x = 0.0;
        double of_y = 0.0;
        double of_z = 0.0;
#pragma unroll
        for (int j = 0; j < ny; ++j) {
          of_x += tables.value[space(c, 1)][qy][j] * value[j];
          of_y += tables.slope[space(c, 1)][qy][j] * value[j];
          of_z += tables.value[space(c, 1)][qy][j] * slope[j];
        }
        const int line = qy + points * qz;
        put(0, line, of_x);
        put(1, line, of_y);
        if constexpr (dim == 3) put(2, line, of_z);
      }
    }
  }

  /// The transpose of to_lines(), of get(direction, line): coefficients y[j][l].
  template <int c, class Get>
  __device__ static void from_lines(const FunctionsAtPoints<order, points>& tables, const Get& get,
                                    double (&y)[n * (n + 1)]) {
    constexpr int ny = size(c, 1);
    constexpr int nz = size(c, 2);
    unrolled<ny, nz>([&](int j, int l) { y[j * nz + l] = 0.0; });
#pragma unroll turns
    for (int qz = 0; qz < (dim == 3 ? points : 1); ++qz) {
      double value[ny];
      double slope[ny];
#pragma unroll
      for (int j = 0; j < ny; ++j) value[j] = slope[j] = 0.0;
#pragma unroll turns
      for (int qy = 0; qy < points; ++qy) {
        const int line = qy + points * qz;
        const double of_x = get(0, line);
        const double of_y = get(1, line);
        const double of_z = dim == 3 ? get(dim - 1, line) : 0.0;
#pragma unroll
        for (int j = 0; j < ny; ++j) {
          value[j] += tables.value[space(c, 1)][qy][j] * of_x + tables.slope[space(c, 1)][qy][j] * of_y;
          slope[j] += tables.value[space(c, 1)][qy][j] * of_z;
        }
      }
      unrolled<ny, nz>([&](int j, int l) {
        if constexpr (dim == 3) {
          y[j * nz + l] += tables.value[space(c, 2)][qz][l] * value[j] + tables.slope[space(c, 2)][qz][l] * slope[j];
        } else {
          y[j * nz + l] += value[j];
        }
      });
    }
  }
};

/// Teams of threads for kernels that keep so many numbers of a cell in shared memory: a thread block takes `lanes`
/// cells at a time, and a member of a team one line of points or one function of x. A thread wants so many registers.
template <class Lines, int numbers, int registers, int most_resident>
struct TeamsOfLines {
  static constexpr int bytes_of_lane = numbers * static_cast<int>(sizeof(double));
  static constexpr int room = 64 << 10;
  static constexpr int lanes = 32 * bytes_of_lane <= room / 4 ? 32
                               : 16 * bytes_of_lane <= room   ? 16
                               : 8 * bytes_of_lane <= room    ? 8
                                                              : 4;
  static constexpr int shared_bytes = lanes * bytes_of_lane;
  /// Whole warps.
  static constexpr int in_warp = 32 / lanes;
  static constexpr int team = (std::max(Lines::lines, Lines::functions) + in_warp - 1) / in_warp * in_warp;
  static constexpr int threads = lanes * team;
  static constexpr int kept = 2048;  // of a block's shared memory, for sums and by the driver
  static constexpr int resident =
      std::clamp(std::min(static_cast<int>(most_shared_bytes) / (shared_bytes + kept), 65536 / (threads * registers)),
                 1, most_resident);
  static_assert(shared_bytes <= static_cast<int>(most_shared_bytes));
};

}  // namespace solenoid::cuda
