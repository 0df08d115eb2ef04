#pragma once
/// \file
/// The vertex-patch smoother of Poisson's equation, for every kind of patch: one launch per colour computes the
/// residual on its patches, solves, and writes old values plus corrections.
///
/// A thread block has patches of one kind; a thread has a line of N = 2n values of one of them, along one direction
/// after the other:
///   1. residual: r = b - alpha u - nu sum_a L^O_a u, the operator of poisson_operator.cuh on two cells at a time. Ends
///      of lines find what is behind them in memory, at a wall themselves, and at ends that are cut nothing.
///   2. fast diagonalisation: S_O^T in the directions last to first, the inverse eigenvalues, S_O first to last. The
///      last residual shares its lines with the first transform, the last transform writes to memory.
/// The lanes of a warp are neighbouring patches of the list, whose cells are mostly neighbouring records.
///
/// Shared memory: matrices S_O [dim][N][N, padded to four]; u and r [N^(dim-1)][N + 1][patches] each; the records of
/// the cells and of what is behind the ends. Traffic per unknown and colour: b and u once from memory, what is behind
/// ends from the caches, y once to memory; 16 (3D) accesses to shared memory, and those to matrices.

#include "engine/cuda/kernels/line_operator.cuh"
#include "engine/cuda/kernels/smoother/poisson.hpp"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct PoissonSmoother {
  using S = Shape<dim, order, 0>;
  using Line = LineOperator<T, dim, order>;
  using Tables = typename Line::Tables;
  static constexpr int n = S::n;
  static constexpr int modes = 2 * n;
  static constexpr int corners = 1 << dim;
  static constexpr int halves = corners / 2;  // pairs of cells that lines of one direction cross
  using InRecord = Lines<dim, n, n>;
  using InPatch = Lines<dim, modes, modes + 1>;

  /// Low orders in space: many small thread blocks with few registers.
  static constexpr bool lean = dim == 3 && n <= 3 && sizeof(T) == sizeof(float);
  /// Of a thread block.
  static constexpr int patches = [] {
    constexpr int most_threads = lean ? 320 : 640;
    constexpr int most_bytes = 96 << 10;
    int count = 32;
    while (count > 1 &&
           (count * InPatch::count > most_threads || count * 2 * InPatch::places * int{sizeof(T)} > most_bytes)) {
      count /= 2;
    }
    return count;
  }();
  static constexpr int threads = patches * InPatch::count;
  /// On a multiprocessor, which bounds registers; 0: whatever the compiler finds best.
  static constexpr int blocks = lean ? 65536 / (32 * threads) : 0;

  struct Memory {
    alignas(16) T eigen[dim][modes][(modes + 3) / 4 * 4];  ///< S_O: rows are functions, columns eigenvectors
    T u[InPatch::places][patches];
    T r[InPatch::places][patches];  ///< residual, then correction
    std::int32_t cells[corners][patches];
    std::int32_t behind[2 * dim][halves][patches];  ///< the record behind an end, or -1 - weight of the face there
  };
  struct Arguments : PoissonArguments<T> {
    T alpha;
    T factor;  ///< of corrections
  };

  /// The lower cell of pair `half` of direction a: its number has the bits of the other directions.
  __device__ static int lower_corner(int a, int half) { return (half & ((1 << a) - 1)) | half >> a << (a + 1); }

  /// Matrices and records of the thread block's patches.
  __device__ static void look_up(const Arguments& arguments, const PoissonBatch& batch, Memory& memory) {
    const CellTopology& topology = arguments.topology;
    const PatchData<T>& kind = arguments.kinds[batch.kind];
    const auto thread = static_cast<int>(threadIdx.x + threadIdx.y * patches);
    for (int i = thread; i < corners * patches; i += threads) {
      // Threads without a patch work on the last one.
      std::int32_t cell = arguments.lower[batch.begin + min(i % patches, batch.count - 1)];
      for (int a = 0; a < dim; ++a) {
        if ((i / patches >> a & 1) != 0) cell = topology.neighbour[2 * a + 1][cell];
      }
      memory.cells[i / patches][i % patches] = cell;
    }
    for (int i = thread; i < dim * modes * modes; i += threads) {
      const int a = i / (modes * modes);
      memory.eigen[a][i / modes % modes][i % modes] = kind.eigen_o[a][i % (modes * modes)];
    }
    __syncthreads();
    for (int i = thread; i < 2 * dim * halves * patches; i += threads) {
      const int lane = i % patches;
      const int half = i / patches % halves;
      const int side = i / (patches * halves);
      const int a = side / 2;
      const int end = side % 2;
      const std::int32_t cell = memory.cells[lower_corner(a, half) | end << a][lane];
      const std::int32_t beside = topology.neighbour[side][cell];
      const bool cut = kind.cut[a][end];
      memory.behind[side][half][lane] =
          !cut && beside < topology.cells ? beside : -1 - face_weight(cut ? Face::slip : topology.face[side][cell]);
    }
    __syncthreads();
  }

  /// The line of a thread in direction a.
  template <int a>
  struct Place {
    const int lane = static_cast<int>(threadIdx.x);
    int first;  ///< in the patch
    int half;
    int start;  ///< in the records

    __device__ Place() {
      const auto line = static_cast<int>(threadIdx.y);
      const int slow = line / modes;
      const int fast = line % modes;
      first = InPatch::start(a, line);
      half = fast / n + 2 * (slow / n);
      start = InRecord::start(a, fast % n + n * (slow % n)) * interleave;
    }
    static constexpr int step = InPatch::stride(a);
    static constexpr int stride = InRecord::stride(a) * interleave;
    /// Place in a vector of the line's part in the lower (0) or upper (1) cell.
    __device__ std::int64_t in_vector(const Memory& memory, int upper) const {
      return S::offset(memory.cells[lower_corner(a, half) | upper << a][lane]) + start;
    }
  };

  // --- 1: residual ---------------------------------------------------------------------------------------------------

  /// r -= nu L^O u on a line.
  template <int a>
  __device__ static void subtract(const Tables& tables, const Arguments& arguments, const Memory& memory,
                                  const Place<a>& place, const T (&u)[modes], T (&r)[modes]) {
    const auto lower = [&](int m) { return u[m]; };
    const auto upper = [&](int m) { return u[n + m]; };
    const auto behind = [&](int end, const auto& own) {
      const std::int32_t beside = memory.behind[2 * a + end][place.half][place.lane];
      if (beside < 0) return Line::reflected(tables, end, -1 - beside, own);
      const T* const values = arguments.colour.x + S::offset(beside) + place.start;
      return Line::trace(tables, 1 - end, [&](int m) { return __ldg(values + m * place.stride); });
    };
    const Trace<T> below = behind(0, lower);
    const Trace<T> above = behind(1, upper);
    Line::apply(tables, lower, below, Line::trace(tables, 0, upper),
                [&](int j, T image) { r[j] -= tables.factor[a] * image; });
    Line::apply(tables, upper, Line::trace(tables, 1, lower), above,
                [&](int j, T image) { r[n + j] -= tables.factor[a] * image; });
  }

  /// The first direction: u and r come from memory.
  __device__ static void begin_residual(const Tables& tables, const Arguments& arguments, Memory& memory) {
    const Place<0> place;
    T u[modes]{};
    T r[modes];
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const std::int64_t at = place.in_vector(memory, upper);
#pragma unroll
      for (int m = 0; m < n; ++m) {
        if (arguments.colour.x != nullptr) u[upper * n + m] = __ldg(arguments.colour.x + at + m * place.stride);
        r[upper * n + m] = __ldcs(arguments.colour.b + at + m * place.stride) - arguments.alpha * u[upper * n + m];
      }
    }
    if (arguments.colour.x != nullptr) subtract(tables, arguments, memory, place, u, r);
#pragma unroll
    for (int m = 0; m < modes; ++m) {
      memory.u[place.first + m * place.step][place.lane] = u[m];
      memory.r[place.first + m * place.step][place.lane] = r[m];
    }
  }
  template <int a>
  __device__ static void continue_residual(const Tables& tables, const Arguments& arguments, Memory& memory) {
    if (arguments.colour.x == nullptr) return;
    const Place<a> place;
    T u[modes];
    T r[modes];
#pragma unroll
    for (int m = 0; m < modes; ++m) {
      u[m] = memory.u[place.first + m * place.step][place.lane];
      r[m] = memory.r[place.first + m * place.step][place.lane];
    }
    subtract(tables, arguments, memory, place, u, r);
#pragma unroll
    for (int m = 0; m < modes; ++m) memory.r[place.first + m * place.step][place.lane] = r[m];
  }

  // --- 2: fast diagonalisation ---------------------------------------------------------------------------------------

  static constexpr int rows_ahead = modes <= 8 ? modes : 2;  ///< of the matrix

  /// out = S_O^T r
  template <int a>
  __device__ static void forward(const Memory& memory, const Place<a>& place, T (&out)[modes]) {
#pragma unroll
    for (int i = 0; i < modes; ++i) out[i] = T(0);
#pragma unroll(rows_ahead)
    for (int j = 0; j < modes; ++j) {
      const T r = memory.r[place.first + j * place.step][place.lane];
#pragma unroll
      for (int i = 0; i < modes; ++i) out[i] += memory.eigen[a][j][i] * r;
    }
  }
  /// visit(j, (S_O in)_j)
  template <int a, class F>
  __device__ static void backward(const Memory& memory, const T (&in)[modes], const F& visit) {
#pragma unroll(rows_ahead)
    for (int j = 0; j < modes; ++j) {
      T sum = 0;
#pragma unroll
      for (int i = 0; i < modes; ++i) sum += memory.eigen[a][j][i] * in[i];
      visit(j, sum);
    }
  }

  template <int a>
  __device__ static void transform(Memory& memory) {
    const Place<a> place;
    T out[modes];
    forward(memory, place, out);
#pragma unroll
    for (int i = 0; i < modes; ++i) memory.r[place.first + i * place.step][place.lane] = out[i];
  }
  /// S_O^T, inverse eigenvalues and S_O in the first direction.
  __device__ static void divide(const T* inverse_lambda, Memory& memory) {
    const Place<0> place;
    T values[modes];
    forward(memory, place, values);
    const T* const inverse = inverse_lambda + threadIdx.y * modes;
#pragma unroll
    for (int i = 0; i < modes; ++i) values[i] *= __ldg(inverse + i);
    backward<0>(memory, values, [&](int j, T value) { memory.r[place.first + j * place.step][place.lane] = value; });
  }
  template <int a>
  __device__ static void transform_back(Memory& memory) {
    const Place<a> place;
    T values[modes];
#pragma unroll
    for (int i = 0; i < modes; ++i) values[i] = memory.r[place.first + i * place.step][place.lane];
    backward<a>(memory, values, [&](int j, T value) { memory.r[place.first + j * place.step][place.lane] = value; });
  }
  /// The last direction, to memory.
  __device__ static void write(const Arguments& arguments, bool active, const Memory& memory) {
    if (!active) return;
    constexpr int a = dim - 1;
    const Place<a> place;
    T values[modes];
#pragma unroll
    for (int i = 0; i < modes; ++i) values[i] = memory.r[place.first + i * place.step][place.lane];
    const std::int64_t lower = place.in_vector(memory, 0);
    const std::int64_t upper = place.in_vector(memory, 1);
    backward<a>(memory, values, [&](int j, T value) {
      T* const to = arguments.colour.y + (j < n ? lower + j * place.stride : upper + (j - n) * place.stride);
      const T old = arguments.colour.add ? *to : memory.u[place.first + j * place.step][place.lane];
      __stcs(to, old + arguments.factor * value);
    });
  }

  __device__ static void smooth(const Tables& tables, const Arguments& arguments, Memory& memory) {
    const PoissonBatch batch = arguments.batches[blockIdx.x];
    look_up(arguments, batch, memory);
    wait_for_earlier_kernels();
    begin_residual(tables, arguments, memory);
    __syncthreads();
    if constexpr (dim == 3) {
      continue_residual<1>(tables, arguments, memory);
      __syncthreads();
    }
    continue_residual<dim - 1>(tables, arguments, memory);
    transform<dim - 1>(memory);
    __syncthreads();
    if constexpr (dim == 3) {
      transform<1>(memory);
      __syncthreads();
    }
    divide(arguments.kinds[batch.kind].inverse_lambda[0], memory);
    __syncthreads();
    if constexpr (dim == 3) {
      transform_back<1>(memory);
      __syncthreads();
    }
    write(arguments, static_cast<int>(threadIdx.x) < batch.count, memory);
  }

  static void launch_smooth(const PoissonArguments<T>& arguments, Stream stream);
};

/// Threads: (patch, line).
template <class T, int dim, int order>
__global__
__launch_bounds__(PoissonSmoother<T, dim, order>::threads, PoissonSmoother<T, dim, order>::blocks) void smooth_poisson(
    const __grid_constant__ OperatorTables<T, dim, order> tables,
    const __grid_constant__ typename PoissonSmoother<T, dim, order>::Arguments arguments) {
  using Smoother = PoissonSmoother<T, dim, order>;
  extern __shared__ __align__(16) unsigned char memory[];
  Smoother::smooth(tables, arguments, *reinterpret_cast<typename Smoother::Memory*>(memory));
}

template <class T, int dim, int order>
void PoissonSmoother<T, dim, order>::launch_smooth(const PoissonArguments<T>& arguments, Stream stream) {
  const Tables tables(*arguments.cell);
  const Arguments with_factor{arguments, arguments.cell->alpha, arguments.colour.factor()};
  launch("smooth", smooth_poisson<T, dim, order>, static_cast<unsigned>(arguments.batch_count),
         dim3(patches, InPatch::count), sizeof(Memory), stream, tables, with_factor);
}

}  // namespace solenoid::cuda
