#pragma once
/// \file
/// The parity smoother for any order: a lane has planes of tangential modes and lines along the component, or, where it
/// is alone with its patch, all of a problem at a time.

#include "engine/cuda/kernels/smoother/line_batch.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order, int patches_, bool resident, bool corrects>
struct LineSmoother : LineBatch<T, dim, order, patches_, resident, 1, corrects> {
  using Batch = LineBatch<T, dim, order, patches_, resident, 1, corrects>;
  using Batch::arguments, Batch::block, Batch::ends, Batch::line_1, Batch::line_2, Batch::lines, Batch::n,
      Batch::others, Batch::patches, Batch::pressure, Batch::problem, Batch::rounds, Batch::row, Batch::shared,
      Batch::tables, Batch::traces, Batch::velocity, Batch::worker, Batch::workers;
  using typename Batch::Frame, typename Batch::LineSolver, typename Batch::Square;

  static constexpr const char* name = patches == 32 ? "lines, one worker" : resident ? "lines" : "lines, stashed";
  /// One code for all components, or, where it is small, one for each, with constants for what depends on it.
  static constexpr int unrolled_components = block <= 27 ? dim : 1;

  using Batch::Batch;

  // --- planes of tangential modes ------------------------------------------------------------------------------------
  // All modes of a row of one component, [slow][fast].

  /// Transforms a plane in the directions of its fast and its slow index.
  struct PlaneTransform {
    const Square fast;
    const Square slow;
    __device__ PlaneTransform(const T* fast_table, const T* slow_table) : fast(fast_table), slow(slow_table) {}
    template <bool transposed>
    __device__ void apply(T (&x)[others][n]) const {
#pragma unroll
      for (int i = 0; i < others; ++i) fast.template apply<transposed>(x[i]);
      if constexpr (dim == 3) {
#pragma unroll
        for (int i = 0; i < n; ++i) {
          T line[n];
#pragma unroll
          for (int j = 0; j < others; ++j) line[j] = x[j][i];
          slow.template apply<transposed>(line);
#pragma unroll
          for (int j = 0; j < others; ++j) x[j][i] = line[j];
        }
      }
    }
  };
  __device__ PlaneTransform tangential(const Frame& frame) const {
    return {shared + frame.tables[1], shared + frame.tables[dim - 1]};
  }
  /// Subtracts from a row of a component what its traces give; trace(l): those of this row.
  template <class F>
  __device__ void subtract_traces(F&& trace, T (&x)[others][n]) const {
    unrolled<dim - 1, others>([&](int turn, int line) {
      const T v = trace(2 * turn * others + line);
      const T d = trace((2 * turn + 1) * others + line);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        T& to = turn == 0 ? x[line][j] : x[j][line];
        to -= arguments.value[j] * v;
        to -= arguments.slope[j] * d;
      }
    });
  }

  // --- velocity ------------------------------------------------------------------------------------------------------

  /// f = A^-1 b in the eigenbasis, rhs -= C f.
  __device__ void forward_velocity(const Frame& frame) const {
    T* const f = velocity(frame.c, frame.parity());
    T* const end_hats = ends(frame.parity());
    T* const trace_lines = traces(frame.parity());
    if constexpr (workers == 1) {
      forward_at_once(frame, f, end_hats, trace_lines);
      __syncwarp();
    } else {
      if (this->looks_around()) this->multiply_traces(trace_lines);
      forward_planes(frame, f, end_hats, trace_lines);
      __syncwarp();
      this->forward_lines(frame, f, end_hats);
    }
  }
  __device__ void forward_planes(const Frame& frame, T* f, T* end_hats, const T* trace_lines) const {
    const bool with_x = this->looks_around();
    const PlaneTransform transform = tangential(frame);
    for (int r = worker; r < (with_x ? n + 1 : n); r += workers) {
      T* plane = r < n ? f + r * row * patches : end_hats;
      T x[others][n];
      unrolled<others, n>([&](int slow, int fast) { x[slow][fast] = plane[(slow * n + fast) * patches]; });
      if (with_x && r < n) subtract_traces([&](int l) { return trace_lines[(r * lines + l) * patches]; }, x);
      transform.template apply<true>(x);
      unrolled<others, n>([&](int slow, int fast) { plane[(slow * n + fast) * patches] = x[slow][fast]; });
    }
  }
  /// The whole problem in registers.
  __device__ void forward_at_once(const Frame& frame, const T* f, const T* end_hats, const T* trace_lines) const {
    const bool with_x = this->looks_around();
    T x[n + 1][others][n];  // rows, then the end hats
    {
      T traces_of[lines][n + 1];
      if (with_x) {
#pragma unroll
        for (int l = 0; l < lines; ++l) {
#pragma unroll
          for (int r = 0; r <= n; ++r) traces_of[l][r] = trace_lines[(r * lines + l) * patches];
          this->multiply_by_mass(traces_of[l]);
        }
      }
      const PlaneTransform transform = tangential(frame);
#pragma unroll
      for (int r = 0; r < n; ++r) {
        unrolled<others, n>([&](int slow, int fast) { x[r][slow][fast] = f[(r * row + slow * n + fast) * patches]; });
        if (with_x) subtract_traces([&](int l) { return traces_of[l][r]; }, x[r]);
        transform.template apply<true>(x[r]);
      }
      unrolled<others, n>(
          [&](int slow, int fast) { x[n][slow][fast] = with_x ? end_hats[(slow * n + fast) * patches] : T(0); });
      if (with_x) transform.template apply<true>(x[n]);
    }
    const LineSolver solver(*this, frame);
    unrolled<others, n>([&](int slow, int fast) {
      T u[n];
#pragma unroll
      for (int i = 0; i < n; ++i) u[i] = x[i][slow][fast];
      solver.forward(slow * n + fast, x[n][slow][fast], u);
    });
  }

  /// f and p to modes of component c.
  __device__ void backward_velocity(const Frame& frame) const {
    T* const f = velocity(frame.c, frame.parity());
    T known[rounds][n];
    this->backward_lines(frame, f, known);
    __syncwarp();
    const PlaneTransform transform = tangential(frame);
#pragma unroll(workers == 1 ? n : 1)
    for (int r = worker; r < n; r += workers) {
      T* plane = f + r * row * patches;
      T x[others][n];
      unrolled<others, n>([&](int slow, int fast) {
        x[slow][fast] =
            workers == 1 ? known[workers == 1 ? slow * n + fast : 0][r] : plane[(slow * n + fast) * patches];
      });
      transform.template apply<false>(x);
      unrolled<others, n>([&](int slow, int fast) { plane[(slow * n + fast) * patches] = x[slow][fast]; });
    }
  }

  // --- pressure ------------------------------------------------------------------------------------------------------

  /// rhs = -S_O^T b
  __device__ void forward_pressure() const {
    T* p = pressure(problem);
    transform_planes<true>(p, T(-1));
    __syncwarp();
    transform_lines<true>(p);
    __syncwarp();
  }
  __device__ void backward_pressure() const {
    T* p = pressure(problem);
    transform_lines<false>(p);
    __syncwarp();
    transform_planes<false>(p, T(1));
  }
  /// In directions 0 and 1, times a factor.
  template <bool transposed>
  __device__ void transform_planes(T* p, T factor) const {
    const PlaneTransform transform(tables(0), tables(1));
    for (int i = worker; i < n; i += workers) {
      T* plane = p + i * (dim == 3 ? line_2 : line_1) * patches;
      T x[others][n];
      unrolled<others, n>([&](int slow, int fast) { x[slow][fast] = plane[(slow * line_1 + fast) * patches]; });
      transform.template apply<transposed>(x);
      unrolled<others, n>(
          [&](int slow, int fast) { plane[(slow * line_1 + fast) * patches] = factor * x[slow][fast]; });
    }
  }
  /// In the last direction.
  template <bool transposed>
  __device__ void transform_lines(T* p) const {
    const Square square(tables(dim - 1));
    for (int l = worker; l < Batch::columns; l += workers) {
      T* line = p + (l % n + l / n * line_1) * patches;
      Batch::template transform_line<transposed>(square, line, (dim == 3 ? line_2 : line_1) * patches);
    }
  }

  // --- all together --------------------------------------------------------------------------------------------------

  __device__ void smooth() const {
    const bool with_x = this->looks_around();
    typename Batch::Around around;
    typename Batch::Values values;
    this->find_cells(around);
    this->gather_pressure();
    if (with_x) this->find_cells_above(around);
    Frame frame = this->first_frame();
    this->fetch_velocity(frame, values);
    if (with_x) this->keep_places(around);
    __syncthreads();
#pragma unroll(unrolled_components)
    for (int c = 0; c < dim; ++c) {
      this->spread_velocity(frame, values);
      if (with_x) this->gather_around(frame);
      __syncthreads();
      const Frame here = frame;
      frame.template rotate<false>();
      if (c + 1 < dim) this->fetch_velocity(frame, values);  // on its way while this component is solved
      if (c == 0) forward_pressure();
      forward_velocity(here);
      __syncthreads();
    }
    this->schur().solve_tiles(shared + Batch::pressure_at + problem * (Batch::pressure_field * patches),
                              Batch::pressure_place);
    const T root = this->root();
#pragma unroll(unrolled_components)
    for (int c = dim - 1; c >= 0; --c) {
      frame.template rotate<true>();
      typename Batch::OldVelocity old;
      if constexpr (corrects) this->fetch_old(frame, old);
      backward_velocity(frame);
      if constexpr (!corrects) this->fetch_old(frame, old);
      this->write_velocity(frame, old, root);
      if (!resident) __syncthreads();
    }
    backward_pressure();
    const T mean = this->mean_pressure();
    typename Batch::Uncovered::Copied copied;
    Batch::Uncovered::fetch(arguments, this->copied_places(), copied);
    typename Batch::OldPressure old;
    this->fetch_old_pressure(old);
    __syncthreads();
    this->write_pressure(mean, old, root);
    Batch::Uncovered::store(arguments, this->copied_places(), copied);
  }
};

}  // namespace solenoid::cuda
