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
  using Base::n, Base::modes, Base::columns, Base::functions, Base::component, Base::pressures, Base::others,
      Base::for_each, Base::meet, Base::for_columns, Base::a_of, Base::b_of, Base::pressure_place, Base::divergence,
      Base::count_of, Base::threads, Base::parts;
  using typename Base::S, typename Base::Memory, typename Base::Row;

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

  // --- local solvers -------------------------------------------------------------------------------------------------

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
    meet();
    for (int count = threads; count > 1; count = (count + 1) / 2) {
      const int upper = (count + 1) / 2 + static_cast<int>(threadIdx.x);
      if (upper < count) memory.sums[threadIdx.x] += memory.sums[upper];
      meet();
    }
    const T total = memory.sums[0];
    meet();
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
    const int velocities = size - pressures;
    // Unknown i of the matrix. Right-hand sides go where flux is, components without gaps, and to schur[0].
    const auto unknown = [&](int i) -> T& {
      for (int c = 0; c < dim; ++c) {
        const int count = count_of(kind, c) * columns;
        if (i < count) return memory.residual(c)[kind.first[c] * columns + i];
        i -= count;
      }
      return memory.pressure[i];
    };
    T* const velocity = memory.flux(0);
    T* const pressure = memory.schur[0];
    for_each(size, [&](int i) { (i < velocities ? velocity[i] : pressure[i - velocities]) = unknown(i); });
    meet();
    for_each(size, [&](int i) {
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
};

}  // namespace solenoid::cuda
