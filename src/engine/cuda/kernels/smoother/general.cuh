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
/// that time is latency: every step asks memory for all that it needs at once, and tables are in shared memory before
/// old values are waited for.
///
/// Shared memory, in numbers: u [dim][(N + 1) columns], w [dim][(N + 2) columns], the pressure, one more (direct,
/// dense) or three (Chebyshev, CG); S_O, S_P and C of each direction; records. Traffic per patch: its values of b, x
/// and y once, those of the cells behind its ends, and the tables of its kind from the caches.

#include "engine/cuda/kernels/line_operator.cuh"
#include "engine/cuda/kernels/smoother/general.hpp"
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
    return whole_warps < 512 ? whole_warps : 512;
  }();
  static constexpr int padded(int row) { return (row + 3) / 4 * 4; }

  /// Univariate tables of a direction: rows are functions, columns eigenfunctions. All 2n + 1 functions of P have their
  /// rows: those that are no unknowns, and eigenfunctions that there are not, are zero.
  struct Direction {
    T eigen_o[modes][padded(modes)];
    T eigen_p[functions][padded(functions)];
    T divergence[modes][padded(functions)];
  };
  struct Memory {
    alignas(16) Direction tables[dim];
    T u[dim][component];       ///< old velocity, then what components give to the divergence (flux)
    T w[dim][rows * columns];  ///< w, then by functions of P: residual, f, correction
    T pressure[pressures];     ///< old, residual, correction
    std::int32_t cells[corners];
    std::int32_t above[dim][corners];                 ///< the records above cells
    std::int32_t behind[2 * dim][halves];             ///< the record behind an end, or -1 - weight of the face there
    std::int32_t above_behind[dim][2 * dim][halves];  ///< the record above that one
    T sums[threads];
    T schur[3][pressures];  ///< right-hand side; two more vectors of the iterative solvers
  };
  static constexpr std::size_t shared_bytes(LocalSolverKind local) {
    const bool iterative = local == LocalSolverKind::chebyshev || local == LocalSolverKind::cg;
    return sizeof(Memory) - (iterative ? 0 : 2 * sizeof(Memory::schur[0]));
  }

  struct Arguments {
    CellTopology topology;
    const PatchData<T>* kinds;
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

  /// visit(i) for i < count, by all threads; then they wait for each other.
  template <class F>
  __device__ static void for_each(int count, F&& visit) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) visit(i);
    __syncthreads();
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
      sum += memory.u[c][index[c] * columns + index[a_of(c)] + (dim == 3 ? modes * index[b_of(c)] : 0)];
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

  /// The tables of a kind of patch to shared memory.
  __device__ static void load_tables(const PatchData<T>& kind, Memory& memory) {
    const auto fill = [&](auto& to, auto&& value) {
      constexpr int row = sizeof(to[0]) / sizeof(T);
      constexpr int size = sizeof(to) / sizeof(T);
      for (int i = static_cast<int>(threadIdx.x); i < size; i += threads)
        to[i / row][i % row] = value(i / row, i % row);
    };
#pragma unroll 1
    for (int a = 0; a < dim; ++a) {
      const int first = kind.first[a];
      const int count = count_of(kind, a);
      const T* const eigen_o = kind.eigen_o[a];
      const T* const eigen_p = kind.eigen_p[a];
      const T* const divergence = kind.divergence[a];
      fill(memory.tables[a].eigen_o, [&](int i, int j) { return j < modes ? __ldg(eigen_o + i * modes + j) : T(0); });
      fill(memory.tables[a].eigen_p, [&](int e, int j) {
        return e >= first && e < first + count && j < count ? __ldg(eigen_p + (e - first) * count + j) : T(0);
      });
      fill(memory.tables[a].divergence,
           [&](int i, int j) { return j < count ? __ldg(divergence + i * count + j) : T(0); });
    }
  }

  /// The records of a patch and of what is behind its ends.
  __device__ static void look_up(const CellTopology& topology, const GeneralPatch& patch, Memory& memory) {
    for_each(corners, [&](int corner) {
      const std::int32_t cell = patch.cells[corner >> 1];
      memory.cells[corner] = (corner & 1) != 0 ? topology.neighbour[1][cell] : cell;
    });
    for_each((2 * dim + dim * 2) * halves, [&](int i) {
      const int side = i / halves;
      if (side < 2 * dim) {
        const int half = i % halves;
        const std::int32_t cell = memory.cells[lower_corner(side / 2, half) | side % 2 << side / 2];
        const Face face = topology.face[side][cell];
        memory.behind[side][half] = face == Face::interior ? topology.neighbour[side][cell] : -1 - face_weight(face);
      } else {
        const int c = (i - 2 * dim * halves) / corners;
        const int corner = i % corners;
        memory.above[c][corner] = topology.neighbour[2 * c + 1][memory.cells[corner]];
      }
    });
    for_each(dim * 2 * dim * halves, [&](int i) {
      const int c = i / (2 * dim * halves);
      const int side = i / halves % (2 * dim);
      const std::int32_t behind = memory.behind[side][i % halves];
      memory.above_behind[c][side][i % halves] = behind < 0 ? behind : topology.neighbour[2 * c + 1][behind];
    });
  }

  // --- 1: residual ---------------------------------------------------------------------------------------------------

  /// Old values, if there are any, and b of the pressure, to where its residual will be; b of velocities comes closer.
  __device__ static void load(const Arguments& arguments, Memory& memory) {
    const T* const x = arguments.x;
    for_columns([&](int c, int column) {
      const Column at(memory, c, column);
      T u[functions]{};
#pragma unroll
      for (int e = 0; e < functions; ++e) {
        if (x != nullptr) u[e] = __ldg(x + at[e]);
        prefetch(arguments.b + at[e]);
      }
#pragma unroll
      for (int e = 0; e < functions; ++e) memory.u[c][e * columns + column] = u[e];
    });
    for_each(pressures, [&](int i) {
      const std::int64_t at = S::offset(memory.cells[pressure_cell(i)]) + pressure_start(i);
      if (x != nullptr) memory.pressure[i] = __ldg(x + at);
      memory.schur[0][i] = __ldg(arguments.b + at);
    });
  }

  /// w += nu L^O u in the tangential direction c + 1 + tau; the first of them adds to alpha u.
  __device__ static void apply_laplacian(const Tables& tables, const Arguments& arguments, int tau, Memory& memory) {
    const int stride = tau == 0 ? 1 : modes;
    const int other_stride = tau == 0 ? modes : 1;
    const int record_stride = (tau == 0 ? 1 : n) * interleave;
    for_each(dim * rows * others, [&](int k) {
      const int c = k / (rows * others);
      const int row = k / others % rows;
      const int first = k % others * other_stride;
      const int upper = row / (n + 1);
      const int i = row % (n + 1);
      const int t = tau == 0 ? a_of(c) : b_of(c);
      const T* const u = memory.u[c] + (upper * n + i) * columns + first;
      T* const w = memory.w[c] + row * columns + first;
      const auto own = [&](int half) { return [=](int m) { return u[(half * n + m) * stride]; }; };
      // Of what is behind the ends, or anything that is there where nothing is.
      const int half = half_of(t, cell_of(c, first, upper));
      const auto& records = i < n ? memory.behind : memory.above_behind[c];
      const int record[2]{records[2 * t][half], records[2 * t + 1][half]};
      const int start = start_of(c, first) + (i < n ? i : 0) * row_step;
      T beyond[2][n];
#pragma unroll
      for (int end = 0; end < 2; ++end) {
        const T* const values = arguments.x + S::offset(record[end] < 0 ? 0 : record[end]) + start;
#pragma unroll
        for (int m = 0; m < n; ++m) beyond[end][m] = __ldg(values + m * record_stride);
      }
      const auto behind = [&](int end) {
        return record[end] < 0 ? Line::reflected(tables, end, -1 - record[end], own(end))
                               : Line::trace(tables, 1 - end, [&](int m) { return beyond[end][m]; });
      };
      const auto store = [&](int half) {
        return [=, &tables, &arguments](int j, T image) {
          const int at = (half * n + j) * stride;
          w[at] = (tau == 0 ? arguments.alpha * u[at] : w[at]) + tables.factor[t] * image;
        };
      };
      Line::apply(tables, own(0), behind(0), Line::trace(tables, 0, own(1)), store(0));
      Line::apply(tables, own(1), Line::trace(tables, 1, own(0)), behind(1), store(1));
    });
  }

  /// r = b - A x of the patch, in w by functions of P, and in the pressure.
  __device__ static void residual(const Tables& tables, const Arguments& arguments, Memory& memory) {
    const bool with_x = arguments.x != nullptr;
#pragma unroll 1
    for (int tau = 0; tau < dim - 1 && with_x; ++tau) apply_laplacian(tables, arguments, tau, memory);
    for_columns([&](int c, int column) {
      const Column at(memory, c, column);
      T r[functions];
#pragma unroll
      for (int e = 0; e < functions; ++e) r[e] = __ldg(arguments.b + at[e]);
      if (with_x) {
#pragma unroll
        for (int upper = 0; upper < 2; ++upper) {
          T* const u = memory.u[c] + upper * n * columns + column;
          const T* const w = memory.w[c] + upper * (n + 1) * columns + column;
          const T* const p = memory.pressure + pressure_place(c, upper * n, column);
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
          u[0] = tables.inverse_h[c] * jump;  // the flux from here on
#pragma unroll
          for (int i = 1; i < n; ++i) {
            const T bubble = u[i * columns];
            r[upper * n + i] -= tables.factor[c] * bubble - tables.inverse_h[c] * p[i * p_step];
            u[i * columns] = tables.inverse_h[c] * bubble;
          }
        }
      }
#pragma unroll
      for (int e = 0; e < functions; ++e) memory.w[c][e * columns + column] = r[e];
    });
    for_each(pressures, [&](int i) {
      memory.pressure[i] = with_x ? memory.schur[0][i] + divergence(memory, i) : memory.schur[0][i];
    });
  }

  // --- 2: local solve ------------------------------------------------------------------------------------------------

  /// out = m^T in (forward: to eigenfunctions) or m in.
  template <bool forward, int rows_, int row, int out_size, int in_size>
  __device__ static void multiply(const T (&m)[rows_][row], const T (&in)[in_size], T (&out)[out_size]) {
#pragma unroll
    for (int i = 0; i < out_size; ++i) out[i] = T(0);
#pragma unroll
    for (int j = 0; j < (forward ? in_size : out_size); ++j) {
#pragma unroll
      for (int i = 0; i < (forward ? out_size : in_size); ++i) {
        forward ? out[i] += m[j][i] * in[j] : out[j] += m[j][i] * in[i];
      }
    }
  }
  template <bool forward>
  __device__ static void transform_line(const T (&m)[modes][padded(modes)], T* line, int stride) {
    T in[modes];
    T out[modes];
#pragma unroll
    for (int i = 0; i < modes; ++i) in[i] = line[i * stride];
    multiply<forward>(m, in, out);
#pragma unroll
    for (int i = 0; i < modes; ++i) line[i * stride] = out[i];
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
                               : memory.w[c] + row * columns + k % others * (tau == 0 ? modes : 1);
      const int stride = tau == 0 ? 1 : modes;  // of the pressure, too
      transform_line<forward>(memory.tables[c == dim ? tau : tau == 0 ? a_of(c) : b_of(c)].eigen_o, line, stride);
    });
  }
  template <bool forward>
  __device__ static void transform_last_of_pressure(int column, Memory& memory) {
    constexpr int last = dim - 1;
    transform_line<forward>(memory.tables[last].eigen_o, memory.pressure + pressure_place(last, 0, column),
                            power(modes, last));
  }

  /// 1 / lambda on a column.
  __device__ static void load_inverse_lambda(const PatchData<T>& kind, int c, int column, T (&inverse)[functions]) {
    const int count = count_of(kind, c);
    const T* const from = kind.inverse_lambda[c] + column;
#pragma unroll
    for (int e = 0; e < functions; ++e) inverse[e] = e < count ? __ldg(from + e * columns) : T(0);
  }
  /// What a column of f gives to the divergence: C f.
  __device__ static void store_flux(int c, int column, const T (&f)[functions], Memory& memory) {
    T flux[modes];
    multiply<false>(memory.tables[c].divergence, f, flux);
#pragma unroll
    for (int i = 0; i < modes; ++i) memory.u[c][i * columns + column] = flux[i];
  }
  /// f = A^-1 C^T p on a column.
  __device__ static void scaled_gradient(const PatchData<T>& kind, int c, int column, const T* p, const Memory& memory,
                                         T (&f)[functions]) {
    T line[modes];
    T inverse[functions];
    load_inverse_lambda(kind, c, column, inverse);
#pragma unroll
    for (int i = 0; i < modes; ++i) line[i] = p[pressure_place(c, i, column)];
    multiply<true>(memory.tables[c].divergence, line, f);
#pragma unroll
    for (int e = 0; e < functions; ++e) f[e] *= inverse[e];
  }

  /// residual -> correction
  __device__ static void solve(const PatchData<T>& kind, LocalSolverKind local, Memory& memory) {
    if (local == LocalSolverKind::dense) return solve_dense(kind, memory);
#pragma unroll 1
    for (int tau = 0; tau < dim - 1; ++tau) transform_tangential<true>(tau, memory);
    // f = A^-1 r, C f; meanwhile the pressure in the last direction.
    for_each((dim + 1) * columns, [&](int k) {
      const int c = k / columns;
      const int column = k % columns;
      if (c == dim) return transform_last_of_pressure<true>(column, memory);
      T* const w = memory.w[c] + column;
      T inverse[functions];
      T r[functions];
      T f[functions];
      load_inverse_lambda(kind, c, column, inverse);
#pragma unroll
      for (int e = 0; e < functions; ++e) r[e] = w[e * columns];
      multiply<true>(memory.tables[c].eigen_p, r, f);
#pragma unroll
      for (int e = 0; e < functions; ++e) {
        f[e] *= inverse[e];
        w[e * columns] = f[e];
      }
      store_flux(c, column, f, memory);
    });
    // S p = -(g + B A^-1 f)
    if (local == LocalSolverKind::direct) {
      schur_direct(kind, memory);
    } else {
      for_each(pressures, [&](int i) { memory.schur[0][i] = -memory.pressure[i] - divergence(memory, i); });
      local == LocalSolverKind::chebyshev ? schur_chebyshev(kind, memory) : schur_cg(kind, memory);
    }
    for_columns([&](int c, int column) {
      T f[functions];
      T u[functions];
      scaled_gradient(kind, c, column, memory.pressure, memory, f);
      T* const w = memory.w[c] + column;
#pragma unroll
      for (int e = 0; e < functions; ++e) f[e] += w[e * columns];
      multiply<false>(memory.tables[c].eigen_p, f, u);
#pragma unroll
      for (int e = 0; e < functions; ++e) w[e * columns] = u[e];
    });
    for_each(columns, [&](int column) { transform_last_of_pressure<false>(column, memory); });
#pragma unroll 1
    for (int tau = dim - 2; tau >= 0; --tau) transform_tangential<false>(tau, memory);
  }

  /// p = S^+ rhs, one block after the other: a thread has a row. Blocks are of one size; the right-hand side is counted
  /// as their columns are.
  __device__ static void schur_direct(const PatchData<T>& kind, Memory& memory) {
    const int* const length = kind.block_length[0];
    const int size = length[0] * length[1] * length[2];
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
    for_each(pressures, [&](int k) {
      const T* const inverse = kind.block_inverse[k / size] + k % size;  // symmetric: neighbours read neighbours
      const T* const mine = rhs + k / size * size;
      T sum{};
#pragma unroll 16
      for (int j = 0; j < size; ++j) sum += __ldg(inverse + j * size) * mine[j];
      memory.pressure[place(k)] = sum;
    });
  }

  // Iterative solvers: schur[0] -> pressure.

  /// out = S v
  __device__ static void schur_apply(const PatchData<T>& kind, const T* v, T* out, Memory& memory) {
    for_columns([&](int c, int column) {
      T f[functions];
      scaled_gradient(kind, c, column, v, memory, f);
      store_flux(c, column, f, memory);
    });
    for_each(pressures, [&](int i) { out[i] = divergence(memory, i); });
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
  }
  /// P^-1 r, in `room`; r itself if there is no preconditioner.
  __device__ static const T* preconditioned(const PatchData<T>& kind, const T* r, T* room) {
    if (kind.preconditioner == nullptr) return r;
    for_each(pressures, [&](int i) { room[i] = r[i]; });
#pragma unroll 1
    for (int a = 0; a < dim; ++a) transform_to_modes(kind.pressure_modes[a], true, a, room);
    for_each(pressures, [&](int i) { room[i] *= kind.preconditioner[i]; });
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
    for (int step = 1; step < degree; ++step) {
      schur_apply(kind, d, s, memory);
      const T next = T(1) / (T(2) * sigma - rho);
      const T keep = next * rho;
      const T gain = T(2) * next / half;
      for_each(pressures, [&](int i) { r[i] -= s[i]; });
      z = preconditioned(kind, r, s);
      for_each(pressures, [&](int i) {
        d[i] = keep * d[i] + gain * z[i];
        x[i] += d[i];
      });
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
    T rz = dot(r, z, memory);
    const T enough = tolerance * tolerance * rz;
    for (int step = 0; step < most && rz > enough; ++step) {
      schur_apply(kind, d, s, memory);
      const T alpha = rz / dot(d, s, memory);
      for_each(pressures, [&](int i) {
        x[i] += alpha * d[i];
        r[i] -= alpha * s[i];
      });
      z = preconditioned(kind, r, s);
      const T next = dot(r, z, memory);
      const T beta = next / rz;
      for_each(pressures, [&](int i) { d[i] = z[i] + beta * d[i]; });
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
        if (i < count) return {memory.w[c] + kind.first[c] * columns + i, memory.u[c] + i};
        i -= count;
      }
      return {memory.pressure + i, memory.schur[0] + i};
    };
    for_each(size, [&](int i) {
      T sum{};
      for (int j = 0; j < size; ++j) sum += kind.dense[static_cast<std::int64_t>(j) * size + i] * *unknown(j).value;
      *unknown(i).result = sum;
    });
    for_each(size, [&](int i) {
      const Unknown of = unknown(i);
      *of.value = *of.result;
    });
  }

  // --- 3: new values -------------------------------------------------------------------------------------------------

  /// y = x + correction, or y += damping * correction, on all values of the patch's cells and on the hats at its upper
  /// ends that belong to it. Hats at its lower ends may not.
  __device__ static void write(const Arguments& arguments, const PatchData<T>& kind, const Memory& memory) {
    const T* const base = arguments.add ? arguments.y : arguments.x;
    for_columns([&](int c, int column) {
      const Column at(memory, c, column);
      T y[functions]{};
#pragma unroll
      for (int e = 0; e < functions && base != nullptr; ++e) y[e] = base[at[e]];
#pragma unroll
      for (int e = 0; e < functions; ++e) {
        const bool unknown = e >= kind.first[c] && e <= kind.last[c];
        if (e == modes && !unknown) continue;  // in a cell of another patch
        const T correction = unknown ? memory.w[c][e * columns + column] : T(0);
        arguments.y[at[e]] = y[e] + arguments.damping * correction;
      }
    });
    for_each(pressures, [&](int i) {
      const std::int64_t at = S::offset(memory.cells[pressure_cell(i)]) + pressure_start(i);
      arguments.y[at] = (base == nullptr ? T(0) : base[at]) + arguments.damping * memory.pressure[i];
    });
  }

  __device__ static void smooth(const Tables& tables, const Arguments& arguments, Memory& memory) {
    const GeneralPatch patch = arguments.patches[blockIdx.x];
    const PatchData<T>& kind = arguments.kinds[patch.kind];
    load_tables(kind, memory);
    look_up(arguments.topology, patch, memory);
    if (!arguments.beside) wait_for_earlier_kernels();
    load(arguments, memory);
    residual(tables, arguments, memory);
    solve(kind, arguments.local, memory);
    write(arguments, kind, memory);
    if (arguments.beside) wait_for_earlier_kernels();  // so that who waits for this kernel waits for that one too
  }

  static void launch_smooth(const GeneralArguments<T>& arguments, Stream stream);
};

template <class T, int dim, int order>
__global__ __launch_bounds__(GeneralSmoother<T, dim, order>::threads) void smooth_patches(
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
  const Arguments plain{arguments.topology,
                        arguments.kinds,
                        arguments.patches,
                        arguments.local,
                        arguments.cell->alpha,
                        arguments.beside,
                        arguments.b,
                        arguments.x,
                        arguments.y,
                        arguments.add,
                        arguments.add ? arguments.damping : T(1)};
  launch("smooth (general)", smooth_patches<T, dim, order>, static_cast<unsigned>(arguments.count), threads,
         shared_bytes(arguments.local), stream, tables, plain);
}

}  // namespace solenoid::cuda
