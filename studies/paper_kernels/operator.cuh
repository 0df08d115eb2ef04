#pragma once
/// \file
/// The operator, in the four stages of the paper's Section 5.1. A block does one vertex patch: it loads the eight
/// cells, computes the cell integrals of the lowest of them and the integrals over the faces between it and the others,
/// so that each cell and each face of the mesh is done once, and adds to the result (the last patch before an upper
/// wall does the upper cell too). Per component c, with a = c + 1, b = c + 2 (mod 3),
///
///     y_c = (L_c x M_b x M_a + M_c x L_b x M_a + M_c x M_b x L_a) u_c - (D_c^T x M_b x M_a) p,
///     q   = - sum_c (D_c x M_b x M_a) u_c
///
/// with dense univariate matrices of the whole patch, in which what the patch has no share in is zero. (That tensors
/// have the size of the patch, not of a cell, follows from the paper's "DoF per patch", from its one block per
/// multiprocessor at higher orders, and from its 2000 flops per unknown.)
///
/// Three groups of threads do a component each, a thread one column.
///
///   padding        O has N + 1 functions as P has, the last one zero: all matrices are square. (N + 1)^2 threads per
///                  component; matrices in constant memory.
///   basic          N^2 threads, as many as columns; matrices in constant memory.
///   shared memory  matrices in shared memory: threads read different elements of them at a time.
///   conflict-free  so far a warp's threads went along the direction that is not contracted. In the contraction along a
///                  (fastest in memory) they read and wrote with stride N; now they go along a there too, read the same
///                  value or consecutive ones of a transposed matrix, and write consecutive ones. Rows and planes of
///                  pressures are spread over the banks.
///
/// Shared memory, in numbers: u, t1, t2 [3][field each], p [N^3], from stage "shared memory" on matrices [3
/// directions]. Global memory per patch: x read once, y added to with atomics once, 4 (k+1)^3 of those unknowns new.

#include <cuda_runtime.h>

#include "studies/paper_kernels/patch.cuh"

namespace solenoid::paper {

template <int k, Stage stage>
struct OperatorShape {
  static constexpr int n = k + 1;
  static constexpr int N = 2 * n;
  static constexpr int rows = N + 1;  // of P
  static constexpr int size = stage == Stage::padding ? N + 1 : N;
  static constexpr bool in_shared = stage == Stage::shared_memory || stage == Stage::conflict_free;
  static constexpr bool conflict_free = stage == Stage::conflict_free;
  static constexpr int plane = size * size;
  using Pressure = PressureLayout<size, conflict_free>;
  static constexpr int field = rows * plane > Pressure::values ? rows* plane : Pressure::values;
  static constexpr int threads = whole_warps(3 * plane);
  // That registers have to leave room for on a multiprocessor; 0: left to the compiler
  static constexpr int blocks = in_shared && threads > 256 ? 2 : 0;

  // Univariate matrices of a line kind, row-major
  static constexpr int mass_o = 0;                             // size x size
  static constexpr int laplace_o = plane;                      // size x size
  static constexpr int mass_p = 2 * plane;                     // rows x rows
  static constexpr int laplace_p = mass_p + rows * rows;       // rows x rows
  static constexpr int divergence = mass_p + 2 * rows * rows;  // size x rows
  static constexpr int matrices = divergence + size * rows;

  static constexpr int shared_values = 9 * field + Pressure::values + (in_shared ? 3 * matrices : 0);
};

template <class T, int k, bool padded>
__constant__ T constant_matrices[line_kinds * OperatorShape < k, padded ? Stage::padding : Stage::basic > ::matrices];

template <class T, int k, Stage stage>
__global__ void __launch_bounds__(OperatorShape<k, stage>::threads, OperatorShape<k, stage>::blocks)
    apply_operator(const __grid_constant__ OperatorArguments<T> arguments) {
  using Shape = OperatorShape<k, stage>;
  using Pressure = typename Shape::Pressure;
  constexpr int N = Shape::N;
  constexpr int rows = Shape::rows;
  constexpr int size = Shape::size;
  constexpr int plane = Shape::plane;
  constexpr bool transposed = Shape::conflict_free;  // O's matrices are symmetric: the same numbers
  extern __shared__ unsigned char memory[];
  T* const shared = reinterpret_cast<T*>(memory);
  T* const p = shared + 9 * Shape::field;
  [[maybe_unused]] T* const shared_matrices = p + Pressure::values;

  const int patch = static_cast<int>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  const int kind = arguments.patches.kind[patch];
  const int c = thread / plane;
  const bool active = c < 3;
  const int direction_a = (c + 1) % 3;
  const int direction_b = (c + 2) % 3;
  const int a = thread % plane % size;
  const int b = thread % plane / size;
  const int along_a = Shape::conflict_free ? a : b;  // the thread's (b, a) in contractions along a
  const int along_b = Shape::conflict_free ? b : a;
  T* const u = shared + c * Shape::field;
  T* const t1 = u + 3 * Shape::field;
  T* const t2 = t1 + 3 * Shape::field;
  const auto matrix = [&](int direction, int which) -> const T* {
    if constexpr (Shape::in_shared) {
      return shared_matrices + direction * Shape::matrices + which;
    } else {
      return constant_matrices<T, k, stage == Stage::padding> + (kind >> 2 * direction & 3) * Shape::matrices + which;
    }
  };
  const int column = b * size + a;
  const int column_a = along_b * size + along_a;

  if constexpr (Shape::in_shared) {
    for (int i = thread; i < 3 * Shape::matrices; i += Shape::threads) {
      const int direction = i / Shape::matrices;
      shared_matrices[i] =
          arguments.matrices[(kind >> 2 * direction & 3) * Shape::matrices + i - direction * Shape::matrices];
    }
  }
  const bool has_unknowns = active && a < N && b < N;
  const Column<k> place(arguments.patches, patch, active ? c : 0, has_unknowns ? b : 0, has_unknowns ? a : 0);
  if (active) {
#pragma unroll
    for (int i = 0; i < rows; ++i) u[i * plane + column] = has_unknowns ? arguments.x[place[i]] : T(0);
  }
  const auto for_each_pressure = [&](auto&& visit) {
    for (int i = thread; i < size * plane; i += Shape::threads) {
      const int x = i % size;
      const int y = i / size % size;
      const int z = i / plane;
      visit(z * Pressure::plane + y * Pressure::row + x, z, y, x);
    }
  };
  for_each_pressure([&](int at, int z, int y, int x) {
    const bool there = x < N && y < N && z < N;
    p[at] = there ? arguments.x[pressure_place<k>(arguments.patches, patch, z, y, x)] : T(0);
  });
  __syncthreads();

  // Laplacian
  T result[rows]{};
  if (active) {
    T both[2][rows]{};  // M_a u, L_a u
    contract<size, transposed>({matrix(direction_a, Shape::mass_o), matrix(direction_a, Shape::laplace_o)}, along_a,
                               u + along_b * size, plane, 1, both);
    store(both[0], t1 + column_a, plane);
    store(both[1], t2 + column_a, plane);
  }
  __syncthreads();
  if (active) {
    T both[2][rows]{};  // M_b M_a u, (L_b M_a + M_b L_a) u
    const T* const mass = matrix(direction_b, Shape::mass_o);
    contract<size, transposed>({mass, matrix(direction_b, Shape::laplace_o)}, b, t1 + a, plane, size, both);
    contract<size, transposed>({mass}, b, t2 + a, plane, size, reinterpret_cast<T(&)[1][rows]>(both[1]));
    contract_column<false>(matrix(c, Shape::laplace_p), both[0], result);
    contract_column<false>(matrix(c, Shape::mass_p), both[1], result);
  }
  __syncthreads();

  // Divergence of u, and the first step of its transpose applied to p
  if (active) {
    T out[1][rows]{};
    contract<size, transposed>({matrix(direction_a, Shape::mass_o)}, along_a, u + along_b * size, plane, 1, out);
    store(out[0], t1 + column_a, plane);
  }
  __syncthreads();
  if (active) {
    T out[1][rows]{};
    contract<size, transposed>({matrix(direction_b, Shape::mass_o)}, b, t1 + a, plane, size, out);
    T q[size]{};
    contract_column<false>(matrix(c, Shape::divergence), out[0], q);
    const int stride = Pressure::stride(c);
    const int base = a * Pressure::stride(direction_a) + b * Pressure::stride(direction_b);
    store(q, t2 + base, stride);
    T line[size];
#pragma unroll
    for (int i = 0; i < size; ++i) line[i] = p[base + i * stride];
    T gradient[rows]{};
    contract_column<true>(matrix(c, Shape::divergence), line, gradient);
    store(gradient, u + column, plane);
  }
  __syncthreads();
  if (active) {
    T out[1][rows]{};
    contract<size, transposed>({matrix(direction_a, Shape::mass_o)}, along_a, u + along_b * size, plane, 1, out);
    store(out[0], t1 + column_a, plane);
  }
  __syncthreads();
  if (active) {
    T out[1][rows]{};
    contract<size, transposed>({matrix(direction_b, Shape::mass_o)}, b, t1 + a, plane, size, out);
    if (has_unknowns) {
#pragma unroll
      for (int i = 0; i < rows; ++i) atomicAdd(arguments.y + place[i], arguments.factor * (result[i] - out[0][i]));
    }
  }
  const T* const q = shared + 6 * Shape::field;  // t2 of the first component
  for_each_pressure([&](int at, int z, int y, int x) {
    if (x >= N || y >= N || z >= N) return;
    const T sum = q[at] + q[at + Shape::field] + q[at + 2 * Shape::field];
    atomicAdd(arguments.y + pressure_place<k>(arguments.patches, patch, z, y, x), -arguments.factor * sum);
  });
}

template <class T, int k, Stage stage>
Counts count_operator() {
  using Shape = OperatorShape<k, stage>;
  constexpr int size = Shape::size;
  constexpr int rows = Shape::rows;
  // Of a thread: contractions of the Laplacian (a: 2, b: 3, c: 2), the divergence and its transpose (a, b, c each)
  constexpr double flops = 2.0 * (9.0 * size * rows + 2.0 * rows * rows + 2.0 * size * rows);
  constexpr double read =
      6.0 * size * rows + (Shape::in_shared ? 9.0 * size + 2.0 * rows * rows + 2.0 * size * rows : 0);
  constexpr double written = rows + 2.0 * rows + (rows + size + rows) + rows;  // u; t1, t2; t1, q, gradient; t1
  constexpr double pressures = size / 3.0 + size + size;                       // p stored, p in lines, three q added up
  constexpr double matrices = Shape::in_shared ? 3.0 * Shape::matrices / Shape::threads : 0;
  Counts counts;
  counts.flops = 3.0 * Shape::plane * flops;
  counts.shared_bytes = shared_traffic(Shape::threads, read, written + pressures + matrices, sizeof(T));
  // Vectors once: of the eight cells of a patch one is new to the device's caches
  constexpr double unknowns = 4.0 * Shape::n * Shape::n * Shape::n;
  counts.device_bytes = 3.0 * sizeof(T) * unknowns + (entities + 8) * sizeof(std::int32_t) + 1;
  return counts;
}

template <class T, int k, Stage stage>
void launch_operator(const OperatorArguments<T>& arguments) {
  using Shape = OperatorShape<k, stage>;
  constexpr int bytes = Shape::shared_values * static_cast<int>(sizeof(T));
  const auto kernel = apply_operator<T, k, stage>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<arguments.patches.count, Shape::threads, bytes>>>(arguments);
}

template <class T, int k>
void set_operator_constants(const T* padded, const T* exact) {
  cudaMemcpyToSymbol(constant_matrices<T, k, true>, padded, sizeof(constant_matrices<T, k, true>));
  cudaMemcpyToSymbol(constant_matrices<T, k, false>, exact, sizeof(constant_matrices<T, k, false>));
}

template <class T, int order>
void add_operator(Kernels<T>& kernels) {
  kernels.set_constants = set_operator_constants<T, order>;
  kernels.apply = [](Stage stage, const OperatorArguments<T>& arguments) {
    switch (stage) {
      case Stage::padding: return launch_operator<T, order, Stage::padding>(arguments);
      case Stage::basic: return launch_operator<T, order, Stage::basic>(arguments);
      case Stage::shared_memory: return launch_operator<T, order, Stage::shared_memory>(arguments);
      case Stage::conflict_free: return launch_operator<T, order, Stage::conflict_free>(arguments);
    }
  };
  kernels.count_apply = [](Stage stage) {
    switch (stage) {
      case Stage::padding: return count_operator<T, order, Stage::padding>();
      case Stage::basic: return count_operator<T, order, Stage::basic>();
      case Stage::shared_memory: return count_operator<T, order, Stage::shared_memory>();
      case Stage::conflict_free: return count_operator<T, order, Stage::conflict_free>();
    }
    return Counts{};
  };
}

}  // namespace solenoid::paper
