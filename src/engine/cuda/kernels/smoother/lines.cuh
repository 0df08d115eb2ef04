#pragma once
/// \file
/// The parity smoother for any order: `workers` = 32 / patches lanes share the lines of a patch's problem.

#include "engine/cuda/kernels/smoother/batch.cuh"

namespace solenoid::cuda {

/// Sizes and places of a batch's fields in shared memory.
template <int dim, int order, int patches, bool resident>
struct LineFields {
  static constexpr int n = order + 1;
  static constexpr int problems = 1 << dim;
  static constexpr int columns = power(n, dim - 1);
  static constexpr int others = power(n, dim - 2);

  // Strides of fields. Odd where several workers step over them.
  static constexpr int padded(int stride) { return patches == 32 ? stride : stride | 1; }
  static constexpr int row = padded(columns);  // velocity: [i_c][i_b][i_a]
  static constexpr int velocity_field = n * row;
  static constexpr int line_1 = padded(n);  // pressure: [i_2][i_1][i_0]
  static constexpr int line_2 = padded(n * line_1);
  static constexpr int pressure_field = n * (dim == 3 ? line_2 : line_1);
  static constexpr int lines = (dim - 1) * 2 * others;  // traces: [row][tangential direction][value, slope][other mode]
  static constexpr int trace_field = (n + 1) * lines;

  // In numbers.
  static constexpr int velocity_at = 0;
  static constexpr int pressure_at = velocity_at + (resident ? dim : 1) * problems * velocity_field * patches;
  static constexpr int trace_at = pressure_at + problems * pressure_field * patches;
  static constexpr int ends_at = trace_at + problems * trace_field * patches;
  static constexpr int numbers = ends_at + problems * columns * patches;
};

template <class T, int dim, int order, int patches_, bool resident, int teams = 1>
struct LineSmoother : ParityBatch<T, dim, order, patches_, teams, LineFields<dim, order, patches_, resident>::numbers>,
                      LineFields<dim, order, patches_, resident> {
  using Batch = ParityBatch<T, dim, order, patches_, teams, LineFields<dim, order, patches_, resident>::numbers>;
  using Fields = LineFields<dim, order, patches_, resident>;
  using Batch::a_of, Batch::above_of, Batch::arguments, Batch::b_of, Batch::batch, Batch::block, Batch::butterfly,
      Batch::columns, Batch::extra_of, Batch::find_cells, Batch::find_cells_above, Batch::for_items, Batch::group,
      Batch::groups, Batch::keep_places, Batch::kind, Batch::load_table, Batch::n, Batch::neighbour_of, Batch::numbers,
      Batch::offset, Batch::others, Batch::patch, Batch::patches, Batch::place, Batch::pointer, Batch::problem,
      Batch::problems, Batch::reciprocal, Batch::record_at, Batch::shared, Batch::sign, Batch::solve_schur_tiles,
      Batch::sum_of_teams, Batch::table_divergence, Batch::table_lambda_o, Batch::table_lambda_p, Batch::table_p,
      Batch::tables, Batch::team, Batch::team_numbers, Batch::threads, Batch::to_patch, Batch::unbutterfly,
      Batch::worker, Batch::workers;
  using Fields::ends_at, Fields::line_1, Fields::line_2, Fields::lines, Fields::pressure_at, Fields::pressure_field,
      Fields::row, Fields::trace_at, Fields::trace_field, Fields::velocity_at, Fields::velocity_field;
  using typename Batch::Around;

  /// One code for all components, or, where it is small, one for each, with constants for what depends on it.
  static constexpr int unrolled_components = block <= 27 ? dim : 1;

  using Batch::Batch;

  // --- frames and fields ---------------------------------------------------------------------------------------------

  /// Fields at this lane's patch. Those of velocities are numbered by the parity of the velocity in the frame of c.
  __device__ T* velocity(int c, int parity) const {
    return shared + velocity_at + ((resident ? c * problems : 0) + parity) * (velocity_field * patches) + patch;
  }
  __device__ T* pressure(int parity) const {
    return shared + pressure_at + parity * (pressure_field * patches) + patch;
  }
  __device__ T* traces(int parity) const { return shared + trace_at + parity * (trace_field * patches) + patch; }
  __device__ T* ends(int parity) const { return shared + ends_at + parity * (columns * patches) + patch; }
  static __device__ int pressure_stride(int a) { return a == 0 ? 1 : a == 1 ? line_1 : line_2; }

  /// What depends on the component c: entries [0] belong to direction c, [1] and [2] to a and b. The next component's
  /// frame is a rotation of this one, which costs less than computing it.
  struct Frame {
    int c;
    int bits;         // of this warp's problem
    int tables[dim];  // of the directions, for this lane's patch and this warp's problem
    int stride[dim];  // of the pressure
    int corner[dim];  // from a cell of the patch to that above, in slots

    template <bool back>
    __device__ void rotate() {
      bits = back ? (bits << 1 | bits >> (dim - 1)) & (problems - 1) : bits >> 1 | (bits & 1) << (dim - 1);
      c = back ? c - 1 : c + 1;
      rotate<back>(tables);
      rotate<back>(stride);
      rotate<back>(corner);
    }
    template <bool back>
    static __device__ void rotate(int (&v)[dim]) {
      const int first = v[back ? dim - 1 : 0];
#pragma unroll
      for (int i = 1; i < dim; ++i) {
        if constexpr (back) {
          v[dim - i] = v[dim - i - 1];
        } else {
          v[i - 1] = v[i];
        }
      }
      v[back ? 0 : dim - 1] = first;
    }
    /// Parity of the component.
    __device__ int parity() const { return bits ^ 1; }
    __device__ int pressure_line(int l) const {
      return dim == 3 ? l % n * stride[1] + l / n * stride[dim - 1] : l * stride[1];
    }
    /// Distance of the slots of cell i (in this frame) and of the patch's lower cell.
    __device__ int slot(int i) const {
      int distance = 0;
#pragma unroll
      for (int d = dim - 1; d >= 0; --d) distance += (i >> d & 1) * corner[d];
      return distance;
    }
  };
  __device__ Frame first_frame() const {
    Frame frame{0, problem, {}, {}, {}};
#pragma unroll
    for (int d = 0; d < dim; ++d) {
      frame.tables[d] = static_cast<int>(tables(d) - shared);
      frame.stride[d] = pressure_stride(d) * patches;
      frame.corner[d] = patches << d;
    }
    return frame;
  }
  /// Place of value 0 of a cell: `slot` of the lower cell of the patch, cell i in the frame.
  __device__ std::uint32_t place(int slot, const Frame& frame, int i) const {
    return (reinterpret_cast<const std::uint32_t*>(shared + numbers) + (slot * patches + patch))[frame.slot(i)];
  }

  // --- 2a: gather ----------------------------------------------------------------------------------------------------

  /// Of a value in a field, and the signs of its modes.
  struct Position {
    int at;
    T signs[3];
  };
  static __device__ Position pressure_position(int i) {
    const int i_0 = i % n;
    const int i_1 = i / n % n;
    const int i_2 = dim == 3 ? i / (n * n) : 0;
    return {i_0 + line_1 * i_1 + line_2 * i_2, {sign(i_0 % 2 != 0), sign(i_1 % 2 != 0), sign(i_2 % 2 != 0)}};
  }
  /// In the frame of the component. Bubble j is even about its cell for odd j.
  static __device__ Position velocity_position(int i) {
    const int i_c = i / columns;
    const int column = i % columns;
    return {i_c * row + column, {sign(i_c > 0 && i_c % 2 == 0), sign(column % n % 2 != 0), sign(column / n % 2 != 0)}};
  }

  __device__ void gather_pressure() const {
    const T* cell[problems];
#pragma unroll
    for (int i = 0; i < problems; ++i) cell[i] = pointer(arguments.b + (dim * block + group) * interleave, place(i));
    for_items<block>([&](int first, int) {
      T v[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) v[i] = __ldcs(cell[i] + first * interleave);
      const Position position = pressure_position(first + group);
      butterfly(position.signs, v);
      T* to = pressure(0) + position.at * patches;
#pragma unroll
      for (int i = 0; i < problems; ++i) to[i * pressure_field * patches] = v[i];
    });
  }

  /// This group's values of component c of b.
  struct Values {
    T v[(block + groups - 1) / groups][problems];
  };
  __device__ void fetch_velocity(const Frame& frame, Values& values) const {
    const T* cell[problems];
#pragma unroll
    for (int i = 0; i < problems; ++i) {
      cell[i] = pointer(arguments.b + (frame.c * block + group) * interleave, place(0, frame, i));
    }
    for_items<block>([&](int first, int) {
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        const bool outside = i % 2 == 0 && first < columns && first + group < columns;  // hats on the lower end
        values.v[first / groups][i] = outside ? T(0) : __ldcs(cell[i] + first * interleave);
      }
    });
  }
  __device__ void spread_velocity(int c, Values& values) const {
    for_items<block>([&](int first, int) {
      const Position position = velocity_position(first + group);
      butterfly(position.signs, values.v[first / groups]);
      T* to = velocity(c, 0) + position.at * patches;
#pragma unroll
      for (int i = 0; i < problems; ++i) to[i * velocity_field * patches] = values.v[first / groups][i];
    });
  }

  /// Hats of component c at its ends.
  __device__ void gather_ends(const Frame& frame) const {
    for_items<columns, block>([&](int first, int g) {
      T v[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        const std::uint32_t from = place(i % 2 == 0 ? 0 : neighbour_of(frame.c, 0), frame, i);
        v[i] = *pointer(arguments.x + (frame.c * block + first + g) * interleave, from);
      }
      const Position position = velocity_position(first + g);
      butterfly({this->open_above(frame.c), position.signs[1], position.signs[2]}, v);
      T* to = ends(0) + (first + g) * patches;
#pragma unroll
      for (int i = 0; i < problems; ++i) to[i * columns * patches] = v[i];
    });
  }

  /// What the cells around give to the residual of component c: coefficients of the test trace and derivative on the
  /// ends of the patch in tangential direction t = c + 1 + tau, for row r of P: 0 middle hat (as the lower and as the
  /// upper cell see it), bubbles, n end hats.
  template <int tau>
  __device__ void gather_traces(const Frame& frame) const {
    const int c = frame.c;
    constexpr int end_bit = 1 + tau;  // in the frame of c
    constexpr int other_bit = 2 - tau;
    constexpr int stride = tau == 0 ? 1 : n;
    constexpr int other_stride = tau == 0 ? n : 1;
    const int t = tau == 0 ? a_of(c) : b_of(c);
    T trace_value[n];
    T trace_slope[n];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      trace_value[j] = arguments.trace_value[t][j];
      trace_slope[j] = arguments.trace_slope[t][j];
    }
    for_items<(n + 1) * others, block + columns + tau*(n + 1) * others>([&](int first, int g) {
      const int r = (first + g) / others;
      const int other_mode = (first + g) % others;
      const int start = c * block + (r < n ? r * columns : 0) + other_mode * other_stride;
      std::uint32_t from[problems];
#pragma unroll
      for (int i = 0; i < problems; i += 2) {
        const int above_that = above_of(c, tau, i >> end_bit & 1, dim == 3 ? i >> other_bit & 1 : 0);
        from[i] = place(neighbour_of(t, 0), frame, r == 0 ? i | 1 : i);
        from[i | 1] = r == n ? place(above_that) : place(neighbour_of(t, 0), frame, i | 1);
      }
      if ((batch.flags & PatchBatch::mixed_faces) != 0 && r == 0) {
#pragma unroll
        for (int i = 0; i < problems; i += 2) {
          from[i] = offset(arguments.neighbour[2 * c + 1][record_at(place(neighbour_of(t, 0), frame, i))]);
        }
      }
      T v[problems];
      T d[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        const bool upper_end = (i >> end_bit & 1) != 0;
        trace(upper_end, trace_value, trace_slope, pointer(arguments.x + start * interleave, from[i]), stride, v[i],
              d[i]);
      }
      // (A_pp - A~) x_p: the same for the patch's own modes at an end where the local matrix has more weight.
#pragma unroll
      for (int end = 0; end < 2; ++end) {
        if ((batch.flags & PatchBatch::weaker_face << (2 * t + end)) == 0) continue;
#pragma unroll
        for (int i = 0; i < problems; ++i) {
          if ((i >> end_bit & 1) != end) continue;
          const int corner = to_patch(i, c);
          T extra = static_cast<T>(extra_of(t, corner));
          int own = corner;
          if (r == n && i % 2 == 1) {
            own = neighbour_of(c, corner);
            extra *= this->open_above(c);
          }
          if (r == 0 && i % 2 == 0) own = to_patch(i | 1, c);
          T own_v;
          T own_d;
          // The lower face of the patch's own cell looks like the face to a cell above, and the other way round.
          trace(end == 0, trace_value, trace_slope, pointer(arguments.x + start * interleave, place(own)), stride,
                own_v, own_d);
          v[i] += extra * own_v;
          d[i] += extra * own_d;
        }
      }
      T signs[3]{sign(r > 0 && r < n && r % 2 == 0), T(1), T(1)};
      signs[other_bit] = sign(other_mode % 2 != 0);
      butterfly(signs, v);
      butterfly(signs, d);
      if (const int walls = this->walls(t); walls != 0) {
        this->template join_ends<end_bit>(walls, v);
        this->template join_ends<end_bit>(walls, d);
      }
      T* to = traces(0) + (r * lines + tau * 2 * others + other_mode) * patches;
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        to[i * trace_field * patches] = v[i];
        to[(i * trace_field + others) * patches] = d[i];
      }
    });
  }

  /// Coefficients of test trace and derivative at the face to a cell above or below with the given modes.
  static __device__ void trace(bool above, const T (&trace_value)[n], const T (&trace_slope)[n], const T* modes,
                               int stride, T& v, T& d) {
    v = d = T(0);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const T mode = modes[j * stride * interleave];
      v += (above && j % 2 == 1 ? -trace_value[j] : trace_value[j]) * mode;
      d += (above && j % 2 == 1 ? -trace_slope[j] : trace_slope[j]) * mode;
    }
  }

  // --- 2b: to eigenfunctions -----------------------------------------------------------------------------------------

  /// An n x n matrix of the tables, in registers.
  struct Square {
    T m[n * n];
    __device__ explicit Square(const T* from) { load_table(from, m); }
    /// x <- m^T x, or m x
    template <bool transposed>
    __device__ void apply(T (&x)[n]) const {
      T out[n];
#pragma unroll
      for (int i = 0; i < n; ++i) {
        T sum{};
#pragma unroll
        for (int j = 0; j < n; ++j) sum += (transposed ? m[j * n + i] : m[i * n + j]) * x[j];
        out[i] = sum;
      }
#pragma unroll
      for (int i = 0; i < n; ++i) x[i] = out[i];
    }
    /// The same on a plane, along its fast or its slow index.
    template <bool transposed>
    __device__ void apply_fast(T (&x)[others][n]) const {
#pragma unroll
      for (int i = 0; i < others; ++i) apply<transposed>(x[i]);
    }
    template <bool transposed>
    __device__ void apply_slow(T (&x)[others][n]) const {
#pragma unroll
      for (int i = 0; i < n; ++i) {
        T line[n];
#pragma unroll
        for (int j = 0; j < others; ++j) line[j] = x[j][i];
        apply<transposed>(line);
#pragma unroll
        for (int j = 0; j < others; ++j) x[j][i] = line[j];
      }
    }
  };

  /// Transforms a plane of `columns` values in the directions of its fast and its slow index.
  template <bool transposed>
  static __device__ void transform(const Square& fast, const Square& slow, T (&x)[others][n]) {
    fast.template apply_fast<transposed>(x);
    if constexpr (dim == 3) slow.template apply_slow<transposed>(x);
  }

  /// rhs = -S_O^T b
  __device__ void forward_pressure() const {
    T* p = pressure(problem);
    transform_pressure_planes<true>(p, T(-1));
    __syncwarp();
    const Square last(tables(dim - 1));
    transform_pressure_lines<true>(last, p);
    __syncwarp();
  }
  /// Transforms the pressure in directions 0 and 1, times a factor.
  template <bool transposed>
  __device__ void transform_pressure_planes(T* p, T factor) const {
    const Square first(tables(0));
    const Square second(tables(1));
    for (int i = worker; i < n; i += workers) {
      T* plane = p + i * (dim == 3 ? line_2 : line_1) * patches;
      T x[others][n];
      for_plane([&](int slow, int fast) { x[slow][fast] = plane[(slow * line_1 + fast) * patches]; });
      transform<transposed>(first, second, x);
      for_plane([&](int slow, int fast) { plane[(slow * line_1 + fast) * patches] = factor * x[slow][fast]; });
    }
  }
  /// The whole transform of a problem's pressure, times a factor, line by line.
  template <bool transposed>
  __device__ void transform_pressure(int of_problem, T* p, T factor) const {
#pragma unroll
    for (int d = 0; d < dim; ++d) {
      const Square square(tables(d, of_problem));
      const int stride = pressure_stride(d) * patches;
      const int first = pressure_stride(d == 0 ? 1 : 0) * patches;
      const int second = pressure_stride(d == 2 ? 1 : 2) * patches;
      for (int l = worker; l < columns; l += workers) {
        transform_line<transposed>(square, p + l % n * first + l / n * second, stride, factor);
      }
      factor = T(1);
      __syncwarp();
    }
  }
  template <bool transposed>
  static __device__ void transform_line(const Square& square, T* line, int stride, T factor = T(1)) {
    T x[n];
#pragma unroll
    for (int i = 0; i < n; ++i) x[i] = factor * line[i * stride];
    square.template apply<transposed>(x);
#pragma unroll
    for (int i = 0; i < n; ++i) line[i * stride] = x[i];
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
        transform_line<transposed>(square, plane + i % others * other_stride, stride);
      }
      __syncwarp();
    }
  }
  template <bool transposed>
  __device__ void transform_pressure_lines(const Square& square, T* p) const {
    constexpr int stride = dim == 3 ? line_2 : line_1;
    for (int l = worker; l < columns; l += workers) {
      T* line = p + (l % n + l / n * line_1) * patches;
      T x[n];
#pragma unroll
      for (int i = 0; i < n; ++i) x[i] = line[i * stride * patches];
      square.template apply<transposed>(x);
#pragma unroll
      for (int i = 0; i < n; ++i) line[i * stride * patches] = x[i];
    }
  }

  template <class F>
  static __device__ void for_plane(F&& f) {
#pragma unroll
    for (int slow = 0; slow < others; ++slow) {
#pragma unroll
      for (int fast = 0; fast < n; ++fast) f(slow, fast);
    }
  }

  /// Sum of the tangential eigenvalues of line l.
  __device__ T tangential_lambda(const Frame& frame, int l) const {
    const T* first = shared + frame.tables[1] + table_lambda_o;
    const T* second = shared + frame.tables[dim - 1] + table_lambda_o;
    return dim == 3 ? first[l % n] + second[l / n] : first[l];
  }

  /// The mass matrix of P on the rows of a line of traces, in place; the row of the middle hat means something in the
  /// even class only.
  __device__ void multiply_by_mass(T (&w)[n + 1]) const {
    T out[n];
#pragma unroll
    for (int r = 0; r < n; ++r) out[r] = this->times_mass(r, w);
#pragma unroll
    for (int r = 0; r < n; ++r) w[r] = out[r];
  }

  /// Subtracts from a row of a component what its traces give; trace(l): those of this row.
  template <class F>
  __device__ void subtract_traces(F&& trace, T (&x)[others][n]) const {
#pragma unroll
    for (int slow = 0; slow < others; ++slow) {
      const T v = trace(slow);
      const T d = trace(others + slow);
#pragma unroll
      for (int fast = 0; fast < n; ++fast) {
        x[slow][fast] -= arguments.value[fast] * v;
        x[slow][fast] -= arguments.slope[fast] * d;
      }
    }
    if constexpr (dim == 3) {
#pragma unroll
      for (int fast = 0; fast < n; ++fast) {
        const T v = trace(2 * others + fast);
        const T d = trace(3 * others + fast);
#pragma unroll
        for (int slow = 0; slow < n; ++slow) {
          x[slow][fast] -= arguments.value[slow] * v;
          x[slow][fast] -= arguments.slope[slow] * d;
        }
      }
    }
  }

  /// What the lines along c of a component have in common.
  struct LineSolver {
    const LineSmoother& all;
    const Frame& frame;
    const Square eigen;
    const Square divergence;
    T lambda_p[n];
    T constant[n];  // the pressure that is 1 in the lowest mode along c
    T* const stashed;

    __device__ LineSolver(const LineSmoother& all_, const Frame& frame_)
        : all(all_),
          frame(frame_),
          eigen(all_.shared + frame_.tables[0] + table_p),
          divergence(all_.shared + frame_.tables[0] + table_divergence),
          stashed(all_.stash(frame_.c)) {
      load_table(all.shared + frame.tables[0] + table_lambda_p, lambda_p);
      load_table(all.shared + frame.tables[0], constant);
    }

    /// u: from residual to f; rhs -= C f.
    __device__ void forward(int l, T hat, T (&u)[n]) const {
      const T lambda = all.tangential_lambda(frame, l);
      // An end hat couples to the middle hat and to two bubbles.
      const T weighted = hat * (lambda + all.arguments.alpha);
      u[0] -= all.arguments.mass[0][n] * weighted;
      u[0] -= all.arguments.end_stiffness[frame.c] * hat;
#pragma unroll
      for (int j = 1; j < n && j <= 2; ++j) u[j] -= all.arguments.mass[0][j] * weighted;
      const T flux = all.arguments.inverse_h[frame.c] * hat;
      eigen.template apply<true>(u);
#pragma unroll
      for (int i = 0; i < n; ++i) u[i] *= reciprocal(lambda_p[i] + lambda);
      if (keeps(frame.c)) {
        T* line = all.velocity(frame.c, frame.parity()) + l * patches;
#pragma unroll
        for (int i = 0; i < n; ++i) line[i * row * patches] = u[i];
      } else {
        T* line = stashed + l * interleave;
#pragma unroll
        for (int i = 0; i < n; ++i) line[i * columns * interleave] = u[i];
      }
      divergence.template apply<false>(u);
      T* rhs = all.pressure(all.problem) + frame.pressure_line(l);
#pragma unroll
      for (int i = 0; i < n; ++i) rhs[i * frame.stride[0]] += constant[i] * flux - u[i];
    }

    /// u = f + A^-1 C^T p, to functions of P.
    __device__ void backward(int l, const T (&f)[n], T (&u)[n]) const {
      const T lambda = all.tangential_lambda(frame, l);
      const T* p = all.pressure(all.problem) + frame.pressure_line(l);
#pragma unroll
      for (int i = 0; i < n; ++i) u[i] = p[i * frame.stride[0]];
      divergence.template apply<true>(u);
#pragma unroll
      for (int i = 0; i < n; ++i) u[i] = f[i] + u[i] * reciprocal(lambda_p[i] + lambda);
      eigen.template apply<false>(u);
    }
  };

  /// f = A^-1 b in the eigenbasis, rhs -= C f.
  __device__ void forward_velocity(const Frame& frame) const {
    const bool with_x = arguments.x != nullptr;
    T* f = velocity(frame.c, frame.parity());
    T* end_hats = ends(frame.parity());
    T* trace_lines = traces(frame.parity());
    if constexpr (workers == 1) {  // the whole problem in registers
      T x[n + 1][others][n];       // rows, then the end hats
      {
        T traces_of[lines][n + 1];
        if (with_x) {
#pragma unroll
          for (int l = 0; l < lines; ++l) {
#pragma unroll
            for (int r = 0; r <= n; ++r) traces_of[l][r] = trace_lines[(r * lines + l) * patches];
            multiply_by_mass(traces_of[l]);
          }
        }
        const Square first(shared + frame.tables[1]);
        const Square second(shared + frame.tables[dim - 1]);
#pragma unroll
        for (int r = 0; r < n; ++r) {
          for_plane([&](int slow, int fast) { x[r][slow][fast] = f[(r * row + slow * n + fast) * patches]; });
          if (with_x) subtract_traces([&](int l) { return traces_of[l][r]; }, x[r]);
          transform<true>(first, second, x[r]);
        }
        for_plane(
            [&](int slow, int fast) { x[n][slow][fast] = with_x ? end_hats[(slow * n + fast) * patches] : T(0); });
        if (with_x) transform<true>(first, second, x[n]);
      }
      const LineSolver solver(*this, frame);
      for_plane([&](int slow, int fast) {
        T u[n];
#pragma unroll
        for (int i = 0; i < n; ++i) u[i] = x[i][slow][fast];
        solver.forward(slow * n + fast, x[n][slow][fast], u);
      });
    } else {
      if (with_x) {
        for (int l = worker; l < lines; l += workers) {
          T* line = trace_lines + l * patches;
          T w[n + 1];
#pragma unroll
          for (int r = 0; r <= n; ++r) w[r] = line[r * lines * patches];
          multiply_by_mass(w);
#pragma unroll
          for (int r = 0; r < n; ++r) line[r * lines * patches] = w[r];
        }
        __syncwarp();
      }
      if constexpr (teams > 1) {
        if (with_x) {
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
        transform_rows<true>(frame, f, with_x ? n + 1 : n, end_hats);
      } else {
        const Square first(shared + frame.tables[1]);
        const Square second(shared + frame.tables[dim - 1]);
        for (int r = worker; r < (with_x ? n + 1 : n); r += workers) {
          T* plane = r < n ? f + r * row * patches : end_hats;
          T x[others][n];
          for_plane([&](int slow, int fast) { x[slow][fast] = plane[(slow * n + fast) * patches]; });
          if (with_x && r < n) subtract_traces([&](int l) { return trace_lines[(r * lines + l) * patches]; }, x);
          transform<true>(first, second, x);
          for_plane([&](int slow, int fast) { plane[(slow * n + fast) * patches] = x[slow][fast]; });
        }
      }
      __syncwarp();
      const LineSolver solver(*this, frame);
#pragma unroll(n <= 3 ? 16 : 1)
      for (int l = worker; l < columns; l += workers) {
        T u[n];
#pragma unroll
        for (int i = 0; i < n; ++i) u[i] = f[(i * row + l) * patches];
        solver.forward(l, with_x ? end_hats[l * patches] : T(0), u);
      }
    }
    __syncwarp();
  }

  /// True if f of component c stays in shared memory: the last component's always does.
  static __device__ bool keeps(int c) { return resident || teams > 1 || c == dim - 1; }
  static constexpr int rounds = (columns + workers - 1) / workers;
  /// visit(round, l) for this lane's lines.
  template <class F>
  __device__ void for_lines(F&& visit) const {
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
      const int l = worker + round * workers;
      if ((round + 1) * workers <= columns || l < columns) visit(round, l);
    }
  }
  /// Where this warp keeps f of component c otherwise: the cell of y that has its number.
  __device__ T* stash(int c) const { return arguments.y + (place(problem) + c * block * interleave); }

  // --- 3: Schur complement -------------------------------------------------------------------------------------------

  /// p = S^+ rhs, the sum of what the teams have, where S is a plain matrix.
  __device__ void solve_plain_schur() const {
    const int number = kind >> ParityPatch::schur_shift;
    const T* inverse = arguments.schur + (number * problems + problem) * (block * block);
    T* p = pressure(problem);
    T out[(block + workers - 1) / workers]{};
#pragma unroll
    for (int j = 0; j < block; ++j) {
      const T rhs = sum_of_teams(p + schur_position(j) * patches);
#pragma unroll
      for (int first = 0; first < block; first += workers) {
        if (first + worker < block) out[first / workers] += __ldg(inverse + (first + worker) * block + j) * rhs;
      }
    }
    __syncthreads();
#pragma unroll
    for (int first = 0; first < block; first += workers) {
      if (first + worker < block) p[schur_position(first + worker) * patches] = out[first / workers];
    }
    __syncwarp();
  }
  static __device__ int schur_position(int i) {
    return i % n + line_1 * (i / n % n) + (dim == 3 ? line_2 * (i / (n * n)) : 0);
  }

  // --- 4: back to modes, write ---------------------------------------------------------------------------------------

  /// f and p to modes of component c.
  __device__ void backward_velocity(const Frame& frame) const {
    T* f = velocity(frame.c, frame.parity());
    T known[rounds][n];
    {
      const LineSolver solver(*this, frame);
      if (keeps(frame.c)) {
        for_lines([&](int round, int l) {
#pragma unroll
          for (int i = 0; i < n; ++i) known[round][i] = f[(i * row + l) * patches];
        });
      } else {
        for_lines([&](int round, int l) {
#pragma unroll
          for (int i = 0; i < n; ++i) known[round][i] = (solver.stashed + l * interleave)[i * columns * interleave];
        });
      }
      for_lines([&](int round, int l) {
        T u[n];
        solver.backward(l, known[round], u);
#pragma unroll
        for (int i = 0; i < n; ++i) {
          if constexpr (workers == 1) {
            known[round][i] = u[i];
          } else {
            f[(i * row + l) * patches] = u[i];
          }
        }
      });
    }
    __syncwarp();
    if constexpr (teams > 1) {
      transform_rows<false>(frame, f, n, f);
      return;
    }
    const Square first(shared + frame.tables[1]);
    const Square second(shared + frame.tables[dim - 1]);
#pragma unroll(workers == 1 ? n : 1)
    for (int r = worker; r < n; r += workers) {
      T* plane = f + r * row * patches;
      T x[others][n];
      for_plane([&](int slow, int fast) {
        x[slow][fast] =
            workers == 1 ? known[workers == 1 ? slow * n + fast : 0][r] : plane[(slow * n + fast) * patches];
      });
      transform<false>(first, second, x);
      for_plane([&](int slow, int fast) { plane[(slow * n + fast) * patches] = x[slow][fast]; });
    }
  }

  __device__ void backward_pressure() const {
    T* p = pressure(problem);
    if constexpr (teams > 1) {
      transform_pressure<false>(problem, p, T(1));
      return;
    }
    {
      const Square last(tables(dim - 1));
      transform_pressure_lines<false>(last, p);
    }
    __syncwarp();
    transform_pressure_planes<false>(p, T(1));
  }

  /// Waits for the other warps and writes component c.
  __device__ void write_velocity(const Frame& frame) const {
    const int c = frame.c;
    const T* const x = arguments.x + (c * block + group) * interleave;
    T* const y = arguments.y + (c * block + group) * interleave;
    std::uint32_t cell[problems];
#pragma unroll
    for (int i = 0; i < problems; ++i) cell[i] = place(0, frame, i);
    T hats[(columns + groups - 1) / groups][problems / 2];  // on the lower end: as they were
    for_items<columns>([&](int first, int) {
#pragma unroll
      for (int i = 0; i < problems; i += 2) {
        hats[first / groups][i / 2] = arguments.x != nullptr ? pointer(x, cell[i])[first * interleave] : T(0);
      }
    });
    __syncthreads();
    for_items<block>([&](int first, int) {
      const Position position = velocity_position(first + group);
      const T* from = velocity(c, 0) + position.at * patches;
      T v[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) v[i] = from[i * velocity_field * patches];
      unbutterfly(position.signs, v);
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        if (i % 2 == 0 && first < columns && first + group < columns) v[i] = hats[first / groups][i / 2];
        __stcs(pointer(y, cell[i]) + first * interleave, v[i]);
      }
    });
  }

  /// The mean of the old pressure, for the thread that writes the constant mode; 0 for others.
  __device__ T mean_pressure() const {
    T sum{};
    if (group == 0 && arguments.x != nullptr) {
      const T* const x = arguments.x + dim * block * interleave;
#pragma unroll
      for (int i = 0; i < problems; ++i) sum += *pointer(x, place(i));
    }
    return sum * (T(1) / T(problems));
  }
  __device__ void write_pressure(T mean) const {
    T* const y = arguments.y + (dim * block + group) * interleave;
    for_items<block>([&](int first, int) {
      const Position position = pressure_position(first + group);
      const T* from = pressure(0) + position.at * patches;
      T v[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) v[i] = from[i * pressure_field * patches];
      unbutterfly(position.signs, v);
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        __stcs(pointer(y, place(i)) + first * interleave, first == 0 ? v[i] + mean : v[i]);
      }
    });
  }

  __device__ void smooth() const {
    const bool with_x = arguments.x != nullptr;
    Around around;
    Values values;
    find_cells(around);
    gather_pressure();
    if (with_x) find_cells_above(around);
    Frame frame = first_frame();
    fetch_velocity(frame, values);
    if (with_x) keep_places(around);
    __syncthreads();
#pragma unroll(unrolled_components)
    for (int c = 0; c < dim; ++c) {
      spread_velocity(c, values);
      if (with_x) {
        gather_ends(frame);
        gather_traces<0>(frame);
        if constexpr (dim == 3) gather_traces<1>(frame);
      }
      __syncthreads();
      const Frame here = frame;
      frame.template rotate<false>();
      if (c + 1 < dim) fetch_velocity(frame, values);  // on its way while this component is solved
      if (c == 0) forward_pressure();
      forward_velocity(here);
      __syncthreads();
    }
    solve_schur_tiles(shared + pressure_at + problem * (pressure_field * patches), schur_position);
#pragma unroll(unrolled_components)
    for (int c = dim - 1; c >= 0; --c) {
      frame.template rotate<true>();
      backward_velocity(frame);
      write_velocity(frame);
      if (!resident) __syncthreads();
    }
    backward_pressure();
    const T mean = mean_pressure();
    typename Batch::Copied copied;
    this->fetch_copied(copied);
    __syncthreads();
    write_pressure(mean);
    this->store_copied(copied);
  }

  /// The same by teams: each its component, the first one the pressure too.
  __device__ void smooth_by_teams() const {
    const bool with_x = arguments.x != nullptr;
    Around around;
    Values values;
    find_cells(around);
    if (team == 0) {
      gather_pressure();
    } else {
      for (int i = threadIdx.x % threads; i < problems * pressure_field * patches; i += threads) {
        shared[pressure_at + i] = T(0);
      }
    }
    if (with_x) find_cells_above(around);
    Frame frame = first_frame();
    for (int c = 0; c < team; ++c) frame.template rotate<false>();
    fetch_velocity(frame, values);
    if (with_x) keep_places(around);
    __syncthreads();
    spread_velocity(frame.c, values);
    if (with_x) {
      gather_ends(frame);
      gather_traces<0>(frame);
      if constexpr (dim == 3) gather_traces<1>(frame);
    }
    // rhs = -S_O^T b for the first team, by the other teams' warps that have the least to gather.
    const int pressure_of = (problems - 1 - problem) * (teams - 1) + team - 1;
    if (team > 0 && pressure_of < problems) {
      transform_pressure<true>(pressure_of, pressure(pressure_of) - team * team_numbers, T(-1));
    }
    __syncthreads();
    forward_velocity(frame);
    __syncthreads();
    if constexpr (block <= largest_plain_schur) {
      solve_plain_schur();
    } else {
      solve_schur_tiles(shared + pressure_at + problem * (pressure_field * patches), schur_position);
    }
    backward_velocity(frame);
    if (team == 0) backward_pressure();
    const T mean = team == 0 ? mean_pressure() : T(0);
    write_velocity(frame);
    if (team == 0) write_pressure(mean);
  }
};

}  // namespace solenoid::cuda
