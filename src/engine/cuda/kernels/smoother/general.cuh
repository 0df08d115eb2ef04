#pragma once
/// \file
/// The vertex-patch smoother for every kind of patch and every local solver: one launch per colour, a thread block for
/// each patch, whatever its kind.
///
/// Sides with slip or outflow have patches whose ends differ, so that they do not split by parity; the additive
/// smoother and the local solvers for comparison take all their patches through here.
///
/// Arrays of a patch, N = 2n: velocity component c as [e][i_b][i_a] with the 2n + 1 functions e of P slowest (end hat,
/// bubbles, middle hat, bubbles, end hat; only first..last are unknowns), a = c + 1, b = c + 2 (mod dim), i = n (upper
/// cell) + mode; pressure as [i_z][i_y][i_x]. In the eigenbasis the same with eigenfunctions for functions.
///
/// Steps, each on lines of all components at once:
///   1. residual: r = b - M^P w - nu L^P u + B^T p with w = (nu L^O_a + nu L^O_b + alpha) u, the operator's formula
///      (operator.cuh) with the factors in the other order. Rows of w are those of the two cells, n + 1 each: beside
///      holes the middle hat has other neighbours in the lower than in the upper cell. Lines along a and b find what is
///      behind their ends in memory, at a boundary themselves (line_operator.cuh).
///   2. local solve: eigenfunctions along a, b, then c, where f = A^-1 r and C f are made; the Schur complement; back.
///   3. y = x + correction.
/// Work is shared out by for_each alone: a step is right for any number of threads. A thread block has one patch, so
/// that time is latency, above all that of memory: five times in a row something is waited for that tells where the
/// next is (patch; its cells' neighbours; theirs; what lies behind the ends; S^-1, as soon as its right-hand side is
/// there). Everything else is on its way to shared memory or to the first-level cache long before it is used.
///
/// Shared memory, in numbers: u [dim][(N + 1) columns], r the same, w [dim][(N + 2) columns], the pressure, the old
/// one, one more (direct, dense) or three (Chebyshev, CG); S_O, S_P and C of each direction; the kind of patch;
/// records. Traffic per patch: its values of b, x and y once, those of the cells behind its ends, and the tables of its
/// kind from the caches.

#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "engine/cuda/kernels/line_operator.cuh"
#include "engine/cuda/kernels/smoother/general.hpp"
#include "engine/cuda/kernels/tensor_tiles.cuh"
#include "solenoid/error.hpp"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct GeneralSmoother {
  using S = Shape<dim, order>;
  using Line = LineOperator<T, dim, order>;
  using Tables = typename Line::Tables;
  static constexpr int n = S::n;
  static constexpr int modes = 2 * n;
  static constexpr int columns = power(modes, dim - 1);
  static constexpr int functions = modes + 1;
  static constexpr int rows = modes + 2;  // of both cells
  static constexpr int component = functions * columns;
  static constexpr int pressures = power(modes, dim);
  static constexpr int corners = 1 << dim;
  static constexpr int halves = corners / 2;
  static constexpr int others = columns / modes;  // lines of a row along a tangential direction
  /// One for each line of a tangential transform, as far as possible.
  static constexpr int threads = [] {
    constexpr int whole_warps = (dim * functions * others + columns + 31) / 32 * 32;
    return whole_warps <= 384 ? whole_warps : 512;
  }();
  /// On a multiprocessor, which bounds registers: a block waits for memory more often than it works, so that many
  /// should be there.
  static constexpr int blocks = [] {
    constexpr int registers = (n <= 3 ? 64 : 96) * static_cast<int>(sizeof(T) / sizeof(float));
    return std::max(65536 / (threads * registers), 1);
  }();
  /// The columns of S^-1 are shared out in so many parts where there are threads left.
  static constexpr int parts = std::clamp(threads / (corners * ((S::block + 3) / 4)), 1, dim);
  static_assert(parts * pressures <= dim * component);  // sums lie where flux was
  /// What the largest patches have no room for: old values, which are read again, and a place for b on its way.
  static constexpr bool roomy = (dim * (2 * component + rows * columns + functions * 16) + 5 * pressures + threads) *
                                        static_cast<int>(sizeof(T)) +
                                    4096 <=
                                static_cast<int>(most_shared_bytes);
  static constexpr GeneralTables layout{dim, n};
  using Row = T[layout.row_length()];
  struct Direction {
    Row eigen_o[modes];
    Row eigen_p[functions];
    Row divergence[modes];
  };
  struct Memory {
    alignas(16) Direction tables[dim];
    PatchData<T> kind;
    const T* inverse_lambda;  ///< [component][eigenfunction][column]
    T u[dim][component];      ///< old velocity
    T w[dim][rows * columns];
    T r[roomy ? dim : 1][roomy ? component : 1];
    T old_pressure[roomy ? pressures : 1];
    T pressure[pressures];  ///< residual, correction
    std::int32_t cells[corners];
    std::int32_t above[dim][corners];                 ///< the records above cells
    std::int32_t behind[2 * dim][halves];             ///< the record behind an end, or -1 - weight of the face there
    std::int32_t above_behind[dim][2 * dim][halves];  ///< the record above that one
    T sums[threads];
    T schur[3][pressures];  ///< right-hand side; two more vectors of the iterative solvers

    /// b, residual, f, correction; in the place of w if there is no other.
    __device__ T* residual(int c) { return roomy ? r[c] : w[c]; }
    __device__ const T* residual(int c) const { return roomy ? r[c] : w[c]; }
    /// What components give to the divergence, in the place of w, which is no longer needed, or of the old velocity.
    __device__ T* flux(int c) { return roomy ? w[c] : u[c]; }
    __device__ const T* flux(int c) const { return roomy ? w[c] : u[c]; }
    __device__ T* old() { return roomy ? old_pressure : pressure; }
    __device__ const T* old() const { return roomy ? old_pressure : pressure; }
  };
  static constexpr std::size_t shared_bytes(LocalSolverKind local) {
    const bool iterative = local == LocalSolverKind::chebyshev || local == LocalSolverKind::cg;
    return sizeof(Memory) - (iterative ? 0 : 2 * sizeof(Memory::schur[0]));
  }

  struct Arguments {
    CellTopology topology;
    const PatchData<T>* kinds;
    const T* tables;
    const GeneralPatch* patches;
    LocalSolverKind local;
    T alpha;
    bool beside;
    const T* b;
    const T* x;
    T* y;
    bool add;
    T damping;
  };

  /// visit(i) for i < count, by all threads.
  template <class F>
  __device__ static void for_each(int count, F&& visit) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) visit(i);
  }
  /// The same by other threads: the last ones first, which have less to do where there are not enough things for all.
  template <class F>
  __device__ static void for_each_from_last(int count, F&& visit) {
    for (int i = threads - 1 - static_cast<int>(threadIdx.x); i < count; i += threads) visit(i);
  }
  /// What threads have stored is there for all.
  __device__ static void meet() { __syncthreads(); }
  /// Copies to shared memory on their way until meet_copies().
  __device__ static void copy(T& to, const T* from) { __pipeline_memcpy_async(&to, from, sizeof(T)); }
  /// Of what lies at multiples of `step` bytes.
  template <int step, class U>
  __device__ static void copy_all(U& to, const void* from) {
    static_assert(sizeof(U) % step == 0);
    for_each(static_cast<int>(sizeof(U)) / step, [&](int i) {
      __pipeline_memcpy_async(reinterpret_cast<char*>(&to) + i * step, static_cast<const char*>(from) + i * step, step);
    });
  }
  __device__ static void meet_copies() {
    __pipeline_commit();
    __pipeline_wait_prior(0);
    meet();
  }

  /// visit(c, column) for all columns of all components.
  template <class F>
  __device__ static void for_columns(F&& visit) {
    for_each(dim * columns, [&](int k) { visit(k / columns, k % columns); });
  }

  // --- places --------------------------------------------------------------------------------------------------------

  __device__ static int a_of(int c) { return (c + 1) % dim; }
  __device__ static int b_of(int c) { return (c + 2) % dim; }
  /// The cell that has a column of component c, in its lower (0) or upper (1) half along c.
  __device__ static int cell_of(int c, int column, int upper) {
    const int second = dim == 3 ? column / modes / n << b_of(c) : 0;
    return column % modes / n << a_of(c) | second | upper << c;
  }
  /// Place of that column in the records of its cells: of row i at + i * S::columns * interleave.
  __device__ static int start_of(int c, int column) {
    return (c * S::block + column % modes % n + (dim == 3 ? n * (column / modes % n) : 0)) * interleave;
  }
  static constexpr int row_step = S::columns * interleave;
  /// Where the 2n + 1 values of a column lie in a vector: in its lower and its upper cell and in the record above.
  struct Column {
    std::int64_t part[3];

    __device__ Column(const Memory& memory, int c, int column)
        : part{S::offset(memory.cells[cell_of(c, column, 0)]), S::offset(memory.cells[cell_of(c, column, 1)]),
               S::offset(memory.above[c][cell_of(c, column, 1)])} {
      const int start = start_of(c, column);
      for (std::int64_t& place : part) place += start;
    }
    __device__ std::int64_t operator[](int e) const { return part[e / n] + e % n * row_step; }
  };
  /// Place in the pressure array of mode i along c, in a column of component c.
  __device__ static int pressure_place(int c, int i, int column) {
    const auto stride = [](int a) { return a == 0 ? 1 : a == 1 ? modes : modes * modes; };
    return i * stride(c) + column % modes * stride(a_of(c)) + (dim == 3 ? column / modes * stride(b_of(c)) : 0);
  }
  /// The sum of what components give to the divergence at a place of the pressure array: of row i of each column there.
  __device__ static T divergence(const Memory& memory, int place) {
    const int index[3] = {place % modes, place / modes % modes, place / (modes * modes)};
    T sum{};
    for (int c = 0; c < dim; ++c) {
      sum += memory.flux(c)[index[c] * columns + index[a_of(c)] + (dim == 3 ? modes * index[b_of(c)] : 0)];
    }
    return sum;
  }
  /// Of value `place` of the pressure array: the corner of its cell, and where it is in the record.
  __device__ static int pressure_cell(int place) {
    int corner = 0;
    for (int a = 0; a < dim; ++a, place /= modes) corner |= place % modes / n << a;
    return corner;
  }
  __device__ static int pressure_start(int place) {
    int start = 0;
    for (int a = 0, stride = 1; a < dim; ++a, place /= modes, stride *= n) start += place % n * stride;
    return (dim * S::block + start) * interleave;
  }
  /// The other directions' bits of the corner of a patch, packed: which of the `halves` lines ends in direction t.
  __device__ static int half_of(int t, int corner) { return (corner & ((1 << t) - 1)) | corner >> (t + 1) << t; }
  __device__ static int lower_corner(int t, int half) { return (half & ((1 << t) - 1)) | half >> t << (t + 1); }

  __device__ static int count_of(const PatchData<T>& kind, int c) { return kind.last[c] - kind.first[c] + 1; }

  // --- 0: what the steps need ----------------------------------------------------------------------------------------

  /// The kind of a patch and its univariate tables, to shared memory; the eigenvalues closer.
  __device__ static void load_tables(const Arguments& arguments, int kind, Memory& memory) {
    const T* const tables = arguments.tables + kind * layout.size();
    static_assert(sizeof(memory.tables) == layout.inverse_lambda_at() * sizeof(T));
    copy_all<16>(memory.tables, tables);
    copy_all<8>(memory.kind, arguments.kinds + kind);
    const T* const inverse_lambda = tables + layout.inverse_lambda_at();
    constexpr int line = 128 / sizeof(T);
    for_each((dim * component + line - 1) / line, [&](int i) { prefetch(inverse_lambda + i * line); });
    if (threadIdx.x == 0) memory.inverse_lambda = inverse_lambda;
  }

  /// The records behind the ends of a patch and above its cells.
  __device__ static void look_up(const CellTopology& topology, Memory& memory) {
    for_each_from_last((2 * dim + 2 * dim) * halves, [&](int i) {
      const int side = i / halves;
      if (side < 2 * dim) {
        const int half = i % halves;
        const std::int32_t cell = memory.cells[lower_corner(side / 2, half) | side % 2 << side / 2];
        const Face face = topology.face[side][cell];
        const std::int32_t behind = topology.neighbour[side][cell];
        memory.behind[side][half] = face == Face::interior ? behind : -1 - face_weight(face);
      } else {
        const int c = (i - 2 * dim * halves) / corners;
        const int corner = i % corners;
        memory.above[c][corner] = topology.neighbour[2 * c + 1][memory.cells[corner]];
      }
    });
  }
  /// Those above the records behind the ends.
  __device__ static void look_up_above(const CellTopology& topology, Memory& memory) {
    for_each_from_last(dim * 2 * dim * halves, [&](int i) {
      const int c = i / (2 * dim * halves);
      const int side = i / halves % (2 * dim);
      const std::int32_t behind = memory.behind[side][i % halves];
      memory.above_behind[c][side][i % halves] = behind < 0 ? behind : topology.neighbour[2 * c + 1][behind];
    });
  }

  /// A value of b on its way, to where its residual will be or just closer.
  __device__ static void fetch(T& residual, const T* b) {
    if constexpr (roomy) {
      copy(residual, b);
    } else {
      prefetch(b);
    }
  }
  /// What vectors have in the patch's cells: b, and old values if there are any.
  __device__ static void load(const Arguments& arguments, Memory& memory) {
    const T* const x = arguments.x;
    for_columns([&](int c, int column) {
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        const std::int64_t at = S::offset(memory.cells[cell_of(c, column, upper)]) + start_of(c, column);
#pragma unroll
        for (int i = 0; i < n; ++i) {
          const int to = (upper * n + i) * columns + column;
          if (x != nullptr) copy(memory.u[c][to], x + at + i * row_step);
          fetch(memory.residual(c)[to], arguments.b + at + i * row_step);
        }
      }
    });
    for_each(pressures, [&](int i) {
      const std::int64_t at = S::offset(memory.cells[pressure_cell(i)]) + pressure_start(i);
      if (x != nullptr) copy(memory.old()[i], x + at);
      copy(memory.schur[0][i], arguments.b + at);
    });
  }
  /// The hats above.
  __device__ static void load_above(const Arguments& arguments, Memory& memory) {
    for_columns([&](int c, int column) {
      const std::int64_t at = S::offset(memory.above[c][cell_of(c, column, 1)]) + start_of(c, column);
      const int to = modes * columns + column;
      if (arguments.x != nullptr) copy(memory.u[c][to], arguments.x + at);
      fetch(memory.residual(c)[to], arguments.b + at);
    });
  }

  // --- 1: residual ---------------------------------------------------------------------------------------------------

  /// A line in the tangential direction c + 1 + tau: of row `row` of component c, of those of both cells.
  struct TangentialLine {
    int c;
    int row;
    int upper;               ///< its cell in direction c
    int i;                   ///< its row there, n + 1 each
    int t;                   ///< its direction
    int first;               ///< column it begins in
    int stride;              ///< from there on
    std::int32_t record[2];  ///< behind its ends, or -1 - weight of the face there
    int start;               ///< in those records
    int record_stride;

    static constexpr int count = dim * rows * others;
    __device__ TangentialLine(const Memory& memory, int tau, int k)
        : c(k / (rows * others)),
          row(k / others % rows),
          upper(row / (n + 1)),
          i(row % (n + 1)),
          t(tau == 0 ? a_of(c) : b_of(c)),
          first(k % others * (tau == 0 ? modes : 1)),
          stride(tau == 0 ? 1 : modes),
          start(start_of(c, first) + i % n * row_step),
          record_stride((tau == 0 ? 1 : n) * interleave) {
      const auto& records = i < n ? memory.behind : memory.above_behind[c];
      const int half = half_of(t, cell_of(c, first, upper));
      for (int end = 0; end < 2; ++end) record[end] = records[2 * t + end][half];
    }
    /// Its first value behind an end, or anything that is there where nothing is.
    __device__ const T* beyond(const T* x, int end) const {
      return x + S::offset(record[end] < 0 ? 0 : record[end]) + start;
    }
  };
  /// What lies behind the ends of lines on its way to the caches.
  __device__ static void fetch_beyond(const Arguments& arguments, int tau, const Memory& memory) {
    for_each(TangentialLine::count, [&](int k) {
      const TangentialLine line(memory, tau, k);
#pragma unroll
      for (int end = 0; end < 2; ++end) {
#pragma unroll
        for (int m = 0; m < n; ++m) prefetch(line.beyond(arguments.x, end) + m * line.record_stride);
      }
    });
  }
  /// w += nu L^O u in the tangential direction c + 1 + tau; the first of them adds to alpha u.
  __device__ static void apply_laplacian(const Tables& tables, const Arguments& arguments, int tau, Memory& memory) {
    for_each(TangentialLine::count, [&](int k) {
      const TangentialLine line(memory, tau, k);
      T beyond[2][n];
#pragma unroll
      for (int end = 0; end < 2; ++end) {
#pragma unroll
        for (int m = 0; m < n; ++m) {
          beyond[end][m] = __ldg(line.beyond(arguments.x, end) + m * line.record_stride);
        }
      }
      const T* const u = memory.u[line.c] + (line.upper * n + line.i) * columns + line.first;
      T* const w = memory.w[line.c] + line.row * columns + line.first;
      const int stride = line.stride;
      const auto own = [&](int half) { return [=](int m) { return u[(half * n + m) * stride]; }; };
      const auto behind = [&](int end) {
        return line.record[end] < 0 ? Line::reflected(tables, end, -1 - line.record[end], own(end))
                                    : Line::trace(tables, 1 - end, [&](int m) { return beyond[end][m]; });
      };
      const auto store = [&](int half) {
        return [=, &tables, &arguments, &line](int j, T image) {
          const int at = (half * n + j) * stride;
          w[at] = (tau == 0 ? arguments.alpha * u[at] : w[at]) + tables.factor[line.t] * image;
        };
      };
      Line::apply(tables, own(0), behind(0), Line::trace(tables, 0, own(1)), store(0));
      Line::apply(tables, own(1), Line::trace(tables, 1, own(0)), behind(1), store(1));
    });
  }

  /// r = b - A x of the patch, by functions of P, and in the pressure.
  __device__ static void residual(const Tables& tables, const Arguments& arguments, Memory& memory) {
    const bool with_x = arguments.x != nullptr;
    if (with_x && dim == 3) fetch_beyond(arguments, 1, memory);
#pragma unroll 1
    for (int tau = 0; tau < dim - 1 && with_x; ++tau) {
      apply_laplacian(tables, arguments, tau, memory);
      meet();
    }
    for_columns([&](int c, int column) {
      T* const residual = memory.residual(c) + column;
      T r[functions];
      if constexpr (roomy) {
#pragma unroll
        for (int e = 0; e < functions; ++e) r[e] = residual[e * columns];
      } else {
        const Column at(memory, c, column);
#pragma unroll
        for (int e = 0; e < functions; ++e) r[e] = __ldg(arguments.b + at[e]);
      }
      if (with_x) {
#pragma unroll
        for (int upper = 0; upper < 2; ++upper) {
          const T* const u = memory.u[c] + upper * n * columns + column;
          T* const flux = memory.flux(c) + upper * n * columns + column;
          const T* const w = memory.w[c] + upper * (n + 1) * columns + column;
          const T* const p = memory.old() + pressure_place(c, upper * n, column);
          const int p_step = pressure_place(c, 1, 0);
          const T jump = u[n * columns] - u[0];
#pragma unroll
          for (int j = 0; j <= n; ++j) {
            const T of_j = w[j * columns];
#pragma unroll
            for (int i = 0; i <= n; ++i) {
              if (mass_couples(n, i, j)) r[upper * n + i] -= tables.mass[i][j] * of_j;
            }
          }
          // Stiffness and divergence are the identity on bubbles; hats have the slopes -1 and 1.
          const T end = tables.factor[c] * jump - tables.inverse_h[c] * p[0];
          r[upper * n] += end;
          r[upper * n + n] -= end;
          flux[0] = tables.inverse_h[c] * jump;
#pragma unroll
          for (int i = 1; i < n; ++i) {
            const T bubble = u[i * columns];
            r[upper * n + i] -= tables.factor[c] * bubble - tables.inverse_h[c] * p[i * p_step];
            flux[i * columns] = tables.inverse_h[c] * bubble;
          }
        }
      }
#pragma unroll
      for (int e = 0; e < functions; ++e) residual[e * columns] = r[e];
    });
    meet();
    for_each(pressures, [&](int i) {
      memory.pressure[i] = with_x ? memory.schur[0][i] + divergence(memory, i) : memory.schur[0][i];
    });
    meet();
  }

  // --- 2: local solve ------------------------------------------------------------------------------------------------

  // Matrices times vectors of which one, that runs with the rows, stays in shared memory: loops over rows stay loops.
  static constexpr int together = 2;

  /// out = m^T in, where in(j) is the value for row j.
  template <int in_size, int out_size, class In>
  __device__ static void multiply_transposed(const Row (&m)[in_size], const In& in, T (&out)[out_size]) {
#pragma unroll
    for (int i = 0; i < out_size; ++i) out[i] = T(0);
#pragma unroll together
    for (int j = 0; j < in_size; ++j) {
      const T value = in(j);
#pragma unroll
      for (int i = 0; i < out_size; ++i) out[i] += m[j][i] * value;
    }
  }
  /// store(j, (m in)_j)
  template <int out_size, int in_size, class Store>
  __device__ static void multiply(const Row (&m)[out_size], const T (&in)[in_size], const Store& store) {
#pragma unroll together
    for (int j = 0; j < out_size; ++j) {
      T sum{};
#pragma unroll
      for (int i = 0; i < in_size; ++i) sum += m[j][i] * in[i];
      store(j, sum);
    }
  }
  /// A line to eigenfunctions (forward) or back.
  template <bool forward>
  __device__ static void transform_line(const Row (&m)[modes], T* line, int stride) {
    T values[modes];
    if constexpr (forward) {
      multiply_transposed(
          m, [&](int j) { return line[j * stride]; }, values);
#pragma unroll
      for (int i = 0; i < modes; ++i) line[i * stride] = values[i];
    } else {
#pragma unroll
      for (int i = 0; i < modes; ++i) values[i] = line[i * stride];
      multiply(m, values, [&](int j, T value) { line[j * stride] = value; });
    }
  }
  /// S_O^T, or S_O back, of velocities in their tangential direction c + 1 + tau and of the pressure in direction tau.
  template <bool forward>
  __device__ static void transform_tangential(int tau, Memory& memory) {
    constexpr int lines = functions * others;
    for_each(dim * lines + columns, [&](int k) {
      const int c = k / lines;
      const int row = k / others % functions;
      const int column = k - dim * lines;
      T* const line = c == dim ? memory.pressure + pressure_place(tau, 0, column)
                               : memory.residual(c) + row * columns + k % others * (tau == 0 ? modes : 1);
      const int stride = tau == 0 ? 1 : modes;  // of the pressure, too
      transform_line<forward>(memory.tables[c == dim ? tau : tau == 0 ? a_of(c) : b_of(c)].eigen_o, line, stride);
    });
    meet();
  }
  template <bool forward>
  __device__ static void transform_last_of_pressure(int column, Memory& memory) {
    constexpr int last = dim - 1;
    transform_line<forward>(memory.tables[last].eigen_o, memory.pressure + pressure_place(last, 0, column),
                            power(modes, last));
  }

  /// f /= lambda on a column.
  __device__ static void divide_by_lambda(int c, int column, const Memory& memory, T (&f)[functions]) {
    const T* const inverse = memory.inverse_lambda + c * component + column;
#pragma unroll
    for (int e = 0; e < functions; ++e) f[e] *= __ldg(inverse + e * columns);
  }
  /// What a column of f gives to the divergence: C f.
  __device__ static void store_flux(int c, int column, const T (&f)[functions], Memory& memory) {
    multiply(memory.tables[c].divergence, f, [&](int i, T flux) { memory.flux(c)[i * columns + column] = flux; });
  }
  /// f = A^-1 C^T p on a column.
  __device__ static void scaled_gradient(int c, int column, const T* p, const Memory& memory, T (&f)[functions]) {
    const T* const line = p + pressure_place(c, 0, column);
    const int stride = pressure_place(c, 1, 0);
    multiply_transposed(
        memory.tables[c].divergence, [&](int i) { return line[i * stride]; }, f);
    divide_by_lambda(c, column, memory, f);
  }

  /// residual -> correction
  __device__ static void solve(LocalSolverKind local, Memory& memory) {
    const PatchData<T>& kind = memory.kind;
    if (local == LocalSolverKind::dense) return solve_dense(kind, memory);
#pragma unroll 1
    for (int tau = 0; tau < dim - 1; ++tau) transform_tangential<true>(tau, memory);
    // f = A^-1 r, C f; meanwhile the pressure in the last direction.
    for_each((dim + 1) * columns, [&](int k) {
      const int c = k / columns;
      const int column = k % columns;
      if (c == dim) return transform_last_of_pressure<true>(column, memory);
      T* const r = memory.residual(c) + column;
      T f[functions];
      multiply_transposed(
          memory.tables[c].eigen_p, [&](int e) { return r[e * columns]; }, f);
      divide_by_lambda(c, column, memory, f);
#pragma unroll
      for (int e = 0; e < functions; ++e) r[e * columns] = f[e];
      store_flux(c, column, f, memory);
    });
    meet();
    // S p = -(g + B A^-1 f)
    if (local == LocalSolverKind::direct) {
      schur_direct(kind, memory);
    } else {
      for_each(pressures, [&](int i) { memory.schur[0][i] = -memory.pressure[i] - divergence(memory, i); });
      meet();
      local == LocalSolverKind::chebyshev ? schur_chebyshev(kind, memory) : schur_cg(kind, memory);
      for_each(pressures, [&](int i) { memory.schur[0][i] = memory.pressure[i]; });
      meet();
    }
    // f + A^-1 C^T p, from where p has been copied; meanwhile p in the last direction.
    for_each((dim + 1) * columns, [&](int k) {
      const int c = k / columns;
      const int column = k % columns;
      if (c == dim) return transform_last_of_pressure<false>(column, memory);
      T* const r = memory.residual(c) + column;
      T f[functions];
      scaled_gradient(c, column, memory.schur[0], memory, f);
#pragma unroll
      for (int e = 0; e < functions; ++e) f[e] += r[e * columns];
      multiply(memory.tables[c].eigen_p, f, [&](int e, T value) { r[e * columns] = value; });
    });
    meet();
#pragma unroll 1
    for (int tau = dim - 2; tau >= 0; --tau) transform_tangential<false>(tau, memory);
  }

  /// p = S^+ rhs, to its place and that of the right-hand side, all blocks at once: a thread has four rows of one, of a
  /// part of its columns. Blocks are of one size; the right-hand side is counted as their columns are.
  __device__ static void schur_direct(const PatchData<T>& kind, Memory& memory) {
    const int* const length = kind.block_length[0];
    const int size = length[0] * length[1] * length[2];
    const int quads = (size + 3) / 4;
    const auto place = [&](int k) {
      const int* const start = kind.block_start[k / size];
      const int i = k % size;
      return start[0] + i % length[0] +
             modes * (start[1] + i / length[0] % length[1] + modes * (start[2] + i / (length[0] * length[1])));
    };
    T* const rhs = memory.schur[0];
    for_each(pressures, [&](int k) {
      const int at = place(k);
      rhs[k] = -memory.pressure[at] - divergence(memory, at);
    });
    meet();
    T* const sums = memory.flux(0);
    for_each(parts * kind.block_count * quads, [&](int i) {
      const int part = i % parts;
      const int block = i / parts / quads;
      const int row = i / parts % quads * 4;
      const int end = size * (part + 1) / parts;
      const T* const inverse = kind.block_inverse[block] + row;  // symmetric: rows are columns
      const T* const mine = rhs + block * size;
      T sum[4]{};
#pragma unroll(n > 4 ? 16 : 8)
      for (int j = size * part / parts; j < end; ++j) {
        T four[4];
        load_four(inverse + j * (4 * quads), four);
#pragma unroll
        for (int r = 0; r < 4; ++r) sum[r] += four[r] * mine[j];
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        if (row + r < size) sums[part * pressures + block * size + row + r] = sum[r];
      }
    });
    meet();
    for_each(pressures, [&](int k) {
      T sum{};
#pragma unroll
      for (int part = 0; part < parts; ++part) sum += sums[part * pressures + k];
      const int at = place(k);
      memory.pressure[at] = sum;
      memory.schur[0][at] = sum;
    });
    meet();
  }

  // Iterative solvers: schur[0] -> pressure.

  /// out = S v
  __device__ static void schur_apply(const T* v, T* out, Memory& memory) {
    for_columns([&](int c, int column) {
      T f[functions];
      scaled_gradient(c, column, v, memory, f);
      store_flux(c, column, f, memory);
    });
    meet();
    for_each(pressures, [&](int i) { out[i] = divergence(memory, i); });
    meet();
  }

  __device__ static T dot(const T* x, const T* y, Memory& memory) {
    T sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < pressures; i += threads) sum += x[i] * y[i];
    memory.sums[threadIdx.x] = sum;
    __syncthreads();
    for (int count = threads; count > 1; count = (count + 1) / 2) {
      const int upper = (count + 1) / 2 + static_cast<int>(threadIdx.x);
      if (upper < count) memory.sums[threadIdx.x] += memory.sums[upper];
      __syncthreads();
    }
    const T total = memory.sums[0];
    __syncthreads();
    return total;
  }
  __device__ static void remove_constant(const PatchData<T>& patch, T* x, Memory& memory) {
    if (patch.constant == nullptr) return;
    const T sum = dot(patch.constant, x, memory);
    for_each(pressures, [&](int i) { x[i] -= patch.constant[i] * sum; });
    meet();
  }

  /// m^T p (forward) or m p in direction a.
  __device__ static void transform_to_modes(const T* m, bool forward, int a, T* pressure) {
    for_each(columns, [&](int column) {
      T* const line = pressure + pressure_place(a, 0, column);
      const int stride = pressure_place(a, 1, 0);
      T out[modes]{};
      for (int j = 0; j < modes; ++j) {
#pragma unroll
        for (int i = 0; i < modes; ++i)
          out[i] += __ldg(m + (forward ? j * modes + i : i * modes + j)) * line[j * stride];
      }
#pragma unroll
      for (int i = 0; i < modes; ++i) line[i * stride] = out[i];
    });
    meet();
  }
  /// P^-1 r, in `room`; r itself if there is no preconditioner.
  __device__ static const T* preconditioned(const PatchData<T>& kind, const T* r, T* room) {
    if (kind.preconditioner == nullptr) return r;
    for_each(pressures, [&](int i) { room[i] = r[i]; });
    meet();
#pragma unroll 1
    for (int a = 0; a < dim; ++a) transform_to_modes(kind.pressure_modes[a], true, a, room);
    for_each(pressures, [&](int i) { room[i] *= kind.preconditioner[i]; });
    meet();
#pragma unroll 1
    for (int a = 0; a < dim; ++a) transform_to_modes(kind.pressure_modes[a], false, a, room);
    return room;
  }

  /// Chebyshev iteration of fixed degree on the known spectrum of P^-1 S: linear, no inner products.
  __device__ static void schur_chebyshev(const PatchData<T>& kind, Memory& memory) {
    constexpr int degree = 8;
    T* r = memory.schur[0];
    T* d = memory.schur[1];
    T* s = memory.schur[2];
    T* x = memory.pressure;
    remove_constant(kind, r, memory);
    const T middle = T(0.5) * (kind.schur_bounds[1] + kind.schur_bounds[0]);
    const T half = T(0.5) * (kind.schur_bounds[1] - kind.schur_bounds[0]);
    const T sigma = middle / half;
    T rho = T(1) / sigma;
    const T* z = preconditioned(kind, r, s);
    for_each(pressures, [&](int i) {
      d[i] = z[i] / middle;
      x[i] = d[i];
    });
    meet();
    for (int step = 1; step < degree; ++step) {
      schur_apply(d, s, memory);
      const T next = T(1) / (T(2) * sigma - rho);
      const T keep = next * rho;
      const T gain = T(2) * next / half;
      for_each(pressures, [&](int i) { r[i] -= s[i]; });
      meet();
      z = preconditioned(kind, r, s);
      for_each(pressures, [&](int i) {
        d[i] = keep * d[i] + gain * z[i];
        x[i] += d[i];
      });
      meet();
      rho = next;
    }
  }

  /// Conjugate gradients until the residual is negligible.
  __device__ static void schur_cg(const PatchData<T>& kind, Memory& memory) {
    constexpr int most = 30;
    constexpr T tolerance = sizeof(T) == 4 ? T(1e-5) : T(1e-9);
    T* r = memory.schur[0];
    T* d = memory.schur[1];
    T* s = memory.schur[2];
    T* x = memory.pressure;
    remove_constant(kind, r, memory);
    const T* z = preconditioned(kind, r, s);
    for_each(pressures, [&](int i) {
      d[i] = z[i];
      x[i] = 0;
    });
    meet();
    T rz = dot(r, z, memory);
    const T enough = tolerance * tolerance * rz;
    for (int step = 0; step < most && rz > enough; ++step) {
      schur_apply(d, s, memory);
      const T alpha = rz / dot(d, s, memory);
      for_each(pressures, [&](int i) {
        x[i] += alpha * d[i];
        r[i] -= alpha * s[i];
      });
      meet();
      z = preconditioned(kind, r, s);
      const T next = dot(r, z, memory);
      const T beta = next / rz;
      for_each(pressures, [&](int i) { d[i] = z[i] + beta * d[i]; });
      meet();
      rz = next;
    }
  }

  /// The whole patch matrix inverted (the paper's "direct solver").
  __device__ static void solve_dense(const PatchData<T>& kind, Memory& memory) {
    const auto size = static_cast<int>(kind.dense_size);
    struct Unknown {
      T* value;
      T* result;
    };
    const auto unknown = [&](int i) -> Unknown {  // in the order of the matrix
      for (int c = 0; c < dim; ++c) {
        const int count = count_of(kind, c) * columns;
        if (i < count) return {memory.residual(c) + kind.first[c] * columns + i, memory.flux(c) + i};
        i -= count;
      }
      return {memory.pressure + i, memory.schur[0] + i};
    };
    for_each(size, [&](int i) {
      T sum{};
      for (int j = 0; j < size; ++j) sum += kind.dense[static_cast<std::int64_t>(j) * size + i] * *unknown(j).value;
      *unknown(i).result = sum;
    });
    meet();
    for_each(size, [&](int i) {
      const Unknown of = unknown(i);
      *of.value = *of.result;
    });
    meet();
  }

  // --- 3: new values -------------------------------------------------------------------------------------------------

  /// y = x + correction, or y += damping * correction, on all values of the patch's cells and on the hats at its upper
  /// ends that belong to it. Hats at its lower ends may not.
  __device__ static void write(const Arguments& arguments, const Memory& memory) {
    const PatchData<T>& kind = memory.kind;
    const bool from_zero = !arguments.add && arguments.x == nullptr;
    const T* const base = arguments.add ? arguments.y : roomy ? nullptr : arguments.x;  // if it is not here
    const auto base_of = [&](const T& here, std::int64_t at) {
      return from_zero ? T(0) : base == nullptr ? here : base[at];
    };
    for_columns([&](int c, int column) {
      const Column at(memory, c, column);
      T y[functions];
#pragma unroll
      for (int e = 0; e < functions; ++e) y[e] = base_of(memory.u[c][e * columns + column], at[e]);
#pragma unroll
      for (int e = 0; e < functions; ++e) {
        const bool unknown = e >= kind.first[c] && e <= kind.last[c];
        if (e == modes && !unknown) continue;  // in a cell of another patch
        const T correction = unknown ? memory.residual(c)[e * columns + column] : T(0);
        arguments.y[at[e]] = y[e] + arguments.damping * correction;
      }
    });
    for_each(pressures, [&](int i) {
      const std::int64_t at = S::offset(memory.cells[pressure_cell(i)]) + pressure_start(i);
      arguments.y[at] = base_of(memory.old()[i], at) + arguments.damping * memory.pressure[i];
    });
  }

  __device__ static void smooth(const Tables& tables, const Arguments& arguments, Memory& memory) {
    const GeneralPatch& patch = arguments.patches[blockIdx.x];
    const int kind = patch.kind;
    for_each(corners, [&](int corner) { memory.cells[corner] = patch.cells[corner]; });
    meet();
    look_up(arguments.topology, memory);
    if (!arguments.beside) wait_for_earlier_kernels();
    load(arguments, memory);
    load_tables(arguments, kind, memory);
    meet();
    look_up_above(arguments.topology, memory);
    load_above(arguments, memory);
    meet_copies();
    residual(tables, arguments, memory);
    solve(arguments.local, memory);
    write(arguments, memory);
    if (arguments.beside) wait_for_earlier_kernels();  // so that who waits for this kernel waits for that one too
  }

  static void launch_smooth(const GeneralArguments<T>& arguments, Stream stream);
};

template <class T, int dim, int order>
__global__
__launch_bounds__(GeneralSmoother<T, dim, order>::threads, GeneralSmoother<T, dim, order>::blocks) void smooth_patches(
    const __grid_constant__ OperatorTables<T, dim, order> tables,
    const __grid_constant__ typename GeneralSmoother<T, dim, order>::Arguments arguments) {
  using Smoother = GeneralSmoother<T, dim, order>;
  extern __shared__ __align__(16) unsigned char memory[];
  Smoother::smooth(tables, arguments, *reinterpret_cast<typename Smoother::Memory*>(memory));
}

template <class T, int dim, int order>
void GeneralSmoother<T, dim, order>::launch_smooth(const GeneralArguments<T>& arguments, Stream stream) {
  static_assert(shared_bytes(LocalSolverKind::direct) <= most_shared_bytes, "a patch of this order does not fit");
  if (shared_bytes(arguments.local) > most_shared_bytes) {
    throw ResourceError(
        "the local solvers \"chebyshev\" and \"cg\" need more shared memory than a GPU has for patches of this order "
        "in "
        "double precision: use \"direct\", single precision (\"mixed\") or --device cpu");
  }
  const Tables tables(*arguments.cell);
  const Arguments plain{arguments.topology, arguments.kinds, arguments.tables,
                        arguments.patches,  arguments.local, arguments.cell->alpha,
                        arguments.beside,   arguments.b,     arguments.x,
                        arguments.y,        arguments.add,   arguments.add ? arguments.damping : T(1)};
  launch("smooth (general)", smooth_patches<T, dim, order>, static_cast<unsigned>(arguments.count), threads,
         shared_bytes(arguments.local), stream, tables, plain);
}

}  // namespace solenoid::cuda
