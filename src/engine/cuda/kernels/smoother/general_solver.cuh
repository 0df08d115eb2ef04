#pragma once
/// \file
/// Second step of the general smoother (general.cuh): the local solve, with the inverse of the Schur complement or, for
/// comparison, by Chebyshev iteration, conjugate gradients or the inverse of the whole patch matrix.

#include "engine/cuda/kernels/smoother/general_block.cuh"
#include "engine/cuda/kernels/tensor_tiles.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct GeneralSolver : GeneralBlock<T, dim, order> {
  using Base = GeneralBlock<T, dim, order>;
  using Base::n, Base::modes, Base::columns, Base::functions, Base::pressures, Base::others, Base::line_pitch,
      Base::row_pitch, Base::meet, Base::a_of, Base::b_of, Base::place_of, Base::pressure_place, Base::divergence,
      Base::count_of, Base::threads, Base::parts;
  using typename Base::S, typename Base::KindMemory, typename Base::Memory, typename Base::Iteration,
      typename Base::Work, typename Base::Pressure, typename Base::Row;

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
  __device__ static void transform_tangential(int tau, const Work& work) {
    constexpr int lines = functions * others;
    work.for_each(dim * lines + columns, [&](Memory& memory, int k) {
      const int c = k / lines;
      const int row = k / others % functions;
      const int column = k - dim * lines;
      T* const line = c == dim ? memory.pressure + pressure_place(tau, 0, column)
                               : memory.residual(c) + row * row_pitch + k % others * (tau == 0 ? line_pitch : 1);
      const int stride = tau == 0 ? 1 : line_pitch;  // of the pressure, too
      const int direction = c == dim ? tau : tau == 0 ? a_of(c) : b_of(c);
      transform_line<forward>(work.memory.kind.tables[direction].eigen_o, line, stride);
    });
    meet();
  }
  template <bool forward>
  __device__ static void transform_last_of_pressure(int column, const KindMemory& kind, Memory& memory) {
    constexpr int last = dim - 1;
    transform_line<forward>(kind.tables[last].eigen_o, memory.pressure + pressure_place(last, 0, column),
                            dim == 3 ? row_pitch : line_pitch);
  }

  /// f /= lambda on a column.
  __device__ static void divide_by_lambda(int c, int column, const KindMemory& kind, T (&f)[functions]) {
    const T* const inverse = kind.inverse_lambda + c * functions * columns + column;
#pragma unroll
    for (int e = 0; e < functions; ++e) f[e] *= __ldg(inverse + e * columns);
  }
  /// What a column of f gives to the divergence: C f.
  __device__ static void store_flux(int c, int column, const T (&f)[functions], const KindMemory& kind,
                                    Memory& memory) {
    T* const to = memory.flux(c) + place_of(column);
    multiply(kind.tables[c].divergence, f, [&](int i, T flux) { to[i * row_pitch] = flux; });
  }
  /// f = A^-1 C^T p on a column.
  __device__ static void scaled_gradient(int c, int column, const T* p, const KindMemory& kind, T (&f)[functions]) {
    const T* const line = p + pressure_place(c, 0, column);
    const int stride = pressure_place(c, 1, 0);
    multiply_transposed(
        kind.tables[c].divergence, [&](int i) { return line[i * stride]; }, f);
    divide_by_lambda(c, column, kind, f);
  }

  // --- local solvers -------------------------------------------------------------------------------------------------

  /// p = S^+ rhs, to its place and that of the right-hand side, all blocks at once: a thread has four rows of one, of a
  /// part of its columns, which it reads once for all patches. Blocks are of one size; right-hand sides are counted as
  /// their columns are.
  __device__ static void schur_direct(const Work& work) {
    const PatchData<T>& kind = work.memory.kind.data;
    const int* const length = kind.block_length[0];
    const int size = length[0] * length[1] * length[2];
    const auto pressure = [&](int k) {
      const int* const start = kind.block_start[k / size];
      const int i = k % size;
      return Pressure(start[0] + i % length[0] +
                      modes *
                          (start[1] + i / length[0] % length[1] + modes * (start[2] + i / (length[0] * length[1]))));
    };
    work.for_each(pressures, [&](Memory& memory, int k) {
      const Pressure p = pressure(k);
      memory.schur[k] = -memory.pressure[p.place()] - divergence(memory, p);
    });
    meet();
    if (work.count == 1) {
      multiply_inverse(kind, size, work.memory.first);
    } else {
      multiply_inverse(kind, size, work.memory.first, work.memory.second);
    }
    meet();
    work.for_each(pressures, [&](Memory& memory, int k) {
      const T* const sums = memory.flux(0);
      T sum{};
#pragma unroll
      for (int part = 0; part < parts; ++part) sum += sums[part * pressures + k];
      const int at = pressure(k).place();
      memory.pressure[at] = sum;
      memory.schur[at] = sum;
    });
    meet();
  }
  /// Sums over parts of the columns of S^+, where flux was, from right-hand sides in `schur`.
  template <class... Memories>
  __device__ static void multiply_inverse(const PatchData<T>& kind, int size, Memories&... memories) {
    constexpr int count = sizeof...(memories);
    const T* const rhs[count]{memories.schur...};
    T* const sums[count]{memories.flux(0)...};
    const int quads = (size + inverse_row_multiple - 1) / inverse_row_multiple * (inverse_row_multiple / 4);
    for (int i = static_cast<int>(threadIdx.x); i < parts * kind.block_count * quads; i += threads) {
      const int part = i % parts;
      const int block = i / parts / quads;
      const int row = i / parts % quads * 4;
      const int end = size * (part + 1) / parts;
      const T* const inverse = kind.block_inverse[block] + row;  // symmetric: rows are columns
      T sum[count][4]{};
#pragma unroll(n > 3 ? 16 : 8)
      for (int j = size * part / parts; j < end; ++j) {
        T four[4];
        load_four(inverse + j * (4 * quads), four);
#pragma unroll
        for (int m = 0; m < count; ++m) {
          const T value = rhs[m][block * size + j];
#pragma unroll
          for (int r = 0; r < 4; ++r) sum[m][r] += four[r] * value;
        }
      }
#pragma unroll
      for (int m = 0; m < count; ++m) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          if (row + r < size) sums[m][part * pressures + block * size + row + r] = sum[m][r];
        }
      }
    }
  }

  // Iterative solvers, of one patch: schur -> pressure.

  /// visit(place in pressure arrays, i) for all pressures.
  template <class F>
  __device__ static void for_pressures(F&& visit) {
    for (int i = static_cast<int>(threadIdx.x); i < pressures; i += threads) visit(Pressure(i).place(), i);
  }

  /// out = S v
  __device__ static void schur_apply(const T* v, T* out, const Work& work) {
    const KindMemory& kind = work.memory.kind;
    work.for_columns([&](Memory& memory, int c, int column) {
      T f[functions];
      scaled_gradient(c, column, v, kind, f);
      store_flux(c, column, f, kind, memory);
    });
    meet();
    for_pressures([&](int at, int i) { out[at] = divergence(work.memory.first, Pressure(i)); });
    meet();
  }

  /// Sum of term(place in pressure arrays, i).
  template <class F>
  __device__ static T sum_of(T* sums, const F& term) {
    T sum = 0;
    for_pressures([&](int at, int i) { sum += term(at, i); });
    sums[threadIdx.x] = sum;
    meet();
    for (int count = threads; count > 1; count = (count + 1) / 2) {
      const int upper = (count + 1) / 2 + static_cast<int>(threadIdx.x);
      if (upper < count) sums[threadIdx.x] += sums[upper];
      meet();
    }
    const T total = sums[0];
    meet();
    return total;
  }
  __device__ static void remove_constant(const PatchData<T>& kind, T* x, T* sums) {
    if (kind.constant == nullptr) return;
    const T sum = sum_of(sums, [&](int at, int i) { return kind.constant[i] * x[at]; });
    for_pressures([&](int at, int i) { x[at] -= kind.constant[i] * sum; });
    meet();
  }

  /// m^T p (forward) or m p in direction a.
  __device__ static void transform_to_modes(const T* m, bool forward, int a, T* pressure) {
    for (int column = static_cast<int>(threadIdx.x); column < columns; column += threads) {
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
    }
    meet();
  }
  /// P^-1 r, in `room`; r itself if there is no preconditioner.
  __device__ static const T* preconditioned(const PatchData<T>& kind, const T* r, T* room) {
    if (kind.preconditioner == nullptr) return r;
    for_pressures([&](int at, int) { room[at] = r[at]; });
    meet();
#pragma unroll 1
    for (int a = 0; a < dim; ++a) transform_to_modes(kind.pressure_modes[a], true, a, room);
    for_pressures([&](int at, int i) { room[at] *= kind.preconditioner[i]; });
    meet();
#pragma unroll 1
    for (int a = 0; a < dim; ++a) transform_to_modes(kind.pressure_modes[a], false, a, room);
    return room;
  }

  /// Chebyshev iteration of fixed degree on the known spectrum of P^-1 S: linear, no inner products.
  __device__ static void schur_chebyshev(const Work& work) {
    constexpr int degree = 8;
    const PatchData<T>& kind = work.memory.kind.data;
    Iteration& room = work.memory.iteration;
    T* const r = work.memory.first.schur;
    T* const d = room.direction;
    T* const s = room.image;
    T* const x = work.memory.first.pressure;
    remove_constant(kind, r, room.sums);
    const T middle = T(0.5) * (kind.schur_bounds[1] + kind.schur_bounds[0]);
    const T half = T(0.5) * (kind.schur_bounds[1] - kind.schur_bounds[0]);
    const T sigma = middle / half;
    T rho = T(1) / sigma;
    const T* z = preconditioned(kind, r, s);
    for_pressures([&](int i, int) {
      d[i] = z[i] / middle;
      x[i] = d[i];
    });
    meet();
    for (int step = 1; step < degree; ++step) {
      schur_apply(d, s, work);
      const T next = T(1) / (T(2) * sigma - rho);
      const T keep = next * rho;
      const T gain = T(2) * next / half;
      for_pressures([&](int i, int) { r[i] -= s[i]; });
      meet();
      z = preconditioned(kind, r, s);
      for_pressures([&](int i, int) {
        d[i] = keep * d[i] + gain * z[i];
        x[i] += d[i];
      });
      meet();
      rho = next;
    }
  }

  /// Conjugate gradients until the residual or the curvature is negligible. The constant pressure is removed twice:
  /// rounding leaves some of a large one, and when all else is as small steps would go that way, in which S is nothing
  /// but rounding.
  __device__ static void schur_cg(const Work& work) {
    constexpr int most = 30;
    constexpr T tolerance = sizeof(T) == 4 ? T(1e-5) : T(1e-9);
    const PatchData<T>& kind = work.memory.kind.data;
    Iteration& room = work.memory.iteration;
    T* const r = work.memory.first.schur;
    T* const d = room.direction;
    T* const s = room.image;
    T* const x = work.memory.first.pressure;
    for (int pass = 0; pass < 2; ++pass) remove_constant(kind, r, room.sums);
    const auto dot = [&](const T* a, const T* b) {
      return sum_of(room.sums, [&](int at, int) { return a[at] * b[at]; });
    };
    const T* z = preconditioned(kind, r, s);
    for_pressures([&](int i, int) {
      d[i] = z[i];
      x[i] = 0;
    });
    meet();
    T rz = dot(r, z);
    const T enough = tolerance * tolerance * rz;
    for (int step = 0; step < most && rz > enough; ++step) {
      schur_apply(d, s, work);
      const T ds = dot(d, s);  // the curvature
      if (!(ds > T(0))) return;
      const T alpha = rz / ds;
      for_pressures([&](int i, int) {
        x[i] += alpha * d[i];
        r[i] -= alpha * s[i];
      });
      meet();
      z = preconditioned(kind, r, s);
      const T next = dot(r, z);
      const T beta = next / rz;
      for_pressures([&](int i, int) { d[i] = z[i] + beta * d[i]; });
      meet();
      rz = next;
    }
  }

  /// The whole patch matrix inverted (the paper's "direct solver"), for one patch.
  __device__ static void solve_dense(const Work& work) {
    const PatchData<T>& kind = work.memory.kind.data;
    Memory& memory = work.memory.first;
    const auto size = static_cast<int>(kind.dense_size);
    const int velocities = size - pressures;
    // Unknown i of the matrix. Right-hand sides go where flux is, components without gaps, and to schur.
    const auto unknown = [&](int i) -> T& {
      for (int c = 0; c < dim; ++c) {
        const int count = count_of(kind, c) * columns;
        if (i < count) return memory.residual(c)[(kind.first[c] + i / columns) * row_pitch + place_of(i % columns)];
        i -= count;
      }
      return memory.pressure[Pressure(i).place()];
    };
    T* const velocity = memory.flux(0);
    T* const pressure = memory.schur;
    work.for_each(size,
                  [&](Memory&, int i) { (i < velocities ? velocity[i] : pressure[i - velocities]) = unknown(i); });
    meet();
    work.for_each(size, [&](Memory&, int i) {
      const T* const row = kind.dense + i;  // symmetric: rows are columns
      T sum{};
#pragma unroll 16
      for (int j = 0; j < velocities; ++j) sum += __ldg(row + static_cast<std::int64_t>(j) * size) * velocity[j];
#pragma unroll 16
      for (int j = velocities; j < size; ++j) {
        sum += __ldg(row + static_cast<std::int64_t>(j) * size) * pressure[j - velocities];
      }
      unknown(i) = sum;
    });
    meet();
  }

  /// residual -> correction
  __device__ static void solve(LocalSolverKind local, const Work& work) {
    const KindMemory& kind = work.memory.kind;
    if (local == LocalSolverKind::dense) return solve_dense(work);
#pragma unroll 1
    for (int tau = 0; tau < dim - 1; ++tau) transform_tangential<true>(tau, work);
    // f = A^-1 r, C f; meanwhile the pressure in the last direction.
    work.for_each((dim + 1) * columns, [&](Memory& memory, int k) {
      const int c = k / columns;
      const int column = k % columns;
      if (c == dim) return transform_last_of_pressure<true>(column, kind, memory);
      T* const r = memory.residual(c) + place_of(column);
      T f[functions];
      multiply_transposed(
          kind.tables[c].eigen_p, [&](int e) { return r[e * row_pitch]; }, f);
      divide_by_lambda(c, column, kind, f);
#pragma unroll
      for (int e = 0; e < functions; ++e) r[e * row_pitch] = f[e];
      store_flux(c, column, f, kind, memory);
    });
    meet();
    // S p = -(g + B A^-1 f)
    if (local == LocalSolverKind::direct) {
      schur_direct(work);
    } else {
      Memory& memory = work.memory.first;
      for_pressures([&](int at, int i) { memory.schur[at] = -memory.pressure[at] - divergence(memory, Pressure(i)); });
      meet();
      local == LocalSolverKind::chebyshev ? schur_chebyshev(work) : schur_cg(work);
      for_pressures([&](int at, int) { memory.schur[at] = memory.pressure[at]; });
      meet();
    }
    // f + A^-1 C^T p, from where p has been copied; meanwhile p in the last direction.
    work.for_each((dim + 1) * columns, [&](Memory& memory, int k) {
      const int c = k / columns;
      const int column = k % columns;
      if (c == dim) return transform_last_of_pressure<false>(column, kind, memory);
      T* const r = memory.residual(c) + place_of(column);
      T f[functions];
      scaled_gradient(c, column, memory.schur, kind, f);
#pragma unroll
      for (int e = 0; e < functions; ++e) f[e] += r[e * row_pitch];
      multiply(kind.tables[c].eigen_p, f, [&](int e, T value) { r[e * row_pitch] = value; });
    });
    meet();
#pragma unroll 1
    for (int tau = dim - 2; tau >= 0; --tau) transform_tangential<false>(tau, work);
  }
};

}  // namespace solenoid::cuda
