#pragma once
/// \file
/// The local solver of the paper's Section 5.2 in its three variants. A block does one vertex patch of a colour: it
/// loads the residual (F, G) of the patch's unknowns, solves A_j (U, P) = (F, G) and adds (U, P) to the iterate; the
/// patches of a colour share no unknowns.
///
///   direct            the dense (pseudo-)inverse of A_j, from global memory: one per kind of patch.
///   Schur complement  S P = - G - B A^-1 F by conjugate gradients, S = B A^-1 B^T, then U = A^-1 (F + B^T P),
///   everything
///                     in shared memory. A^-1 is applied by fast diagonalisation; every application of S does all of
///                     its contractions: B^T (D_c^T, M_a, M_b), A^-1 (S_c^T, S_a^T, S_b^T, 1/lambda, S_c, S_a, S_b) and
///                     B for each component.
///   conflict-free     the same with the access pattern of the operator's conflict-free stage.
///
/// Three groups of threads do a component each, a thread one column of N - 1 values, N = 2 (k + 1). CG's vectors: those
/// that S is applied to lie in shared memory, the others in registers.
///
/// Shared memory, in numbers: t1, t2 [3][(N - 1) N^2 each], p [N^3], matrices [3 directions], a few partial sums.
/// Global memory per patch: F and the places of F twice, G once, the iterate read and written; 8 of its 8 cells new.

#include <cuda_runtime.h>

#include "studies/paper_kernels/patch.cuh"

namespace solenoid::paper {

template <int k, bool conflict_free>
struct SolverShape {
  static constexpr int n = k + 1;
  static constexpr int N = 2 * n;
  static constexpr int rows = N - 1;  // of P
  static constexpr int plane = N * N;
  using Pressure = PressureLayout<N, conflict_free>;
  static constexpr int field = rows * plane > Pressure::values ? rows* plane : Pressure::values;
  static constexpr int threads = whole_warps(3 * plane);
  // That registers have to leave room for on a multiprocessor; 0: left to the compiler
  static constexpr int blocks = threads > 128 ? 640 / threads : 0;
  static constexpr int warps = threads / 32;
  static constexpr int pressures = (N * plane + threads - 1) / threads;  // of a thread
  static constexpr int unknowns = 3 * rows * plane + N * plane;

  // Univariate matrices of a line kind, row-major
  static constexpr int eigen_o = 0;                         // S of O, N x N
  static constexpr int eigen_o_transposed = plane;          // S^T
  static constexpr int mass_o = 2 * plane;                  // M', N x N
  static constexpr int eigen_p = 3 * plane;                 // S of P, rows x rows
  static constexpr int divergence = eigen_p + rows * rows;  // D, N x rows
  static constexpr int lambda_o = divergence + N * rows;    // N
  static constexpr int lambda_p = lambda_o + N;             // rows
  static constexpr int constant = lambda_p + rows;          // the constant function in O, of length 1
  static constexpr int matrices = constant + N;

  static constexpr int shared_values = 6 * field + Pressure::values + 3 * matrices + 2 * warps;
};

/// What a thread needs to apply S. All threads of the block call its functions, those beyond the last column too.
template <class T, int k, bool conflict_free>
class SchurComplement {
 public:
  using Shape = SolverShape<k, conflict_free>;
  using Pressure = typename Shape::Pressure;
  static constexpr int N = Shape::N;
  static constexpr int rows = Shape::rows;
  static constexpr int plane = Shape::plane;
  using Values = T[rows];  // a column

  __device__ SchurComplement(T* shared, const T* matrices, int thread)
      : active(thread < 3 * plane),
        c(active ? thread / plane : 0),
        a(active ? thread % N : 0),
        b(active ? thread % plane / N : 0),
        t1_(shared + c * Shape::field),
        t2_(t1_ + 3 * Shape::field),
        base_(a * Pressure::stride((c + 1) % 3) + b * Pressure::stride((c + 2) % 3)),
        own_(matrices + c * Shape::matrices),
        matrices_a_(matrices + (c + 1) % 3 * Shape::matrices),
        matrices_b_(matrices + (c + 2) % 3 * Shape::matrices) {
    const T lambda = matrices_a_[Shape::lambda_o + a] + matrices_b_[Shape::lambda_o + b];
#pragma unroll
    for (int i = 0; i < rows; ++i) inverse_lambda_[i] = T(1) / (lambda + own_[Shape::lambda_p + i]);
  }

  /// out = B_c^T p
  __device__ void gradient(const T* p, Values& out) {
#pragma unroll
    for (int i = 0; i < rows; ++i) out[i] = T(0);
    if (active) {
      T line[N];
#pragma unroll
      for (int i = 0; i < N; ++i) line[i] = p[base_ + i * Pressure::stride(c)];
      contract_column<true>(own_ + Shape::divergence, line, out);
    }
    transform(Shape::mass_o, Shape::mass_o, out);
  }
  /// column = A_c^-1 column
  __device__ void invert(Values& column) {
    Values out{};
    if (active) contract_column<true>(own_ + Shape::eigen_p, column, out);
    transform(Shape::eigen_o_transposed, Shape::eigen_o, out);
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      out[i] *= inverse_lambda_[i];
      column[i] = T(0);
    }
    if (active) contract_column<false>(own_ + Shape::eigen_p, out, column);
    transform(Shape::eigen_o, Shape::eigen_o_transposed, column);
  }
  /// B_c column, to be added up by divergence_sum().
  __device__ void divergence(Values& column) {
    transform(Shape::mass_o, Shape::mass_o, column);
    if (active) {
      T q[N]{};
      contract_column<false>(own_ + Shape::divergence, column, q);
      store(q, t1_ + base_, Pressure::stride(c));
    }
    __syncthreads();
  }
  __device__ static T divergence_sum(const T* shared, int at) {
    return shared[at] + shared[at + Shape::field] + shared[at + 2 * Shape::field];
  }

  const bool active;
  const int c;
  const int a;
  const int b;

 private:
  /// Applies the matrix at `matrix` of the directions a and b; `transposed` is where its transpose lies.
  __device__ void transform(int matrix, int transposed, Values& column) {
    const int given = conflict_free ? transposed : matrix;
    const int along_a = conflict_free ? a : b;  // the thread's (b, a) in contractions along a
    const int along_b = conflict_free ? b : a;
    if (active) store(column, t1_ + b * N + a, plane);
    __syncthreads();
    if (active) {
      T out[1][rows]{};
      contract<N, conflict_free>({matrices_a_ + given}, along_a, t1_ + along_b * N, plane, 1, out);
      store(out[0], t2_ + along_b * N + along_a, plane);
    }
    __syncthreads();
    if (active) {
      T out[1][rows]{};
      contract<N, conflict_free>({matrices_b_ + given}, b, t2_ + a, plane, N, out);
#pragma unroll
      for (int i = 0; i < rows; ++i) column[i] = out[0][i];
    }
  }

  T* const t1_;
  T* const t2_;
  const int base_;  // of the line of pressures along c
  const T* const own_;
  const T* const matrices_a_;
  const T* const matrices_b_;
  Values inverse_lambda_;
};

/// The sum over all threads, in all of them. Calls in turn need two different `partial`s.
template <int warps, class T>
__device__ T sum_over_block(T value, T* partial) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffU, value, distance);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = T(0);
#pragma unroll
  for (int i = 0; i < warps; ++i) sum += partial[i];
  return sum;
}

template <class T, int k, bool conflict_free>
__global__ void __launch_bounds__(SolverShape<k, conflict_free>::threads, SolverShape<k, conflict_free>::blocks)
    solve_schur(const __grid_constant__ SolverArguments<T> arguments) {
  using Shape = SolverShape<k, conflict_free>;
  using Pressure = typename Shape::Pressure;
  constexpr int N = Shape::N;
  constexpr int rows = Shape::rows;
  constexpr int count = Shape::pressures;
  extern __shared__ unsigned char memory[];
  T* const shared = reinterpret_cast<T*>(memory);
  T* const direction = shared + 6 * Shape::field;  // of CG
  T* const matrices = direction + Pressure::values;
  T* const partial[2]{matrices + 3 * Shape::matrices, matrices + 3 * Shape::matrices + Shape::warps};

  const int patch = static_cast<int>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  const int kind = arguments.patches.kind[patch];
  for (int i = thread; i < 3 * Shape::matrices; i += Shape::threads) {
    const int d = i / Shape::matrices;
    matrices[i] = arguments.matrices[(kind >> 2 * d & 3) * Shape::matrices + i - d * Shape::matrices];
  }
  __syncthreads();
  SchurComplement<T, k, conflict_free> schur(shared, matrices, thread);
  const Column<k> place(arguments.patches, patch, schur.c, schur.b, schur.a);
  const auto load = [&](T(&column)[rows]) {
#pragma unroll
    for (int i = 0; i < rows; ++i) column[i] = schur.active ? arguments.r[place[i + 1]] : T(0);
  };
  // The thread's pressures: where in shared memory, where in vectors
  int at[count];
  int pressure_at[count];
  T constant[count];
  const bool all = N * N * N % Shape::threads == 0;
#pragma unroll
  for (int s = 0; s < count; ++s) {
    const int i = thread + s * Shape::threads;
    const bool there = all || i < N * N * N;
    const int x = there ? i % N : 0;
    const int y = there ? i / N % N : 0;
    const int z = there ? i / (N * N) : 0;
    at[s] = there ? z * Pressure::plane + y * Pressure::row + x : -1;
    pressure_at[s] = pressure_place<k>(arguments.patches, patch, z, y, x);
    constant[s] = there ? matrices[Shape::constant + x] * matrices[Shape::matrices + Shape::constant + y] *
                              matrices[2 * Shape::matrices + Shape::constant + z]
                        : T(0);
  }

  // r = - G - B A^-1 F, without the constant
  T column[rows];
  load(column);
  schur.invert(column);
  schur.divergence(column);
  T solution[count]{};
  T r[count]{};
  T sum = T(0);
#pragma unroll
  for (int s = 0; s < count; ++s) {
    if (at[s] < 0) continue;
    r[s] = -arguments.r[pressure_at[s]] - schur.divergence_sum(shared, at[s]);
    sum += constant[s] * r[s];
  }
  sum = sum_over_block<Shape::warps>(sum, partial[0]);
  T squares = T(0);
#pragma unroll
  for (int s = 0; s < count; ++s) {
    if (at[s] < 0) continue;
    r[s] -= sum * constant[s];
    squares += r[s] * r[s];
    direction[at[s]] = r[s];
  }
  squares = sum_over_block<Shape::warps>(squares, partial[1]);

  const T enough = arguments.tolerance * arguments.tolerance * squares;
  for (int iteration = 0; iteration < arguments.iterations && squares > enough; ++iteration) {
    schur.gradient(direction, column);
    schur.invert(column);
    schur.divergence(column);
    T image[count];
    T curvature = T(0);
#pragma unroll
    for (int s = 0; s < count; ++s) {
      if (at[s] < 0) continue;
      image[s] = schur.divergence_sum(shared, at[s]);
      curvature += image[s] * direction[at[s]];
    }
    curvature = sum_over_block<Shape::warps>(curvature, partial[0]);
    if (!(curvature > T(0))) break;
    const T step = squares / curvature;
    T next = T(0);
#pragma unroll
    for (int s = 0; s < count; ++s) {
      if (at[s] < 0) continue;
      solution[s] += step * direction[at[s]];
      r[s] -= step * image[s];
      next += r[s] * r[s];
    }
    next = sum_over_block<Shape::warps>(next, partial[1]);
    const T factor = next / squares;
    squares = next;
#pragma unroll
    for (int s = 0; s < count; ++s) {
      if (at[s] >= 0) direction[at[s]] = r[s] + factor * direction[at[s]];
    }
    __syncthreads();
  }

  // U = A^-1 (F + B^T P)
#pragma unroll
  for (int s = 0; s < count; ++s) {
    if (at[s] >= 0) direction[at[s]] = solution[s];
  }
  __syncthreads();
  schur.gradient(direction, column);
  T f[rows];
  load(f);
#pragma unroll
  for (int i = 0; i < rows; ++i) column[i] += f[i];
  schur.invert(column);
  if (schur.active) {
#pragma unroll
    for (int i = 0; i < rows; ++i) arguments.x[place[i + 1]] += column[i];
  }
#pragma unroll
  for (int s = 0; s < count; ++s) {
    if (at[s] >= 0) arguments.x[pressure_at[s]] += solution[s];
  }
}

/// Place in vectors of unknown i of a patch: components [i_c][b][a], then the pressure.
template <int k>
__device__ int unknown_place(const Patches& patches, int patch, int i) {
  using Shape = SolverShape<k, false>;
  constexpr int N = Shape::N;
  constexpr int component = Shape::rows * Shape::plane;
  const int a = i % N;
  const int b = i / N % N;
  if (i >= 3 * component) return pressure_place<k>(patches, patch, (i - 3 * component) / Shape::plane, b, a);
  return Column<k>(patches, patch, i / component, b, a)[i % component / Shape::plane + 1];
}

inline constexpr int direct_threads = 256;

/// Threads go over the rows of the (symmetric) inverse; what they read at a time is consecutive.
template <class T, int k>
__global__ void __launch_bounds__(direct_threads) solve_direct(const __grid_constant__ SolverArguments<T> arguments) {
  constexpr int unknowns = SolverShape<k, false>::unknowns;
  extern __shared__ unsigned char memory[];
  T* const load = reinterpret_cast<T*>(memory);
  const int patch = static_cast<int>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  const T* const inverse = arguments.inverse + static_cast<std::int64_t>(unknowns) * unknowns *
                                                   arguments.inverse_of[arguments.patches.kind[patch]];
  for (int i = thread; i < unknowns; i += direct_threads) {
    load[i] = arguments.r[unknown_place<k>(arguments.patches, patch, i)];
  }
  __syncthreads();
  for (int i = thread; i < unknowns; i += direct_threads) {
    T sum = T(0);
#pragma unroll 16
    for (int j = 0; j < unknowns; ++j) sum += inverse[static_cast<std::int64_t>(j) * unknowns + i] * load[j];
    arguments.x[unknown_place<k>(arguments.patches, patch, i)] += sum;
  }
}

template <class T, int k>
__global__ void load_units(const __grid_constant__ Patches patches, T* r) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < patches.count) r[unknown_place<k>(patches, i, i)] = T(1);
}

template <class T, int k>
__global__ void collect_columns(const __grid_constant__ Patches patches, const T* x, T* inverse) {
  constexpr int unknowns = SolverShape<k, false>::unknowns;
  const int patch = static_cast<int>(blockIdx.x);
  for (int i = static_cast<int>(threadIdx.x); i < unknowns; i += static_cast<int>(blockDim.x)) {
    inverse[static_cast<std::int64_t>(patch) * unknowns + i] = x[unknown_place<k>(patches, patch, i)];
  }
}

template <class T, int k>
Counts count_solver(Local local, int iterations) {
  using Shape = SolverShape<k, false>;
  constexpr double N = Shape::N;
  constexpr double rows = Shape::rows;
  Counts counts;
  counts.device_bytes = (4.0 * 3.0 * rows + 3.0 * N) * Shape::plane * sizeof(T) + 8 * (entities + 1) * sizeof(int) + 1;
  if (local == Local::direct) {
    constexpr double unknowns = Shape::unknowns;
    counts.flops = 2.0 * unknowns * unknowns;
    counts.device_bytes += (unknowns * unknowns - 3.0 * rows * Shape::plane) * sizeof(T);
    counts.shared_bytes = shared_traffic(direct_threads, unknowns * unknowns / direct_threads, 0.0, sizeof(T));
    return counts;
  }
  // Of a thread. A transform, along a and b, reads and writes columns twice; contractions in registers read a matrix.
  constexpr double transform_flops = 2.0 * 2.0 * N * rows;
  constexpr double transform_read = 2.0 * (N * rows + N);
  constexpr double transform_written = 2.0 * rows;
  const double inversions = iterations + 2.0;
  const double borders = 2.0 * iterations + 2.0;  // B or B^T
  const double transforms = 2.0 * inversions + borders;
  const double in_registers = 2.0 * rows * rows * inversions + N * rows * borders;
  const double pressures = (8.0 / 3.0 * N) * iterations;  // CG's vectors: a third of a line
  counts.flops = 3.0 * Shape::plane *
                 (transforms * transform_flops + 2.0 * in_registers + rows * inversions + 4.0 / 3.0 * N * iterations);
  counts.shared_bytes = shared_traffic(Shape::threads, transforms * transform_read + in_registers,
                                       transforms * transform_written + borders * N + pressures, sizeof(T));
  return counts;
}

template <class T, int k>
void launch_solver(Local local, const SolverArguments<T>& arguments) {
  const auto start = [&](auto kernel, int threads, int values) {
    const int bytes = values * static_cast<int>(sizeof(T));
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<arguments.patches.count, threads, bytes>>>(arguments);
  };
  switch (local) {
    case Local::direct: return start(solve_direct<T, k>, direct_threads, SolverShape<k, false>::unknowns);
    case Local::schur:
      return start(solve_schur<T, k, false>, SolverShape<k, false>::threads, SolverShape<k, false>::shared_values);
    case Local::conflict_free:
      return start(solve_schur<T, k, true>, SolverShape<k, true>::threads, SolverShape<k, true>::shared_values);
  }
}

template <class T, int order>
void add_solver(Kernels<T>& kernels) {
  kernels.solve = launch_solver<T, order>;
  kernels.count_solve = count_solver<T, order>;
  kernels.unit_loads = [](const Patches& patches, T* r) {
    load_units<T, order><<<(patches.count + 255) / 256, 256>>>(patches, r);
  };
  kernels.collect_inverse = [](const Patches& patches, const T* x, T* inverse) {
    collect_columns<T, order><<<patches.count, 256>>>(patches, x, inverse);
  };
}

}  // namespace solenoid::paper
