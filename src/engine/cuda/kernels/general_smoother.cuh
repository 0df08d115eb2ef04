#pragma once
/// \file
/// The vertex-patch smoother for every kind of patch and every local solver: one thread block per patch.
///
/// Sides with slip or outflow have patches without parity; Chebyshev, CG and dense local solvers are for comparison.
/// Neither is common, so this kernel is plain: whole univariate matrices from global memory, one value per thread and
/// contraction, arrays of the patch in shared memory. The residual comes from the operator.
///
/// Arrays of a patch, N = 2n: velocity component c as [e][i_b][i_a] with the 2n + 1 functions e of P slowest (end hat,
/// bubbles, middle hat, bubbles, end hat; only first..last are unknowns), a = c + 1, b = c + 2 (mod dim), i = n (upper
/// cell) + mode; pressure as [i_z][i_y][i_x]. In the eigenbasis the same with eigenfunctions for functions.
/// Shared memory: dim components, pressure, one component and four pressures of work space. Traffic per patch: its
/// residual and old values once, its new values once.

#include "engine/cuda/kernels/shape.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct GeneralSmoother {
  using S = Shape<dim, order>;
  static constexpr int n = S::n;
  static constexpr int modes = 2 * n;
  static constexpr int columns = power(modes, dim - 1);
  static constexpr int functions = modes + 1;
  static constexpr int component = functions * columns;
  static constexpr int pressures = power(modes, dim);
  static constexpr int corners = 1 << dim;
  static constexpr int threads = pressures <= 64 ? 64 : 256;

  struct Memory {
    T velocity[dim][component];  ///< residual, then correction
    T pressure[pressures];       ///< residual, then correction
    T work[component];           ///< these two also take all unknowns of the dense solver
    T schur[4][pressures];       ///< right-hand side and vectors of the Schur complement solvers
    T sums[threads];
    std::int32_t cells[corners];
    std::int32_t above[dim][corners];
  };
  static_assert(sizeof(Memory) <= most_shared_bytes, "a patch of this order does not fit into shared memory");

  struct Arguments {
    PatchData<T> patch;
    CellTopology topology;
    const std::int32_t* lower;
    LocalSolverKind local;
    const T* base;  ///< what the correction is added to, nullptr stands for zero
    const T* residual;
    T* y;
    T factor;
  };

  template <class F>
  __device__ static void for_each(int count, F&& visit) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) visit(i);
    __syncthreads();
  }

  // Positions in patch arrays of value i (record order) of the cell `bits`.
  __device__ static int velocity_position(int c, int bits, int i) {
    const int a = (c + 1) % dim;
    const int b = (c + 2) % dim;
    const int ia = i % n + n * (bits >> a & 1);
    const int ib = dim == 3 ? i / n % n + n * (bits >> b & 1) : 0;
    const int e = i / S::columns + n * (bits >> c & 1);
    return e * columns + ia + modes * ib;
  }
  __device__ static int pressure_position(int bits, int i) {
    int position = 0;
    int stride = 1;
    for (int a = 0; a < dim; ++a) {
      position += (i % n + n * (bits >> a & 1)) * stride;
      i /= n;
      stride *= modes;
    }
    return position;
  }

  /// visit(record, value in the record, value in the patch) for all values of the patch, upper end hats included where
  /// they are unknowns.
  template <class F>
  __device__ static void for_values(const Arguments& arguments, Memory& memory, F&& visit) {
    for_each(corners * S::record, [&](int k) {
      const int bits = k / S::record;
      const int i = k % S::record;
      const int c = i / S::block;
      T* value = c == dim ? &memory.pressure[pressure_position(bits, i % S::block)]
                          : &memory.velocity[c][velocity_position(c, bits, i % S::block)];
      visit(memory.cells[bits], i, value);
    });
    for_each(dim * corners * S::columns, [&](int k) {
      const int c = k / (corners * S::columns);
      const int bits = k / S::columns % corners;
      const int i = k % S::columns;
      if ((bits >> c & 1) == 0 || !arguments.patch.hat[c][1]) return;
      visit(memory.above[c][bits], c * S::block + i, &memory.velocity[c][velocity_position(c, bits, S::block + i)]);
    });
  }

  /// out[o][i][q] = sum_j m(i, j) in[o][j][q] for i < rows, j < cols, q < inner; m(i, j) = matrix[i * cols + j], or
  /// matrix[j * rows + i] if transposed.
  template <bool transposed>
  __device__ static void contract(const T* matrix, int rows, int cols, int outer, int inner, const T* in, T* out) {
    for_each(outer * rows * inner, [&](int k) {
      const int q = k % inner;
      const int i = k / inner % rows;
      const T* line = in + k / (inner * rows) * cols * inner + q;
      T sum = 0;
      for (int j = 0; j < cols; ++j)
        sum += (transposed ? matrix[j * rows + i] : matrix[i * cols + j]) * line[j * inner];
      out[k] = sum;
    });
  }

  __device__ static int count_of(const PatchData<T>& patch, int c) { return patch.last[c] - patch.first[c] + 1; }
  /// Place in the pressure array of mode i along c and tangential column `column`.
  __device__ static int pressure_place(int c, int i, int column) {
    const auto stride = [](int a) { return a == 0 ? 1 : a == 1 ? modes : modes * modes; };
    return i * stride(c) + column % modes * stride((c + 1) % dim) +
           (dim == 3 ? column / modes * stride((c + 2) % 3) : 0);
  }

  /// in + scale * C f_c, at a place of the pressure array, for all c: sum over the lines through it.
  template <class F>
  __device__ static T divergence(const PatchData<T>& patch, int place, const F& f) {
    T sum = 0;
    for (int c = 0; c < dim; ++c) {
      const int index[3] = {place % modes, place / modes % modes, place / (modes * modes)};
      const int column = index[(c + 1) % dim] + (dim == 3 ? modes * index[(c + 2) % 3] : 0);
      const int np = count_of(patch, c);
      const T* row = patch.divergence[c] + index[c] * np;
      for (int e = 0; e < np; ++e) sum += row[e] * f(c, e * columns + column);
    }
    return sum;
  }
  /// (C^T p) / lambda of component c at k = e * columns + column.
  __device__ static T scaled_gradient(const PatchData<T>& patch, int c, int k, const T* p) {
    const int np = count_of(patch, c);
    T sum = 0;
    for (int i = 0; i < modes; ++i)
      sum += patch.divergence[c][i * np + k / columns] * p[pressure_place(c, i, k % columns)];
    return sum * patch.inverse_lambda[c][k];
  }

  /// S_O^T, or S_O back, in all tangential directions and S_P in the own direction; in place.
  template <bool forward>
  __device__ static void transform_velocity(const PatchData<T>& patch, int c, Memory& memory) {
    const int np = count_of(patch, c);
    const T* eigen_a = patch.eigen_o[(c + 1) % dim];
    T* f = memory.velocity[c] + patch.first[c] * columns;
    T* work = memory.work;
    if constexpr (dim == 3) {
      contract<forward>(eigen_a, modes, modes, np * modes, 1, f, work);
      contract<forward>(patch.eigen_o[(c + 2) % 3], modes, modes, np, modes, work, f);
    } else {
      contract<forward>(eigen_a, modes, modes, np, 1, f, work);
      for_each(np * columns, [&](int i) { f[i] = work[i]; });
    }
    contract<forward>(patch.eigen_p[c], np, np, 1, columns, f, work);
    for_each(np * columns, [&](int i) { f[i] = work[i]; });
  }
  template <bool forward>
  __device__ static void transform_pressure(const PatchData<T>& patch, Memory& memory) {
    T* from = memory.pressure;
    T* to = memory.schur[3];
    for (int a = 0, inner = 1; a < dim; ++a, inner *= modes) {
      contract<forward>(patch.eigen_o[a], modes, modes, pressures / (inner * modes), inner, from, to);
      T* const next = from;
      from = to;
      to = next;
    }
    if (from != memory.pressure) for_each(pressures, [&](int i) { memory.pressure[i] = from[i]; });
  }

  /// residual -> correction
  __device__ static void solve(const Arguments& arguments, Memory& memory) {
    const PatchData<T>& patch = arguments.patch;
    if (arguments.local == LocalSolverKind::dense) return solve_dense(patch, memory);
    for (int c = 0; c < dim; ++c) {
      transform_velocity<true>(patch, c, memory);
      T* f = memory.velocity[c] + patch.first[c] * columns;
      for_each(count_of(patch, c) * columns, [&](int i) { f[i] *= patch.inverse_lambda[c][i]; });
    }
    transform_pressure<true>(patch, memory);
    // S p = -(g + B A^-1 f)
    for_each(pressures, [&](int i) {
      const T divergence_f =
          divergence(patch, i, [&](int c, int k) { return memory.velocity[c][patch.first[c] * columns + k]; });
      memory.schur[0][i] = -memory.pressure[i] - divergence_f;
    });
    switch (arguments.local) {
      case LocalSolverKind::chebyshev: schur_chebyshev(patch, memory); break;
      case LocalSolverKind::cg: schur_cg(patch, memory); break;
      default: schur_direct(patch, memory); break;
    }
    for (int c = 0; c < dim; ++c) {
      T* f = memory.velocity[c] + patch.first[c] * columns;
      for_each(count_of(patch, c) * columns, [&](int k) { f[k] += scaled_gradient(patch, c, k, memory.pressure); });
      transform_velocity<false>(patch, c, memory);
    }
    transform_pressure<false>(patch, memory);
  }

  // Schur complement solvers: schur[0] -> pressure.

  __device__ static void schur_direct(const PatchData<T>& patch, Memory& memory) {
    for (int block = 0; block < patch.block_count; ++block) {
      const int* start = patch.block_start[block];
      const int* length = patch.block_length[block];
      const int size = length[0] * length[1] * length[2];
      const auto place = [&](int i) {
        return start[0] + i % length[0] +
               modes * (start[1] + i / length[0] % length[1] + modes * (start[2] + i / (length[0] * length[1])));
      };
      for_each(size, [&](int i) {
        T sum = 0;
        for (int j = 0; j < size; ++j) sum += patch.block_inverse[block][j * size + i] * memory.schur[0][place(j)];
        memory.pressure[place(i)] = sum;
      });
    }
  }

  /// out = S v
  __device__ static void schur_apply(const PatchData<T>& patch, const T* v, T* out, Memory& memory) {
    for_each(pressures, [&](int i) { out[i] = 0; });
    for (int c = 0; c < dim; ++c) {
      const int np = count_of(patch, c);
      for_each(np * columns, [&](int k) { memory.work[k] = scaled_gradient(patch, c, k, v); });
      for_each(pressures, [&](int place) {
        const int index[3] = {place % modes, place / modes % modes, place / (modes * modes)};
        const int column = index[(c + 1) % dim] + (dim == 3 ? modes * index[(c + 2) % 3] : 0);
        T sum = 0;
        for (int e = 0; e < np; ++e) sum += patch.divergence[c][index[c] * np + e] * memory.work[e * columns + column];
        out[place] += sum;
      });
    }
  }

  __device__ static T dot(const T* x, const T* y, Memory& memory) {
    T sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < pressures; i += threads) sum += x[i] * y[i];
    memory.sums[threadIdx.x] = sum;
    __syncthreads();
    for (int width = threads / 2; width > 0; width /= 2) {
      if (threadIdx.x < width) memory.sums[threadIdx.x] += memory.sums[threadIdx.x + width];
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

  /// R^T, or R back, in all directions: from `from`, in turn to `to` and the other of two work arrays.
  template <bool forward>
  __device__ static void change_pressure_modes(const PatchData<T>& patch, T*& from, T*& to, Memory& memory) {
    for (int a = 0, inner = 1; a < dim; ++a, inner *= modes) {
      contract<forward>(patch.pressure_modes[a], modes, modes, pressures / (inner * modes), inner, from, to);
      from = to;
      to = from == memory.work ? memory.schur[3] : memory.work;
    }
  }
  /// P^-1 r; r itself if there is no preconditioner.
  __device__ static const T* preconditioned(const PatchData<T>& patch, T* r, Memory& memory) {
    if (patch.preconditioner == nullptr) return r;
    T* from = r;
    T* to = memory.work;
    change_pressure_modes<true>(patch, from, to, memory);
    for_each(pressures, [&](int i) { from[i] *= patch.preconditioner[i]; });
    change_pressure_modes<false>(patch, from, to, memory);
    return from;
  }

  /// Chebyshev iteration of fixed degree on the known spectrum of P^-1 S: linear, no inner products.
  __device__ static void schur_chebyshev(const PatchData<T>& patch, Memory& memory) {
    constexpr int degree = 8;
    T* r = memory.schur[0];
    T* d = memory.schur[1];
    T* s = memory.schur[2];
    T* x = memory.pressure;
    remove_constant(patch, r, memory);
    const T middle = T(0.5) * (patch.schur_bounds[1] + patch.schur_bounds[0]);
    const T half = T(0.5) * (patch.schur_bounds[1] - patch.schur_bounds[0]);
    const T sigma = middle / half;
    T rho = T(1) / sigma;
    const T* z = preconditioned(patch, r, memory);
    for_each(pressures, [&](int i) {
      d[i] = z[i] / middle;
      x[i] = d[i];
    });
    for (int step = 1; step < degree; ++step) {
      schur_apply(patch, d, s, memory);
      const T next = T(1) / (T(2) * sigma - rho);
      const T keep = next * rho;
      const T gain = T(2) * next / half;
      for_each(pressures, [&](int i) { r[i] -= s[i]; });
      z = preconditioned(patch, r, memory);
      for_each(pressures, [&](int i) {
        d[i] = keep * d[i] + gain * z[i];
        x[i] += d[i];
      });
      rho = next;
    }
  }

  /// Conjugate gradients until the residual is negligible.
  __device__ static void schur_cg(const PatchData<T>& patch, Memory& memory) {
    constexpr int most = 30;
    constexpr T tolerance = sizeof(T) == 4 ? T(1e-5) : T(1e-9);
    T* r = memory.schur[0];
    T* d = memory.schur[1];
    T* s = memory.schur[2];
    T* x = memory.pressure;
    remove_constant(patch, r, memory);
    const T* z = preconditioned(patch, r, memory);
    for_each(pressures, [&](int i) {
      d[i] = z[i];
      x[i] = 0;
    });
    T rz = dot(r, z, memory);
    const T enough = tolerance * tolerance * rz;
    for (int step = 0; step < most && rz > enough; ++step) {
      schur_apply(patch, d, s, memory);
      const T alpha = rz / dot(d, s, memory);
      for_each(pressures, [&](int i) {
        x[i] += alpha * d[i];
        r[i] -= alpha * s[i];
      });
      z = preconditioned(patch, r, memory);
      const T next = dot(r, z, memory);
      const T beta = next / rz;
      for_each(pressures, [&](int i) { d[i] = z[i] + beta * d[i]; });
      rz = next;
    }
  }

  /// The whole patch matrix inverted (the paper's "direct solver").
  __device__ static void solve_dense(const PatchData<T>& patch, Memory& memory) {
    static_assert(dim * component + pressures <= component + 4 * pressures);
    const int size = static_cast<int>(patch.dense_size);
    T* out = memory.work;
    const auto unknown = [&](int i) -> T& {
      for (int c = 0; c < dim; ++c) {
        const int count = count_of(patch, c) * columns;
        if (i < count) return memory.velocity[c][patch.first[c] * columns + i];
        i -= count;
      }
      return memory.pressure[i];
    };
    for_each(size, [&](int i) {
      T sum = 0;
      for (int j = 0; j < size; ++j) sum += patch.dense[static_cast<std::int64_t>(j) * size + i] * unknown(j);
      out[i] = sum;
    });
    for_each(size, [&](int i) { unknown(i) = out[i]; });
  }

  /// y = base + factor * correction for the patch of this thread block.
  __device__ static void smooth(const Arguments& arguments, Memory& memory) {
    const CellTopology& topology = arguments.topology;
    for_each(corners, [&](int bits) {
      std::int32_t cell = arguments.lower[blockIdx.x];
      for (int a = 0; a < dim; ++a) {
        if ((bits >> a & 1) != 0) cell = topology.neighbour[2 * a + 1][cell];
      }
      memory.cells[bits] = cell;
      for (int c = 0; c < dim; ++c) memory.above[c][bits] = topology.neighbour[2 * c + 1][cell];
    });
    for_values(arguments, memory, [&](std::int32_t record, int i, T* value) {
      *value = arguments.residual[S::offset(record) + i * interleave];
    });
    solve(arguments, memory);
    for_values(arguments, memory, [&](std::int32_t record, int i, T* value) {
      const std::int64_t at = S::offset(record) + i * interleave;
      const T old = arguments.base == nullptr ? T(0) : arguments.base[at];
      const int c = i / S::block;
      // The hat at the lower end of the patch is no unknown of it unless that end is open.
      const int place = c == dim ? component : static_cast<int>(value - memory.velocity[c]);
      const bool inside = c == dim || place >= arguments.patch.first[c] * columns;
      arguments.y[at] = inside ? old + arguments.factor * *value : old;
    });
  }

  static void smooth(const SmoothArguments<T>& arguments, Stream stream);
};

template <class T, int dim, int order>
__global__ __launch_bounds__(GeneralSmoother<T, dim, order>::threads) void smooth_patches(
    const __grid_constant__ typename GeneralSmoother<T, dim, order>::Arguments arguments) {
  wait_for_earlier_kernels();
  using Smoother = GeneralSmoother<T, dim, order>;
  extern __shared__ __align__(16) unsigned char memory[];
  Smoother::smooth(arguments, *reinterpret_cast<typename Smoother::Memory*>(memory));
}

template <class T, int dim, int order>
void GeneralSmoother<T, dim, order>::smooth(const SmoothArguments<T>& arguments, Stream stream) {
  const Arguments plain{arguments.patch,
                        arguments.topology,
                        arguments.lower,
                        arguments.local,
                        arguments.add ? arguments.y : arguments.x,
                        arguments.residual,
                        arguments.y,
                        arguments.add ? arguments.damping : T(1)};
  launch("smooth (general)", smooth_patches<T, dim, order>, static_cast<unsigned>(arguments.count), threads,
         sizeof(Memory), stream, plain);
}

}  // namespace solenoid::cuda
