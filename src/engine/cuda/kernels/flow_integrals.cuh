#pragma once
/// \file
/// Energy, enstrophy and the like of a flow: sums over all cells of products of the velocity and its gradient at
/// k + 2 Gauss points per direction, and the largest speed and divergence there.
///
/// A thread block goes through its share of the cells, `lanes` side by side at a time; a thread has a lane and is a
/// member of the team. A function of x of a component goes along z and y to points, into shared memory,
/// [direction][function][line][lane] (lines_of_points.cuh); then a member takes a line of points along x, and keeps
/// its sums in registers until all cells are done.
///
/// Traffic per unknown: DRAM 6 bytes (2D: 5.3; nothing of pressures), and 24 bytes a cell for its place and the cells
/// above.

#include "engine/cuda/kernels/block_sum.cuh"
#include "engine/cuda/kernels/flow_at_points.cuh"
#include "engine/cuda/kernels/flow_integrals.hpp"
#include "engine/cuda/kernels/lines_of_points.cuh"
#include "engine/cuda/kernels/point_values.cuh"

namespace solenoid::cuda {

template <int dim, int order>
struct FlowIntegralsLayout
    : LinesOfPoints<dim, order, flow_points(order)>,
      TeamsOfLines<LinesOfPoints<dim, order, flow_points(order)>,
                   LinesOfPoints<dim, order, flow_points(order)>::numbers, order <= 1 ? 80 : 128, most_flow_blocks> {};

__device__ inline double larger_or_nan(double a, double b) { return b > a || isnan(b) ? b : a; }

template <int dim, int order>
class FlowIntegralsBlock {
  using L = FlowIntegralsLayout<dim, order>;
  using Tables = FunctionsAtPoints<order, L::points>;

 public:
  __device__ FlowIntegralsBlock(const Tables& tables, const FlowIntegralsArguments& flow, double* shared)
      : tables_(tables), flow_(flow), shared_(shared + threadIdx.x) {}

  /// The sums of this thread.
  __device__ FlowPartial sums() {
    const std::int64_t step = std::int64_t{gridDim.x} * L::lanes;
    for (std::int64_t first = std::int64_t{blockIdx.x} * L::lanes; first < flow_.cells; first += step) {
      const auto cell = static_cast<std::int32_t>(first + threadIdx.x);
      const bool is_cell = cell < flow_.cells;
      __syncthreads();  // lines are read no more
      if (is_cell) {
        for_jobs<L::functions>([&](int job) { L::with_component(job, [&](auto c, int i) { to_points<c>(cell, i); }); });
      }
      __syncthreads();
      if (!is_cell) continue;
      const CellWidths<dim> widths(flow_.places, cell);
      for_jobs<L::lines>([&](int line) { add_line(widths, cell, line); });
    }
    return own_;
  }

 private:
  template <int count, class F>
  __device__ static void for_jobs(const F& visit) {
    for_jobs_of_member<count, L::team>(static_cast<int>(threadIdx.y), visit);
  }
  __device__ double& buffer(int place) const { return shared_[place * L::lanes]; }

  template <int c>
  __device__ void to_points(std::int32_t cell, int i) const {
    const int function = L::first(c) + i;
    L::template to_lines<c>(
        tables_, flow_.x, cell, __ldg(flow_.upper[c] + cell), i,
        [&](int direction, int line, double value) { buffer(L::place(direction, function, line)) = value; });
  }

  /// Values here are sqrt(volume) times those of the flow.
  __device__ void add_line(const CellWidths<dim>& widths, std::int32_t cell, int line) {
    const double of_line = tables_.weight[line % L::points] * (dim == 3 ? tables_.weight[line / L::points] : 1.0);
    const double inverse_volume = 1.0 / widths.volume;
    const double root = sqrt(widths.volume);
#pragma unroll 1
    for (int q = 0; q < L::points; ++q) {
      const double w = of_line * tables_.weight[q];
      double u[dim]{};
      double g[dim][dim]{};  // [component][direction]
      unrolled<dim>([&](int c) {
#pragma unroll
        for (int i = 0; i < L::size(c, 0); ++i) {
          const double along_x = buffer(L::place(0, L::first(c) + i, line));
          const double value = tables_.value[L::space(c, 0)][q][i];
          u[c] += value * along_x;
          g[c][0] += tables_.slope[L::space(c, 0)][q][i] * along_x;
#pragma unroll
          for (int a = 1; a < dim; ++a) g[c][a] += value * buffer(L::place(a, L::first(c) + i, line));
        }
#pragma unroll
        for (int a = 0; a < dim; ++a) g[c][a] *= widths.inverse[a];
      });
      if (flow_.map.sheared) take_image(flow_.map, u, g);
      if (flow_.viscosity.number != 0.0) {
        own_.dissipation +=
            w * viscosity_at(flow_.viscosity, cell, line * L::points + q) * dissipation_of(flow_.stress_form, g);
      }
      double square = 0.0;
      double divergence = 0.0;
      double gradient = 0.0;
      double vorticity = 0.0;
      unrolled<dim>([&](int c) {
        square += u[c] * u[c];
        divergence += g[c][c];
        own_.velocity[c] += w * root * u[c];
#pragma unroll
        for (int a = 0; a < dim; ++a) {
          gradient += g[c][a] * g[c][a];
          const double rotation = g[c][a] - g[a][c];
          if (a > c) vorticity += rotation * rotation;
        }
      });
      own_.velocity_square += w * square;
      own_.gradient_square += w * gradient;
      own_.vorticity_square += w * vorticity;
      own_.speed_square = larger_or_nan(own_.speed_square, square * inverse_volume);
      own_.divergence = larger_or_nan(own_.divergence, fabs(divergence) / root);
    }
  }

  const Tables& tables_;
  const FlowIntegralsArguments& flow_;
  double* const shared_;
  FlowPartial own_{};
};

template <int dim, int order>
__global__ void __launch_bounds__(FlowIntegralsLayout<dim, order>::threads, FlowIntegralsLayout<dim, order>::resident)
    integrate_flow_cells(const __grid_constant__ FunctionsAtPoints<order, flow_points(order)> tables,
                         const __grid_constant__ FlowIntegralsArguments flow) {
  extern __shared__ __align__(16) unsigned char memory[];
  wait_for_earlier_kernels();
  constexpr int threads = FlowIntegralsLayout<dim, order>::threads;
  const FlowPartial own = FlowIntegralsBlock<dim, order>(tables, flow, reinterpret_cast<double*>(memory)).sums();
  FlowPartial all{};
  for (int c = 0; c < dim; ++c) all.velocity[c] = block_sum<threads>(own.velocity[c]);
  all.velocity_square = block_sum<threads>(own.velocity_square);
  all.gradient_square = block_sum<threads>(own.gradient_square);
  all.vorticity_square = block_sum<threads>(own.vorticity_square);
  all.dissipation = block_sum<threads>(own.dissipation);
  all.speed_square = block_join<threads>(own.speed_square, larger_or_nan);
  all.divergence = block_join<threads>(own.divergence, larger_or_nan);
  if (threadIdx.x == 0 && threadIdx.y == 0) flow.partials[blockIdx.x] = all;
}

template <int dim, int order>
int integrate_flow(const FlowIntegralsArguments& arguments, Stream stream) {
  using L = FlowIntegralsLayout<dim, order>;
  const FunctionsAtPoints<order, flow_points(order)> tables(*arguments.tables);
  const int blocks = L::resident * arguments.multiprocessors;
  launch("integrate flow", integrate_flow_cells<dim, order>, blocks, dim3(L::lanes, L::team), L::shared_bytes, stream,
         tables, arguments);
  return blocks;
}

}  // namespace solenoid::cuda
