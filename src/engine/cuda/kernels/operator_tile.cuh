#pragma once
/// \file
/// What threads of the operator (operator.cuh) share: a tile of cells, the faces around it with the traces of what
/// lies beyond, and the Laplacians.
///
/// Shared memory: z of one component [n^3][cells]; traces [P, Q][n][lines][faces]; numbers of faces and of the blocks
/// in and around the tile; where threads have rows of cells, what the stiffness matrix gives on hats [n^2][cells]. For
/// k = 1 and 2 in double, 3D: 8 + 16 and 27 + 9 + 36 kB, so that 4 and 2 thread blocks leave half of it to the
/// first-level cache.

#include <cstdint>

#include "engine/cuda/kernels/shape.cuh"

namespace solenoid::cuda {

/// Matrices and coefficients, passed by value so that they are constants of the kernel.
template <class T, int dim, int order>
struct OperatorTables {
  static constexpr int n = order + 1;
  T mass[n + 1][n + 1];
  // Interior-penalty Laplacian of O for h = 1: the cell's own block between two interior faces, and what mode m of the
  // neighbours gives to test function j: beside[j][m] times (-1)^j for the one below, times (-1)^m for the one above.
  T interior[n][n];
  T beside[n][n];
  T value[n];
  T slope[n];
  T penalty;
  T flux[n];      ///< what mode m gives to P of a trace; half its value is what it gives to Q
  T alpha[dim];   ///< alpha over the factor of direction c + 1
  T factor[dim];  ///< nu / h^2
  T ratio[dim];   ///< factor of direction c + 2 over that of c + 1
  T inverse_factor[dim];
  T inverse_h[dim];

  explicit OperatorTables(const CellData<T>& cell) : penalty(cell.penalty) {
    for (int i = 0; i <= n; ++i) {
      for (int j = 0; j <= n; ++j) mass[i][j] = cell.mass[i][j];
    }
    for (int j = 0; j < n; ++j) {
      value[j] = cell.value[j];
      slope[j] = cell.slope[j];
      flux[j] = T(0.5) * slope[j] - penalty * value[j];
    }
    for (int j = 0; j < n; ++j) {
      for (int m = 0; m < n; ++m) {
        interior[j][m] = cell.interior[j][m];
        // The traces of m in the face form, tested with the trace and the derivative of j.
        beside[j][m] = value[j] * flux[m] + T(0.5) * slope[j] * value[m];
      }
    }
    for (int a = 0; a < dim; ++a) {
      inverse_h[a] = cell.inverse_h[a];
      factor[a] = cell.viscosity * inverse_h[a] * inverse_h[a];
    }
    for (int c = 0; c < dim; ++c) {
      alpha[c] = cell.alpha / factor[(c + 1) % dim];
      ratio[c] = factor[(c + 2) % dim] / factor[(c + 1) % dim];
      inverse_factor[c] = T(1) / factor[c];
    }
  }
};

/// What the operator writes: A x, b - A x, or that rounded, with the norms of its thread blocks.
enum class OperatorOutput : std::uint8_t { product, residual, rounded };
template <OperatorOutput output>
inline constexpr bool subtracts = output != OperatorOutput::product;

template <class T, int dim, int order>
struct OperatorTile {
  using S = Shape<dim, order>;
  using Tables = OperatorTables<T, dim, order>;
  static constexpr int n = S::n;
  static constexpr int lines = S::lines;
  static constexpr int cells = tile_cells(dim, order);
  static constexpr int tile_blocks = cells / interleave;
  /// Threads of a cell, in threadIdx.y: one that has a component in registers where that is small, else one for each
  /// row.
  static constexpr bool whole_cells = S::block <= 8;
  static constexpr int team = whole_cells ? 1 : n;
  static constexpr int rows = n / team;  // of a thread
  static constexpr int threads = cells * team;
  static constexpr int rows_below = n < 3 ? n : 3;  // rows of the cell below that the hat couples to
  /// Warps on a multiprocessor that registers are spared for. Measured.
  static constexpr int warps = whole_cells ? (dim == 3 ? 16 : 20)
                               : n == 2    ? 40
                               : n == 3    ? 24
                               : n == 4    ? 16
                               : n == 5    ? 10
                                           : 6;
  static constexpr int resident = warps * 32 / threads > 0 ? warps * 32 / threads : 1;

  struct Arguments : ApplyArguments<T> {
    bool followed;  ///< the next kernel has the hat-only records: both may run at the same time
  };

  /// What a thread block knows of its tile. In shared memory unless said otherwise.
  struct Shared {
    T* z;                          ///< [n][columns][cells]
    T* hat;                        ///< [columns][cells]: the stiffness matrix on hats, over its factor
    T* trace;                      ///< [P, Q][n][lines][faces]
    std::int32_t* block;           ///< in and around the tile
    int* count;                    ///< [direction]: faces
    int faces;                     ///< room for them
    const std::uint32_t* pattern;  ///< in global memory

    __device__ Shared(unsigned char* memory, const Tiles& tiles) : faces(tiles.most_faces) {
      const std::int32_t* const list = tiles.lists + static_cast<std::int64_t>(blockIdx.x) * (1 + tiles.most_blocks);
      pattern = tiles.patterns + __ldg(list);
      z = reinterpret_cast<T*>(memory);
      hat = z + S::block * cells;
      trace = hat + (whole_cells ? 0 : S::columns * cells);
      count = reinterpret_cast<int*>(trace + 2 * n * lines * faces);
      block = count + tile_header;
#pragma unroll 1
      for (int i = thread_number(); i < tiles.most_blocks; i += threads) block[i] = __ldg(list + 1 + i);
      if (thread_number() < dim) count[thread_number()] = static_cast<int>(__ldg(pattern + thread_number()));
    }
    /// Place of value 0 of a record, by name.
    __device__ std::int64_t offset(std::uint32_t name) const {
      return static_cast<std::int64_t>(block[name / interleave]) * (interleave * S::record) + name % interleave;
    }
    __device__ std::int32_t record(std::uint32_t name) const {
      return block[name / interleave] * interleave + static_cast<std::int32_t>(name % interleave);
    }
    /// Of the thread's cell.
    __device__ std::uint32_t side(int side) const {
      return __ldg(pattern + tile_header + side * cells + static_cast<int>(threadIdx.x));
    }
    /// The same in the two directions after c: lower and upper.
    __device__ void sides_beside(int c, std::uint32_t (&sides)[2 * (dim - 1)]) const {
#pragma unroll
      for (int i = 0; i < 2 * (dim - 1); ++i) sides[i] = side(2 * ((c + 1 + i / 2) % dim) + i % 2);
    }
    /// Those of component c: first the ones in direction c + 1, then those in c + 2.
    __device__ const uint2* faces_of(int c) const {
      return reinterpret_cast<const uint2*>(pattern + tile_header + 2 * dim * cells) + c * faces;
    }
    __device__ int face_count(int c) const { return count[(c + 1) % dim] + (dim == 3 ? count[(c + 2) % dim] : 0); }
  };
  static constexpr std::size_t shared_bytes(const Tiles& tiles) {
    return ((S::block + (whole_cells ? 0 : S::columns)) * cells + 2 * n * lines * tiles.most_faces) * sizeof(T) +
           (tile_header + tiles.most_blocks) * sizeof(std::int32_t);
  }
  __device__ static int thread_number() { return static_cast<int>(threadIdx.x + threadIdx.y * blockDim.x); }

  // --- 1: mass matrix and traces -------------------------------------------------------------------------------------

  /// A cell and those below and above it in the component's direction: where the component begins in each.
  struct Stack {
    const T* own;
    const T* above;
    const T* below;

    /// z of the column `at`, rows 0..k, and the stiffness matrix on its hat, over its factor. Weights of the hat: in
    /// what the cell below gives to row 0, and in the stiffness matrix.
    __device__ T multiply(const Tables& tables, int at, T mass_weight, T stiffness_weight, T (&z)[n]) const {
      T u[n + 1];
      T lower[rows_below];
#pragma unroll
      for (int i = 0; i < n; ++i) u[i] = __ldg(own + at + i * S::columns * interleave);
      u[n] = __ldg(above + at);
#pragma unroll
      for (int i = 0; i < rows_below; ++i) lower[i] = __ldg(below + at + i * S::columns * interleave);
#pragma unroll
      for (int i = 0; i < n; ++i) {
        z[i] = i == 0 ? tables.mass[n][n] * (mass_weight * u[0]) : T(0);
#pragma unroll
        for (int j = 0; j <= n; ++j) {
          if (mass_couples(n, i, j)) z[i] += tables.mass[i][j] * u[j];
        }
      }
#pragma unroll
      for (int i = 0; i < rows_below; ++i) z[0] += tables.mass[n][i] * lower[i];
      return stiffness_weight * u[0] - u[n] - lower[0];
    }
    /// What the cell below gives to row 0 where its upper hat is that of `top`.
    __device__ T from_below(const Tables& tables, int at, const T* top) const {
      T z = tables.mass[n][n] * __ldg(top + at);
#pragma unroll
      for (int i = 0; i < rows_below; ++i) z += tables.mass[n][i] * __ldg(below + at + i * S::columns * interleave);
      return z;
    }
  };

  /// A face and where its columns are.
  struct FaceStack : Stack {
    std::uint32_t code;
    const T* top;  ///< the record above `below`, where
    bool uneven;   ///< the two cells of the hats have different neighbours behind this side. Rare.
    int stride;    ///< of modes in a line,
    int line;      ///< of lines

    __device__ FaceStack(const Arguments& arguments, const Shared& shared, int c, int at, uint2 face) {
      constexpr std::uint32_t name = (1U << name_bits) - 1;
      const T* const x = arguments.x + c * S::block * interleave;
      this->own = x + shared.offset(face.x & name);
      this->above = x + shared.offset(face.x >> name_bits & name);
      this->below = x + shared.offset(face.y & name);
      top = x + shared.offset(face.y >> name_bits);
      code = face.x >> 2 * name_bits;
      uneven = top != this->own || (code & 3) != code >> 2;
      const bool second = dim == 3 && at >= shared.count[(c + 1) % dim];
      stride = second ? n * interleave : interleave;
      line = second ? interleave : n * interleave;
    }
  };

  /// Traces of line `line` of face `at`. z(mode, row).
  template <class Z>
  __device__ static void contract_line(const Tables& tables, const Shared& shared, const FaceStack& stack, int at,
                                       int line, Z&& z) {
    T p[n]{};
    T q[n]{};
#pragma unroll
    for (int m = 0; m < n; ++m) {
      const T sign = (stack.code >> m % 2 & 1) != 0 ? T(-1) : T(1);
      const T flux = sign * tables.flux[m];
      const T value = sign * tables.value[m];
#pragma unroll
      for (int i = 0; i < n; ++i) {
        p[i] += flux * z(m, i);
        q[i] += value * z(m, i);
      }
    }
    if (stack.uneven) {
#pragma unroll 1
      for (int m = 0; m < n; ++m) {
        const int place = line * stack.line + m * stack.stride;
        const T sign = (stack.code >> m % 2 & 1) != 0 ? T(-1) : T(1);
        const T sign_below = (stack.code >> (2 + m % 2) & 1) != 0 ? T(-1) : T(1);
        const T more =
            sign_below * stack.from_below(tables, place, stack.top) - sign * stack.from_below(tables, place, stack.own);
        p[0] += tables.flux[m] * more;
        q[0] += tables.value[m] * more;
      }
    }
    T* const to = shared.trace + line * shared.faces + at;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      to[i * lines * shared.faces] = p[i];
      to[(n + i) * lines * shared.faces] = T(0.5) * q[i];
    }
  }
  /// The same, from memory.
  __device__ static void contract_line(const Tables& tables, const Shared& shared, const FaceStack& stack, int at,
                                       int line) {
    T z[n][n];
#pragma unroll
    for (int m = 0; m < n; ++m) stack.multiply(tables, line * stack.line + m * stack.stride, T(1), T(1), z[m]);
    contract_line(tables, shared, stack, at, line, [&](int m, int i) { return z[m][i]; });
  }
  /// Threads share (cell or face, line).
  static constexpr int step = dim == 3 ? cells : threads;
  __device__ static int first_item() {
    return static_cast<int>(threadIdx.x) + (dim == 3 ? 0 : cells * static_cast<int>(threadIdx.y));
  }
  /// The thread's first face of component c: asked for early.
  __device__ static uint2 first_face(const Shared& shared, int c) {
    const int at = first_item();
    return at < shared.faces ? __ldg(shared.faces_of(c) + at) : uint2{};
  }
  /// Has what the warp's cells have of component c of a vector, or of the pressure (dim), on its way to the first-level
  /// cache: a line of it for each lane.
  __device__ static void prefetch(const T* vector, const Shared& shared, int c) {
    constexpr int values = S::block / team;
    const auto x = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int first = 0; first < 2 * values; first += 32) {
      const int i = first + x % 32;
      if (i >= 2 * values) break;
      const int block = x / 32 * 2 + i / values;
      const int value = c * S::block + static_cast<int>(threadIdx.y) * values + i % values;
      const T* const from = vector + shared.offset(block * interleave) + value * interleave;
      cuda::prefetch(from);
    }
  }
  /// Traces of all faces of component c. `face`: the first one.
  __device__ static void contract_faces(const Tables& tables, const Arguments& arguments, const Shared& shared, int c,
                                        uint2 face) {
    const uint2* const faces = shared.faces_of(c);
    const int count = shared.face_count(c);
    // What is left for a last round is shared out among the lanes of one warp.
    const int left = !whole_cells && count % step * lines <= 32 ? count % step : 0;
    const int most = count - left;
    for (int at = first_item(); at < most; at += step) {
      const FaceStack stack(arguments, shared, c, at, face);
      if (at + step < most) face = __ldg(faces + at + step);
      if constexpr (whole_cells) {
        T z[S::columns][n];
#pragma unroll
        for (int i = 0; i < S::columns; ++i) stack.multiply(tables, i * interleave, T(1), T(1), z[i]);
        const bool second = stack.stride != interleave;
#pragma unroll
        for (int line = 0; line < lines; ++line) {
          contract_line(tables, shared, stack, at, line, [&](int m, int i) {
            const int turned = dim == 3 ? m * n + line : m;
            return second ? z[turned][i] : z[line * n + m][i];
          });
        }
      } else {
        contract_line(tables, shared, stack, at, dim == 3 ? static_cast<int>(threadIdx.y) : 0);
      }
    }
    if (!whole_cells && thread_number() < left * lines) {
      const int at = most + thread_number() / lines;
      const FaceStack stack(arguments, shared, c, at, __ldg(faces + at));
      contract_line(tables, shared, stack, at, thread_number() % lines);
    }
  }

  // --- 2: Laplacians -------------------------------------------------------------------------------------------------

  /// y += L^O z for h = 1 along the lines of planes of modes, y[row][slow][fast], for a thread's rows from `first` on.
  /// own(row, slow, fast): z of the thread's cell.
  template <int turn, class Z>
  __device__ static void add_laplacian(const Tables& tables, const Shared& shared, int c, int first,
                                       const std::uint32_t (&sides)[2 * (dim - 1)], Z&& own, T (&y)[rows][lines][n]) {
    const auto slow = [](int line, int m) { return turn == 0 ? line : m; };
    const auto fast = [](int line, int m) { return turn == 0 ? m : line; };
    unrolled<rows, lines>([&](int i, int line) {
#pragma unroll
      for (int m = 0; m < n; ++m) {
        const T z = own(i, slow(line, m), fast(line, m));
#pragma unroll
        for (int j = m % 2; j < n; j += 2) y[i][slow(line, j)][fast(line, j)] += tables.interior[j][m] * z;
      }
    });
    const int before = cells - (turn == 0 ? 0 : shared.count[(c + 1) % dim]);
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int place = side_where(sides[2 * turn + upper]);
      if (place < cells) {
        unrolled<rows, lines>([&](int i, int line) {
#pragma unroll
          for (int m = 0; m < n; ++m) {
            const T z = shared.z[((first + i) * S::columns + slow(line, m) * n + fast(line, m)) * cells + place];
#pragma unroll
            for (int j = 0; j < n; ++j) {
              const bool minus = (upper == 1 ? m : j) % 2 != 0;
              y[i][slow(line, j)][fast(line, j)] += minus ? -tables.beside[j][m] * z : tables.beside[j][m] * z;
            }
          }
        });
      } else {
        unrolled<rows, lines>([&](int i, int line) {
          const T* const trace = shared.trace + ((first + i) * lines + line) * shared.faces + place - before;
          const T p = trace[0];
          const T q = trace[n * lines * shared.faces];
#pragma unroll
          for (int j = 0; j < n; ++j) {
            const T test = tables.value[j] * p + tables.slope[j] * q;
            y[i][slow(line, j)][fast(line, j)] += upper == 0 && j % 2 != 0 ? -test : test;
          }
        });
      }
    }
  }

  /// Writes a value of y, or of a residual that is rounded; `square` gets those of the latter.
  template <OperatorOutput output>
  __device__ static void store(const Arguments& arguments, std::int64_t place, T value, [[maybe_unused]] T& square) {
    if constexpr (output == OperatorOutput::rounded) {
      __stcs(arguments.rounded + place, static_cast<float>(value));
      square += value * value;
    } else {
      __stcs(arguments.y + place, value);
    }
  }

  /// Adds the Laplacians and alpha z to component c of a thread's rows and writes it, where value 0 of the cell is at
  /// `offset`. `sides`: those in the other directions; `fixed`: row 0 stays zero.
  template <OperatorOutput output, class Z>
  __device__ static void finish(const Tables& tables, const Arguments& arguments, const Shared& shared,
                                std::int64_t offset, int c, int first, const std::uint32_t (&sides)[2 * (dim - 1)],
                                bool fixed, Z&& own, T (&y)[rows][lines][n], T& square) {
    if constexpr (dim == 3) {
      add_laplacian<dim - 2>(tables, shared, c, first, sides, own, y);
      unrolled<rows, lines, n>([&](int i, int s, int f) { y[i][s][f] *= tables.ratio[c]; });
    }
    add_laplacian<0>(tables, shared, c, first, sides, own, y);
    if (shared.record(threadIdx.x) >= arguments.topology.cells) return;
    const T factor = subtracts<output> ? -tables.factor[(c + 1) % dim] : tables.factor[(c + 1) % dim];
    const std::int64_t to = offset + (c * S::block + first * S::columns) * interleave;
    unrolled<rows, lines, n>([&](int i, int s, int f) {
      const T result = (i == 0 && fixed ? T(0) : factor) * (y[i][s][f] + tables.alpha[c] * own(i, s, f));
      store<output>(arguments, to + (i * S::columns + s * n + f) * interleave, result, square);
    });
  }
};

}  // namespace solenoid::cuda
