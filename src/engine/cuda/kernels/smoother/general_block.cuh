#pragma once
/// \file
/// A thread block of the general smoother (general.cuh): sizes of a patch, shared memory, how work is shared out, and
/// where values are.

#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "engine/cuda/kernels/line_operator.cuh"
#include "engine/cuda/kernels/smoother/general.hpp"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct GeneralBlock {
  using S = Shape<dim, order>;
  using Line = LineOperator<T, dim, order>;
  using Tables = typename Line::Tables;
  static constexpr int n = S::n;
  static constexpr int modes = 2 * n;
  static constexpr int columns = power(modes, dim - 1);
  static constexpr int functions = modes + 1;
  static constexpr int rows = modes + 2;  // of both cells
  /// Lines of a patch lie an odd number of places apart in shared memory, so that what neighbouring threads read of
  /// neighbouring lines is in different banks, along whichever direction they run.
  static constexpr int line_pitch = modes + 1;
  static constexpr int row_pitch = dim == 3 ? modes * line_pitch : line_pitch;
  static constexpr int component = functions * row_pitch;
  static constexpr int pressures = power(modes, dim);
  static constexpr int pressure_room = modes * row_pitch;
  static constexpr int corners = 1 << dim;
  static constexpr int halves = corners / 2;
  static constexpr int others = columns / modes;  // lines of a row along a tangential direction
  /// One for each line of a tangential transform, as far as possible.
  static constexpr int threads = std::min((dim * functions * others + columns + 31) / 32 * 32, 512);
  /// On a multiprocessor, which bounds registers: a block waits for memory more often than it works, so that many
  /// should be there.
  static constexpr int blocks = [] {
    constexpr int registers = (n <= 3 ? 64 : 96) * static_cast<int>(sizeof(T) / sizeof(float));
    return std::max(65536 / (threads * registers), 1);
  }();
  /// The columns of S^-1 are shared out in so many parts where there are threads left.
  static constexpr int parts = std::clamp(threads / (corners * ((S::block + 3) / 4)), 1, dim);
  static_assert(parts * pressures <= dim * component);  // sums lie where flux was
  static constexpr GeneralTables layout{dim, n};
  using Row = T[layout.row_length()];
  struct Direction {
    Row eigen_o[modes];
    Row eigen_p[functions];
    Row divergence[modes];
  };
  struct KindMemory {
    alignas(16) Direction tables[dim];
    PatchData<T> data;
    const T* inverse_lambda;  ///< [component][eigenfunction][column]
  };
  template <bool roomy>
  struct PatchMemory {
    T u[dim][component];  ///< old velocity
    T w[dim][rows * row_pitch];
    T r[roomy ? dim : 1][roomy ? component : 1];
    T old_pressure[roomy ? pressure_room : 1];
    T pressure[pressure_room];  ///< residual, correction
    T schur[pressure_room];     ///< right-hand side
    std::int32_t cells[corners];
    std::int32_t above[dim][corners];                 ///< the records above cells
    std::int32_t behind[2 * dim][halves];             ///< the record behind an end, or -1 - weight of the face there
    std::int32_t above_behind[dim][2 * dim][halves];  ///< the record above that one

    /// b, residual, f, correction; in the place of w if there is no other.
    __device__ T* residual(int c) { return roomy ? r[c] : w[c]; }
    __device__ const T* residual(int c) const { return roomy ? r[c] : w[c]; }
    /// What components give to the divergence, in the place of w, which is no longer needed, or of the old velocity.
    __device__ T* flux(int c) { return roomy ? w[c] : u[c]; }
    __device__ const T* flux(int c) const { return roomy ? w[c] : u[c]; }
    __device__ T* old() { return roomy ? old_pressure : pressure; }
    __device__ const T* old() const { return roomy ? old_pressure : pressure; }
  };
  /// The largest patches have no room for old values, which are read again, and for b on its way.
  static constexpr bool roomy = sizeof(KindMemory) + sizeof(PatchMemory<true>) <= most_shared_bytes;
  using Memory = PatchMemory<roomy>;
  /// What iterative solvers need besides.
  struct Iteration {
    T sums[threads];
    T direction[pressure_room];
    T image[pressure_room];
  };
  struct BlockMemory {
    KindMemory kind;
    Memory first;
    char apart[192 - sizeof(Memory) % 128];  ///< what neighbouring threads use of two patches is 16 banks apart
    union {
      Memory second;
      Iteration iteration;
    };
  };
  static constexpr std::size_t shared_bytes(LocalSolverKind local, int together) {
    const bool iterative = local == LocalSolverKind::chebyshev || local == LocalSolverKind::cg;
    return offsetof(BlockMemory, second) + (iterative ? sizeof(Iteration) : (together - 1) * sizeof(Memory));
  }
  /// Patches for a multiprocessor from which on two are better off together: these keep as many threads busy.
  static constexpr int many = std::max(576 / threads, 1);
  /// Whether two have room.
  static constexpr bool two = shared_bytes(LocalSolverKind::direct, 2) * blocks <= most_shared_bytes;

  struct Arguments : GeneralArguments<T> {
    T alpha;
    T factor;  ///< of corrections
  };

  /// What a thread block works on.
  struct Work {
    BlockMemory& memory;
    int count;  ///< patches

    /// visit(memory of a patch, i) for i < things of all patches, by all threads: neighbours have the same thing of
    /// both patches, which are mostly neighbours in x, then neighbouring things.
    template <class F>
    __device__ void for_each(int things, F&& visit) const {
      from(static_cast<int>(threadIdx.x), things, visit);
    }
    /// The same by other threads: the last ones first, which have less to do where there are not enough things for all.
    template <class F>
    __device__ void for_each_from_last(int things, F&& visit) const {
      from(threads - 1 - static_cast<int>(threadIdx.x), things, visit);
    }
    /// visit(memory, corner, i) for all values i of the records of all cells; those of cells that are neighbours in x,
    /// which are neighbours in memory, by neighbouring threads.
    template <class F>
    __device__ void for_values(F&& visit) const {
      for_each(corners * S::record, [&](Memory& memory, int k) { visit(memory, k % corners, k / corners); });
    }
    /// visit(memory, c, column) for all columns of all components.
    template <class F>
    __device__ void for_columns(F&& visit) const {
      for_each(dim * columns, [&](Memory& memory, int k) { visit(memory, k / columns, k % columns); });
    }

   private:
    template <class F>
    __device__ void from(int begin, int things, F& visit) const {
      const int shift = count - 1;
      Memory& mine = (begin & shift) != 0 ? memory.second : memory.first;
#pragma unroll 1
      for (int i = begin; i < things * count; i += threads) visit(mine, i >> shift);
    }
  };
  /// What threads have stored is there for all.
  __device__ static void meet() { __syncthreads(); }
  /// Copies to shared memory on their way until meet_copies().
  __device__ static void copy(T& to, const T* from) { __pipeline_memcpy_async(&to, from, sizeof(T)); }
  /// Of what lies at multiples of `step` bytes.
  template <int step, class U>
  __device__ static void copy_all(U& to, const void* from) {
    static_assert(sizeof(U) % step == 0);
    for (int i = static_cast<int>(threadIdx.x) * step; i < static_cast<int>(sizeof(U)); i += threads * step) {
      __pipeline_memcpy_async(reinterpret_cast<char*>(&to) + i, static_cast<const char*>(from) + i, step);
    }
  }
  __device__ static void meet_copies() {
    __pipeline_commit();
    __pipeline_wait_prior(0);
    meet();
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
  /// Place of a column in the rows of a velocity component.
  __device__ static int place_of(int column) { return column % modes + column / modes * line_pitch; }
  /// Place in the pressure array of mode i along c, in a column of component c.
  __device__ static int pressure_place(int c, int i, int column) {
    const auto stride = [](int a) { return a == 0 ? 1 : a == 1 ? line_pitch : row_pitch; };
    return i * stride(c) + column % modes * stride(a_of(c)) + (dim == 3 ? column / modes * stride(b_of(c)) : 0);
  }
  /// A pressure, counted x fastest: its index in each direction.
  struct Pressure {
    int index[3];

    __device__ explicit Pressure(int i) : index{i % modes, i / modes % modes, i / (modes * modes)} {}
    /// In the pressure array.
    __device__ int place() const { return index[0] + index[1] * line_pitch + index[2] * row_pitch; }
  };
  /// Value i of the record of a patch's cell: of velocity component c, in row e; or of the pressure, c = dim.
  struct Value {
    int c;
    int e;
    int place;  ///< in that row; or in the pressure array

    __device__ Value(int corner, int i) : c(i / S::block) {
      const auto along = [corner](int a, int mode) { return mode + n * (corner >> a & 1); };
      const int in_block = i % S::block;
      if (c == dim) {
        e = 0;
        place = along(0, in_block % n) + along(1, in_block / n % n) * line_pitch;
        if (dim == 3) place += along(2, in_block / (n * n)) * row_pitch;
      } else {
        e = along(c, in_block / S::columns);
        place = along(a_of(c), in_block % n);
        if (dim == 3) place += along(b_of(c), in_block / n % n) * line_pitch;
      }
    }
    __device__ bool is_velocity() const { return c < dim; }
    __device__ int in_component() const { return e * row_pitch + place; }
  };
  /// The sum of what components give to the divergence at a pressure: of row i of each column there.
  __device__ static T divergence(const Memory& memory, const Pressure& p) {
    T sum{};
    for (int c = 0; c < dim; ++c) {
      sum += memory.flux(c)[p.index[c] * row_pitch + p.index[a_of(c)] + (dim == 3 ? line_pitch * p.index[b_of(c)] : 0)];
    }
    return sum;
  }
  /// The other directions' bits of the corner of a patch, packed: which of the `halves` lines ends in direction t.
  __device__ static int half_of(int t, int corner) { return (corner & ((1 << t) - 1)) | corner >> (t + 1) << t; }
  __device__ static int lower_corner(int t, int half) { return (half & ((1 << t) - 1)) | half >> t << (t + 1); }

  __device__ static int count_of(const PatchData<T>& kind, int c) { return kind.last[c] - kind.first[c] + 1; }
};

}  // namespace solenoid::cuda
