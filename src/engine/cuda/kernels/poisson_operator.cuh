#pragma once
/// \file
/// Poisson's operator, y = nu sum_a L^O_a u + alpha u: a thread has some lines of a cell, one direction after the
/// other.
///
/// Lines along x come from memory; u and the sum so far are in shared memory, where the next direction finds them. What
/// a line needs of its neighbours it loads itself: cells of a thread block are a tile, so that most of it is in the
/// first-level cache. Every value has one writer.
///
/// Shared memory: u and y of the cells, [n^(dim-1)][n, or n + 1 if n is even][cells] each. Traffic per unknown in
/// double: DRAM 16 bytes; loads of 1 + 2 dim values from caches; 7 (3D) accesses to shared memory.

#include "engine/cuda/kernels/line_operator.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct PoissonOperator {
  using S = Shape<dim, order, 0>;
  using Line = LineOperator<T, dim, order>;
  using Tables = typename Line::Tables;
  static constexpr int n = S::n;
  using InRecord = Lines<dim, n, n>;
  using InMemory = Lines<dim, n, n | 1>;

  /// Lines of a thread and threads of a cell. The more lines, the fewer look-ups and instructions; measured for k <= 4.
  static constexpr int lines = n == 2 ? InMemory::count : n <= 5 ? n : 1;
  static constexpr int team = InMemory::count / lines;
  /// Of a thread block.
  static constexpr int cells = [] {
    constexpr int most_threads = 576;
    constexpr int most_bytes = 96 << 10;
    int count = 128;
    while (count * team > most_threads || count * 2 * InMemory::places * int{sizeof(T)} > most_bytes) {
      count /= 2;
    }
    return count;
  }();
  static constexpr int threads = cells * team;

  struct Memory {
    T u[InMemory::places][cells];
    T y[InMemory::places][cells];
  };
  struct Arguments : ApplyArguments<T> {
    T alpha;
  };

  template <bool with_b>
  __device__ static void apply(const Tables& tables, const Arguments& arguments, Memory& memory) {
    const std::int32_t cell = cell_of_thread(arguments.blocks, arguments.topology, blockIdx.x);
    const unsigned sides = arguments.boundary_sides[cell];
    wait_for_earlier_kernels();
    along<with_b, 0>(tables, arguments, cell, sides, memory);
    __syncthreads();
    along<with_b, 1>(tables, arguments, cell, sides, memory);
    if constexpr (dim == 3) {
      __syncthreads();
      along<with_b, 2>(tables, arguments, cell, sides, memory);
    }
  }

  static void launch_apply(const ApplyArguments<T>& arguments, Stream stream);

 private:
  /// Adds what acts in direction a; the last one writes the sum to memory.
  template <bool with_b, int a>
  __device__ static void along(const Tables& tables, const Arguments& arguments, std::int32_t cell, unsigned sides,
                               Memory& memory) {
    const auto lane = static_cast<int>(threadIdx.x);
    const std::int64_t at = S::offset(cell);
    const bool boundary[2] = {(sides >> 2 * a & 1) != 0, (sides >> (2 * a + 1) & 1) != 0};
    int weight[2] = {1, 1};
    const T* beside[2];
#pragma unroll
    for (int end = 0; end < 2; ++end) {
      if (boundary[end]) weight[end] = face_weight(arguments.topology.face[2 * a + end][cell]);
      beside[end] = arguments.x + S::offset(__ldg(arguments.topology.neighbour[2 * a + end] + cell));
    }
#pragma unroll
    for (int i = 0; i < lines; ++i) {
      const int line = static_cast<int>(threadIdx.y) + i * team;
      const int place = InMemory::start(a, line);
      const int start = InRecord::start(a, line) * interleave;
      constexpr int step = InMemory::stride(a);
      constexpr int stride = InRecord::stride(a) * interleave;
      T u[n];
#pragma unroll
      for (int m = 0; m < n; ++m) {
        if constexpr (a == 0) {
          u[m] = __ldg(arguments.x + at + start + m * stride);
          memory.u[place + m * step][lane] = u[m];
        } else {
          u[m] = memory.u[place + m * step][lane];
        }
      }
      const auto own = [&](int m) { return u[m]; };
      const auto behind = [&](int end) {
        if (boundary[end]) return Line::reflected(tables, end, weight[end], own);
        return Line::trace(tables, 1 - end, [&](int m) { return __ldg(beside[end] + start + m * stride); });
      };
      const Trace<T> below = behind(0);
      const Trace<T> above = behind(1);
      Line::apply(tables, own, below, above, [&](int j, T image) {
        const T sum = (a == 0 ? arguments.alpha * u[j] : memory.y[place + j * step][lane]) + tables.factor[a] * image;
        if constexpr (a + 1 < dim) {
          memory.y[place + j * step][lane] = sum;
        } else if (cell != arguments.topology.null) {
          const std::int64_t to = at + start + j * stride;
          __stcs(arguments.y + to, with_b ? __ldcs(arguments.b + to) - sum : sum);
        }
      });
    }
  }
};

/// y = A x or b - A x on cells. Threads: (cell, lines).
template <bool with_b, class T, int dim, int order>
__global__ __launch_bounds__(PoissonOperator<T, dim, order>::threads) void apply_poisson(
    const __grid_constant__ OperatorTables<T, dim, order> tables,
    const __grid_constant__ typename PoissonOperator<T, dim, order>::Arguments arguments) {
  using O = PoissonOperator<T, dim, order>;
  extern __shared__ __align__(16) unsigned char memory[];
  O::template apply<with_b>(tables, arguments, *reinterpret_cast<typename O::Memory*>(memory));
}

template <class T, int dim, int order>
void PoissonOperator<T, dim, order>::launch_apply(const ApplyArguments<T>& arguments, Stream stream) {
  const Tables tables(*arguments.cell);
  const auto kernel = arguments.b == nullptr ? apply_poisson<false, T, dim, order> : apply_poisson<true, T, dim, order>;
  launch(arguments.b == nullptr ? "apply" : "residual", kernel, blocks_for(arguments.blocks.count * interleave, cells),
         dim3(cells, team), sizeof(Memory), stream, tables, Arguments{arguments, arguments.cell->alpha});
}

}  // namespace solenoid::cuda
