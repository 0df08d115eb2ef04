#pragma once
/// \file
/// The parity smoother where patches are few, and time is that of one thread block: each of `dim` teams has a component
/// in shared memory of its own, the first one the pressure too, and lanes share lines in all directions.

#include "engine/cuda/kernels/smoother/line_batch.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order, int patches_, bool corrects>
struct TeamSmoother : LineBatch<T, dim, order, patches_, false, dim, corrects> {
  using Batch = LineBatch<T, dim, order, patches_, false, dim, corrects>;
  using Batch::arguments, Batch::columns, Batch::ends, Batch::lines, Batch::n, Batch::others, Batch::patches,
      Batch::pressure, Batch::problem, Batch::problems, Batch::row, Batch::shared, Batch::tables, Batch::team,
      Batch::traces, Batch::velocity, Batch::worker, Batch::workers;
  using typename Batch::Frame, typename Batch::Square;

  static constexpr const char* name = patches == 1 ? "teams, one patch" : "teams";

  using Batch::Batch;

  /// The whole transform of a problem's pressure, times a factor, line by line.
  template <bool transposed>
  __device__ void transform_pressure(int of_problem, T* p, T factor) const {
#pragma unroll
    for (int d = 0; d < dim; ++d) {
      const Square square(tables(d, of_problem));
      const int stride = Batch::pressure_stride(d) * patches;
      const int first = Batch::pressure_stride(d == 0 ? 1 : 0) * patches;
      const int second = Batch::pressure_stride(d == 2 ? 1 : 2) * patches;
      for (int l = worker; l < columns; l += workers) {
        Batch::template transform_line<transposed>(square, p + l % n * first + l / n * second, stride, factor);
      }
      factor = T(1);
      __syncwarp();
    }
  }
  /// Tangential transform of rows of a velocity component, and of the row of end hats behind them, in place.
  template <bool transposed>
  __device__ void transform_rows(const Frame& frame, T* f, int rows, T* end_hats) const {
#pragma unroll
    for (int turn = 0; turn < dim - 1; ++turn) {
      const Square square(shared + frame.tables[1 + turn]);
      const int stride = turn == 0 ? patches : n * patches;
      const int other_stride = turn == 0 ? n * patches : patches;
      for (int i = worker; i < rows * others; i += workers) {
        const int r = i / others;
        T* plane = r < n ? f + r * row * patches : end_hats;
        Batch::template transform_line<transposed>(square, plane + i % others * other_stride, stride);
      }
      __syncwarp();
    }
  }
  /// Subtracts from rows of a component what their traces give.
  __device__ void subtract_traces(const T* trace_lines, T* f) const {
    for (int i = worker; i < n * columns; i += workers) {
      const int r = i / columns;
      const int slow = i % columns / n;
      const int fast = i % n;
      const auto trace = [&](int l) { return trace_lines[(r * lines + l) * patches]; };
      T x = f[(r * row + i % columns) * patches];
      x -= arguments.value[fast] * trace(slow);
      x -= arguments.slope[fast] * trace(others + slow);
      if constexpr (dim == 3) {
        x -= arguments.value[slow] * trace(2 * others + fast);
        x -= arguments.slope[slow] * trace(3 * others + fast);
      }
      f[(r * row + i % columns) * patches] = x;
    }
    __syncwarp();
  }

  /// f = A^-1 b in the eigenbasis, rhs -= C f.
  __device__ void forward_velocity(const Frame& frame) const {
    const bool with_x = this->looks_around();
    T* const f = velocity(frame.c, frame.parity());
    T* const end_hats = ends(frame.parity());
    T* const trace_lines = traces(frame.parity());
    if (with_x) {
      this->multiply_traces(trace_lines);
      subtract_traces(trace_lines, f);
    }
    transform_rows<true>(frame, f, with_x ? n + 1 : n, end_hats);
    __syncwarp();
    this->forward_lines(frame, f, end_hats);
  }
  /// f and p to modes of component c.
  __device__ void backward_velocity(const Frame& frame) const {
    T* f = velocity(frame.c, frame.parity());
    T known[Batch::rounds][n];
    this->backward_lines(frame, f, known);
    __syncwarp();
    transform_rows<false>(frame, f, n, f);
  }

  __device__ void smooth() const {
    const bool with_x = this->looks_around();
    typename Batch::Around around;
    typename Batch::Values values;
    this->find_cells(around);
    if (team == 0) {
      this->gather_pressure();
    } else {
      for (int i = threadIdx.x % Batch::threads; i < problems * Batch::pressure_field * patches; i += Batch::threads) {
        shared[Batch::pressure_at + i] = T(0);
      }
    }
    if (with_x) this->find_cells_above(around);
    Frame frame = this->first_frame();
    for (int c = 0; c < team; ++c) frame.template rotate<false>();
    this->fetch_velocity(frame, values);
    if (with_x) this->keep_places(around);
    __syncthreads();
    this->spread_velocity(frame, values);
    if (with_x) this->gather_around(frame);
    // rhs = -S_O^T b for the first team, by the other teams' warps that have the least to gather.
    const int pressure_of = (problems - 1 - problem) * (Batch::teams - 1) + team - 1;
    if (team > 0 && pressure_of < problems) {
      transform_pressure<true>(pressure_of, pressure(pressure_of) - team * Batch::team_numbers, T(-1));
    }
    __syncthreads();
    forward_velocity(frame);
    __syncthreads();
    if constexpr (Batch::block <= largest_plain_schur) {
      this->schur().solve_plain(pressure(problem), Batch::pressure_place);
    } else {
      this->schur().solve_tiles(shared + Batch::pressure_at + problem * (Batch::pressure_field * patches),
                                Batch::pressure_place);
    }
    backward_velocity(frame);
    if (team == 0) transform_pressure<false>(problem, pressure(problem), T(1));
    const T mean = team == 0 ? this->mean_pressure() : T(0);
    typename Batch::OldVelocity old;
    this->fetch_old(frame, old);
    const T root = this->root();
    this->write_velocity(frame, old, root);
    if (team == 0) {
      typename Batch::OldPressure old_pressure;
      this->fetch_old_pressure(old_pressure);
      this->write_pressure(mean, old_pressure, root);
    }
  }
};

}  // namespace solenoid::cuda
