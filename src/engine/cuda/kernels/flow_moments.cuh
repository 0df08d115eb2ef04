#pragma once
/// \file
/// Second moments of a flow about its mean, and its dissipation, projected to Q_k (engine/flow_moments.hpp).
///
/// A thread block goes through its share of the cells, `lanes` side by side at a time; a thread has a lane and is a
/// member of the team. Functions of x of u, and of the mean, go along z and y to points, into shared memory,
/// [direction][function][line][lane] (lines_of_points.cuh), those of the mean last. A member takes a line of points
/// along x and projects what it finds there along x; the results of all lines take the place of the functions,
/// [moment][mode][line][lane]. Then a member takes a moment and a mode of x, projects it along y and z, and brings the
/// coefficients of the moment up to date.
///
/// Traffic per unknown in 3D: DRAM 40 bytes (6 of u and of the mean, 14 of moments to read and to write; 2D: 42), and
/// 8 for each number of the viscosity.

#include "engine/cuda/kernels/flow_at_points.cuh"
#include "engine/cuda/kernels/flow_moments.hpp"
#include "engine/cuda/kernels/lines_of_points.cuh"
#include "engine/cuda/kernels/point_values.cuh"

namespace solenoid::cuda {

template <int dim, int order>
struct FlowMomentsLayout : LinesOfPoints<dim, order, moment_points(order)> {
  using Lines = LinesOfPoints<dim, order, moment_points(order)>;
  static constexpr int moments = flow_moments(dim);
  static constexpr int modes = order + 1;
  static constexpr int of_mean = Lines::numbers;
  static constexpr int numbers = of_mean + Lines::functions * Lines::lines;
  static constexpr int result(int moment, int mode, int line) { return (moment * modes + mode) * Lines::lines + line; }
  static_assert(moments * modes * Lines::lines <= numbers);
  using Teams = TeamsOfLines<Lines, numbers, 128, 16>;
};

template <int dim, int order>
class FlowMomentsBlock {
  using L = FlowMomentsLayout<dim, order>;
  using Teams = typename L::Teams;
  using Tables = FunctionsAtPoints<order, L::points>;
  static constexpr int n = L::modes;

 public:
  __device__ FlowMomentsBlock(const Tables& tables, const FlowMomentsArguments& flow, double* shared)
      : tables_(tables), flow_(flow), shared_(shared + threadIdx.x) {}

  __device__ void add() const {
    const std::int64_t step = std::int64_t{gridDim.x} * Teams::lanes;
    for (std::int64_t first = std::int64_t{blockIdx.x} * Teams::lanes; first < flow_.cells; first += step) {
      const auto cell = static_cast<std::int32_t>(first + threadIdx.x);
      const bool is_cell = cell < flow_.cells;
      __syncthreads();  // results are read no more
      if (is_cell) for_jobs<2 * L::functions>([&](int job) { to_points(cell, job); });
      __syncthreads();
      double volume = 0.0;
      double of_line[L::moments][n]{};
      const int line = static_cast<int>(threadIdx.y);
      static_assert(L::lines <= Teams::team);
      if (is_cell && line < L::lines) {
        const CellWidths<dim> widths(flow_.places, cell);
        volume = widths.volume;
        project_line(widths, cell, line, of_line);
      }
      __syncthreads();  // functions are read no more
      if (is_cell && line < L::lines) {
        const double scale = rsqrt(volume);
        unrolled<L::moments, n>([&](int m, int i) { buffer(L::result(m, i, line)) = scale * of_line[m][i]; });
      }
      __syncthreads();
      if (is_cell) for_jobs<L::moments * n>([&](int job) { add_to_moment(cell, job / n, job % n); });
    }
  }

 private:
  template <int count, class F>
  __device__ static void for_jobs(const F& visit) {
    for_jobs_of_member<count, Teams::team>(static_cast<int>(threadIdx.y), visit);
  }
  __device__ double& buffer(int place) const { return shared_[place * Teams::lanes]; }

  /// The functions of x of u, then those of the mean, of which values will do.
  __device__ void to_points(std::int32_t cell, int job) const {
    const bool of_mean = job >= L::functions;
    L::with_component(of_mean ? job - L::functions : job, [&](auto c, int i) {
      const int function = L::first(c) + i;
      const std::int32_t above = __ldg(flow_.upper[c] + cell);
      if (of_mean) {
        L::template to_lines<c>(tables_, flow_.mean, cell, above, i, [&](int direction, int line, double value) {
          if (direction == 0) buffer(L::of_mean + function * L::lines + line) = value;
        });
      } else {
        L::template to_lines<c>(tables_, flow_.flow, cell, above, i, [&](int direction, int line, double value) {
          buffer(L::place(direction, function, line)) = value;
        });
      }
    });
  }

  /// Along x, of the squares of what is sqrt(volume) times the velocity.
  __device__ void project_line(const CellWidths<dim>& widths, std::int32_t cell, int line,
                               double (&of_line)[L::moments][n]) const {
#pragma unroll 1
    for (int q = 0; q < L::points; ++q) {
      double d[dim]{};       // u - U
      double g[dim][dim]{};  // [component][direction]
      unrolled<dim>([&](int c) {
#pragma unroll
        for (int i = 0; i < L::size(c, 0); ++i) {
          const int function = L::first(c) + i;
          const double along_x = buffer(L::place(0, function, line));
          const double value = tables_.value[L::space(c, 0)][q][i];
          d[c] += value * (along_x - buffer(L::of_mean + function * L::lines + line));
          g[c][0] += tables_.slope[L::space(c, 0)][q][i] * along_x;
#pragma unroll
          for (int a = 1; a < dim; ++a) g[c][a] += value * buffer(L::place(a, function, line));
        }
#pragma unroll
        for (int a = 0; a < dim; ++a) g[c][a] *= widths.inverse[a];
      });
      if (flow_.map.sheared) take_image(flow_.map, d, g);
      double squares[L::moments];
      unrolled<dim>([&](int c) {
#pragma unroll
        for (int e = c; e < dim; ++e) squares[stress_index(dim, c, e)] = d[c] * d[e];
      });
      squares[L::moments - 1] =
          viscosity_at(flow_.viscosity, cell, line * L::points + q) * dissipation_of(flow_.stress_form, g);
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const double test = tables_.weight[q] * tables_.value[0][q][i];
#pragma unroll
        for (int m = 0; m < L::moments; ++m) of_line[m][i] += test * squares[m];
      }
    }
  }

  /// Along y and z, for one mode of x.
  __device__ void add_to_moment(std::int32_t cell, int moment, int mode) const {
    constexpr int nz = dim == 3 ? n : 1;
    double coefficient[nz][n]{};
#pragma unroll 1
    for (int qz = 0; qz < (dim == 3 ? L::points : 1); ++qz) {
      double along_y[n]{};
#pragma unroll
      for (int qy = 0; qy < L::points; ++qy) {
        const double value = tables_.weight[qy] * buffer(L::result(moment, mode, qy + L::points * qz));
#pragma unroll
        for (int j = 0; j < n; ++j) along_y[j] += tables_.value[0][qy][j] * value;
      }
#pragma unroll
      for (int l = 0; l < nz; ++l) {
        const double test = dim == 3 ? tables_.weight[qz] * tables_.value[0][qz][l] : 1.0;
#pragma unroll
        for (int j = 0; j < n; ++j) coefficient[l][j] += test * along_y[j];
      }
    }
    double* const own = flow_.moments + moment * flow_.size + record_offset(cell, L::block) + mode * interleave;
    const double r = flow_.part;
    const bool is_mean = moment == L::moments - 1;
    unrolled<nz, n>([&](int l, int j) {
      double& value = own[(n * j + n * n * l) * interleave];
      const double found = coefficient[l][j];
      value = is_mean ? value + r * (found - value) : (1.0 - r) * (value + r * found);
    });
  }

  const Tables& tables_;
  const FlowMomentsArguments& flow_;
  double* const shared_;
};

template <int dim, int order>
__global__ void __launch_bounds__(FlowMomentsLayout<dim, order>::Teams::threads,
                                  FlowMomentsLayout<dim, order>::Teams::resident)
    add_moments_of_cells(const __grid_constant__ FunctionsAtPoints<order, moment_points(order)> tables,
                         const __grid_constant__ FlowMomentsArguments flow) {
  extern __shared__ __align__(16) unsigned char memory[];
  wait_for_earlier_kernels();
  FlowMomentsBlock<dim, order>(tables, flow, reinterpret_cast<double*>(memory)).add();
}

template <int dim, int order>
void add_flow_moments(const FlowMomentsArguments& arguments, Stream stream) {
  using Teams = typename FlowMomentsLayout<dim, order>::Teams;
  const FunctionsAtPoints<order, moment_points(order)> tables(*arguments.tables);
  launch("flow moments", add_moments_of_cells<dim, order>, Teams::resident * arguments.multiprocessors,
         dim3(Teams::lanes, Teams::team), Teams::shared_bytes, stream, tables, arguments);
}

}  // namespace solenoid::cuda
