#pragma once
/// \file
/// What the parity smoothers for any order share (lines.cuh, teams.cuh): `workers` = 32 / patches lanes share the lines
/// of a patch's problem. Fields in shared memory, gathering, lines along a component's own direction, writing.

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

/// `resident`: velocities of all components have their place in shared memory.
template <class T, int dim, int order, int patches_, bool resident, int teams, bool corrects>
struct LineBatch
    : ParityBatch<T, dim, order, patches_, teams, LineFields<dim, order, patches_, resident>::numbers, corrects>,
      LineFields<dim, order, patches_, resident> {
  using Batch =
      ParityBatch<T, dim, order, patches_, teams, LineFields<dim, order, patches_, resident>::numbers, corrects>;
  using Fields = LineFields<dim, order, patches_, resident>;
  using Batch::a_of, Batch::above_of, Batch::arguments, Batch::b_of, Batch::batch, Batch::block, Batch::butterfly,
      Batch::columns, Batch::extra_of, Batch::for_items, Batch::group, Batch::groups, Batch::load_table, Batch::n,
      Batch::neighbour_of, Batch::numbers, Batch::offset, Batch::others, Batch::patch, Batch::patches, Batch::place,
      Batch::pointer, Batch::problem, Batch::problems, Batch::reciprocal, Batch::record_at, Batch::shared, Batch::sign,
      Batch::table_divergence, Batch::table_lambda_o, Batch::table_lambda_p, Batch::table_p, Batch::tables,
      Batch::to_patch, Batch::unbutterfly, Batch::worker, Batch::workers;
  using Fields::ends_at, Fields::line_1, Fields::line_2, Fields::lines, Fields::pressure_at, Fields::pressure_field,
      Fields::row, Fields::trace_at, Fields::trace_field, Fields::velocity_at, Fields::velocity_field;

  using Batch::Batch;

  static constexpr int rounds = (columns + workers - 1) / workers;  // of lines

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
      int from[dim];
#pragma unroll
      for (int i = 0; i < dim; ++i) from[i] = v[i];
#pragma unroll
      for (int i = 0; i < dim; ++i) v[i] = from[(i + (back ? dim - 1 : 1)) % dim];
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
  static __device__ int pressure_place(int i) { return pressure_position(i).at; }
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
      if constexpr (corrects) {
        if (first >= columns || first + group >= columns) return;
#pragma unroll
        for (int i = 1; i < problems; i += 2) {  // shares of lower cells
          values.v[first / groups][i] += __ldcs(cell[i - 1] + first * interleave);
        }
      }
    });
  }
  __device__ void spread_velocity(const Frame& frame, Values& values) const {
    const int c = frame.c;
    if (this->keeps_pressure()) {
      const T* cell[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        cell[i] = pointer(arguments.x + dim * block * interleave, place(0, frame, i));
      }
      for_items<block>(
          [&](int first, int) { this->add_old_gradient(c, first + group, cell, values.v[first / groups]); });
    }
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
          from[i] = offset(arguments.topology.neighbour[2 * c + 1][record_at(place(neighbour_of(t, 0), frame, i))]);
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
      correct_traces<tau>(c, t, r, trace_value, trace_slope, start, v, d);
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

  /// (A_pp - A~) x_p: the same for the patch's own modes at an end where the local matrix has more weight.
  template <int tau>
  __device__ void correct_traces(int c, int t, int r, const T (&trace_value)[n], const T (&trace_slope)[n], int start,
                                 T (&v)[problems], T (&d)[problems]) const {
#pragma unroll
    for (int end = 0; end < 2; ++end) {
      if ((batch.flags & PatchBatch::weaker_face << (2 * t + end)) == 0) continue;
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        if ((i >> (1 + tau) & 1) != end) continue;
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
        trace(end == 0, trace_value, trace_slope, pointer(arguments.x + start * interleave, place(own)),
              tau == 0 ? 1 : n, own_v, own_d);
        v[i] += extra * own_v;
        d[i] += extra * own_d;
      }
    }
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

  __device__ void gather_around(const Frame& frame) const {
    gather_ends(frame);
    gather_traces<0>(frame);
    if constexpr (dim == 3) gather_traces<1>(frame);
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
  };

  /// Sum of the tangential eigenvalues of line l.
  __device__ T tangential_lambda(const Frame& frame, int l) const {
    const T* first = shared + frame.tables[1] + table_lambda_o;
    const T* second = shared + frame.tables[dim - 1] + table_lambda_o;
    return this->tangential_sum(frame.c, first[l % n], dim == 3 ? second[l / n] : T(0));
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

  /// The same on all lines of a component.
  __device__ void multiply_traces(T* trace_lines) const {
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
  template <bool transposed>
  static __device__ void transform_line(const Square& square, T* line, int stride, T factor = T(1)) {
    T x[n];
#pragma unroll
    for (int i = 0; i < n; ++i) x[i] = factor * line[i * stride];
    square.template apply<transposed>(x);
#pragma unroll
    for (int i = 0; i < n; ++i) line[i * stride] = x[i];
  }

  /// What the lines along c of a component have in common.
  struct LineSolver {
    const LineBatch& all;
    const Frame& frame;
    const Square eigen;
    const Square divergence;
    T lambda_p[n];
    T constant[n];  // the pressure that is 1 in the lowest mode along c
    T* const stashed;

    __device__ LineSolver(const LineBatch& all_, const Frame& frame_)
        : all(all_),
          frame(frame_),
          eigen(all_.shared + frame_.tables[0] + table_p),
          divergence(all_.shared + frame_.tables[0] + table_divergence),
          stashed(all_.stash(frame_.c)) {
      load_table(all.shared + frame.tables[0] + table_lambda_p, lambda_p);
      for (T& lambda : lambda_p) lambda = all.own_lambda(frame.c, lambda);
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

  /// f = A^-1 b, rhs -= C f, where rows are in terms of eigenfunctions in tangential directions.
  __device__ void forward_lines(const Frame& frame, const T* f, const T* end_hats) const {
    const LineSolver solver(*this, frame);
#pragma unroll(n <= 3 ? 16 : 1)
    for (int l = worker; l < columns; l += workers) {
      T u[n];
#pragma unroll
      for (int i = 0; i < n; ++i) u[i] = f[(i * row + l) * patches];
      solver.forward(l, this->looks_around() ? end_hats[l * patches] : T(0), u);
    }
    __syncwarp();
  }
  /// f and p to rows in terms of tangential eigenfunctions, in shared memory or, with one worker, in registers.
  __device__ void backward_lines(const Frame& frame, T* f, T (&known)[rounds][n]) const {
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
  /// True if f of component c stays in shared memory: the last component's always does.
  static __device__ bool keeps(int c) { return resident || teams > 1 || c == dim - 1; }
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

  // --- 4: write ------------------------------------------------------------------------------------------------------

  /// What is there of this group's values of a field: all that are corrected, or hats on the lower end, which the patch
  /// does not change.
  template <int count>
  struct Old {
    T v[(count + groups - 1) / groups][corrects ? problems : problems / 2];
  };
  using OldVelocity = Old<corrects ? block : columns>;
  __device__ void fetch_old(const Frame& frame, OldVelocity& old) const {
    const T* const x = arguments.x + (frame.c * block + group) * interleave;
    constexpr int step = corrects ? 1 : 2;
    std::uint32_t cell[problems];
#pragma unroll
    for (int i = 0; i < problems; i += step) cell[i] = place(0, frame, i);
    for_items<corrects ? block : columns>([&](int first, int) {
#pragma unroll
      for (int i = 0; i < problems; i += step) {
        old.v[first / groups][i / step] = this->old_value(pointer(x, cell[i]) + first * interleave);
      }
    });
  }
  /// Waits for the other warps and writes component c.
  __device__ void write_velocity(const Frame& frame, const OldVelocity& old, T root) const {
    const int c = frame.c;
    T* const y = arguments.y + (c * block + group) * interleave;
    std::uint32_t cell[problems];
#pragma unroll
    for (int i = 0; i < problems; ++i) cell[i] = place(0, frame, i);
    const T factor = reciprocal(root);
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
        const bool outside = i % 2 == 0 && first < columns && first + group < columns;
        const T solved = outside ? T(0) : v[i];
        if constexpr (corrects) {
          v[i] = old.v[first / groups][i] + factor * solved;
        } else if (outside) {
          v[i] = old.v[first / groups][i / 2];
        }
        __stcs(pointer(y, cell[i]) + first * interleave, v[i]);
      }
    });
  }

  /// The mean of the old pressure, for the thread that writes the constant mode; 0 for others.
  __device__ T mean_pressure() const { return group == 0 ? this->old_mean_pressure() : T(0); }
  using OldPressure = Old<corrects ? block : 1>;
  __device__ void fetch_old_pressure(OldPressure& old) const {
    const T* const x = arguments.x + (dim * block + group) * interleave;
    for_items<corrects ? block : 0>([&](int first, int) {
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        old.v[first / groups][i] = this->old_value(pointer(x, place(i)) + first * interleave);
      }
    });
  }
  __device__ void write_pressure(T mean, const OldPressure& old, T root) const {
    const T* const x = arguments.x + (dim * block + group) * interleave;
    T* const y = arguments.y + (dim * block + group) * interleave;
    for_items<block>([&](int first, int) {
      const Position position = pressure_position(first + group);
      const T* from = pressure(0) + position.at * patches;
      T v[problems];
#pragma unroll
      for (int i = 0; i < problems; ++i) v[i] = from[i * pressure_field * patches];
      unbutterfly(position.signs, v);
      if (this->keeps_pressure()) {
#pragma unroll
        for (int i = 0; i < problems; ++i) v[i] += load_old(pointer(x, place(i)) + first * interleave);
      }
#pragma unroll
      for (int i = 0; i < problems; ++i) {
        T value = first == 0 ? v[i] + mean : v[i];
        if constexpr (corrects) value = old.v[first / groups][i] + root * value;
        __stcs(pointer(y, place(i)) + first * interleave, value);
      }
    });
  }
};

}  // namespace solenoid::cuda
