#pragma once
/// \file
/// What threads of the operator (operator.cuh) share: a tile of cells, the faces around it with the traces of what
/// lies beyond, and the Laplacians.
///
/// Shared memory: z of one component [n^3][cells]; traces [P, Q][n][lines][faces]; the faces and where each cell finds
/// its neighbours.

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

/// Where a tile finds what lies beyond a side of its cells. Shared memory.
struct TileFace {
  std::int32_t own;    ///< the cell whose traces these are,
  std::int32_t above;  ///< the record above it,
  std::int32_t below;  ///< and the cell that has the other half of its hats
};

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
  static constexpr int warps = whole_cells ? 20 : n == 2 ? 40 : n == 3 ? 24 : n == 4 ? 16 : n == 5 ? 10 : 6;
  static constexpr int resident = warps * 32 / threads > 0 ? warps * 32 / threads : 1;

  struct Arguments {
    CellTopology topology;
    const std::uint8_t* boundary_sides;
    RecordBlocks blocks;
    const T* x;
    const T* b;
    T* y;
  };

  /// Shared memory of a thread block.
  struct Shared {
    T* z;                  ///< [n][columns][cells]
    T* trace;              ///< [P, Q][n][lines][faces]
    TileFace* face;        ///< [dim][faces]
    std::uint8_t* code;    ///< [dim][faces]; bits 0, 1: `own` counts with a minus in even, odd modes; 2, 3: `below`
    std::uint16_t* side;   ///< [direction][faces]: 2 * cell of the tile + end
    std::uint16_t* where;  ///< [side][cells]: a cell of the tile, or `cells` + a face of that direction
    std::int32_t* block;   ///< [tile_blocks]
    int* count;            ///< [direction]: faces
    int faces;             ///< room for them

    __device__ Shared(unsigned char* memory, int room) : faces(room) {
      z = reinterpret_cast<T*>(memory);
      trace = z + S::block * cells;
      face = reinterpret_cast<TileFace*>(trace + 2 * n * lines * room);
      block = reinterpret_cast<std::int32_t*>(face + dim * room);
      count = block + tile_blocks;
      where = reinterpret_cast<std::uint16_t*>(count + 4);
      side = where + 2 * dim * cells;
      code = reinterpret_cast<std::uint8_t*>(side + dim * room);
    }
  };
  static constexpr std::size_t shared_bytes(int faces) {
    return (S::block * cells + 2 * n * lines * faces) * sizeof(T) +
           dim * faces * (sizeof(TileFace) + sizeof(std::uint16_t) + 1) + (tile_blocks + 4) * sizeof(std::int32_t) +
           2 * dim * cells * sizeof(std::uint16_t);
  }

  /// Cell number `slot` of the tile, or the null record.
  __device__ static std::int32_t cell_at(const CellTopology& topology, const Shared& shared, int slot) {
    const std::int32_t cell = shared.block[slot / interleave] * interleave + slot % interleave;
    return cell < topology.cells ? cell : topology.null;
  }

  // --- 0: what lies around the tile ----------------------------------------------------------------------------------

  /// Signs of what a cell gets through a face: bit 0 for even, 1 for odd modes, set for minus. Neighbours above count
  /// odd modes with a minus; a cell's own traces have the other parity, and the weight of the boundary face.
  __device__ static unsigned face_signs(Face face, int upper) {
    if (face == Face::interior) return upper << 1;
    const unsigned minus = face_weight(face) == 2 ? 1 : 0;
    return minus | (minus ^ (upper ^ 1U)) << 1;
  }

  /// Sides of a cell that a thread sees to.
  static constexpr int sides = (2 * dim + team - 1) / team;
  /// Where cells find their neighbours, and the sides that are faces. `others`: the neighbours.
  __device__ static void find_neighbours(const Arguments& arguments, const Shared& shared,
                                         std::int32_t (&others)[sides]) {
    const CellTopology& topology = arguments.topology;
    const int slot = static_cast<int>(threadIdx.x);
    const std::int32_t cell = cell_at(topology, shared, slot);
    const unsigned boundary = __ldg(arguments.boundary_sides + cell);
    std::int32_t blocks[tile_blocks];
#pragma unroll
    for (int i = 0; i < tile_blocks; ++i) blocks[i] = shared.block[i];
#pragma unroll
    for (int i = 0; i < sides; ++i) {
      const int side = i * team + static_cast<int>(threadIdx.y);
      others[i] = __ldg(topology.neighbour[min(side, 2 * dim - 1)] + cell);
    }
#pragma unroll
    for (int round = 0; round < sides; ++round) {
      const int side = round * team + static_cast<int>(threadIdx.y);
      if (side >= 2 * dim) break;
      int place = -1;
      if ((boundary & (1U << side | irregular_cell)) == 0) {
        const std::int32_t other = others[round];
#pragma unroll
        for (int i = 0; i < tile_blocks; ++i) {
          if (other / interleave == blocks[i]) place = i * interleave + other % interleave;
        }
      }
      if (cell == topology.null) place = 0;  // anything
      if (place < 0) {
        // Lanes that are here together, with one side, take consecutive numbers.
        const unsigned together = __activemask();
        const int lane = static_cast<int>(threadIdx.x % 32);
        const int leader = __ffs(static_cast<int>(together)) - 1;
        int first = 0;
        if (lane == leader) first = atomicAdd(shared.count + side / 2, __popc(together));
        const int at = __shfl_sync(together, first, leader) + __popc(together & ((1U << lane) - 1));
        shared.side[side / 2 * shared.faces + at] = static_cast<std::uint16_t>(2 * slot + side % 2);
        place = cells + at;
      }
      shared.where[side * cells + slot] = static_cast<std::uint16_t>(place);
    }
  }
  /// Faces of component c: first those in direction c + 1, then those in c + 2.
  __device__ static int face_count(const Shared& shared, int c) {
    return shared.count[(c + 1) % dim] + (dim == 3 ? shared.count[(c + 2) % dim] : 0);
  }
  /// What lies behind the faces, for all components. A few at a time, so that their loads are on their way together.
  __device__ static void find_faces(const Arguments& arguments, const Shared& shared) {
    const CellTopology& topology = arguments.topology;
    constexpr int together = whole_cells ? 4 : 2;
    int end[dim];  // of the components' faces
#pragma unroll
    for (int c = 0; c < dim; ++c) end[c] = (c == 0 ? 0 : end[c - 1]) + face_count(shared, c);
    for (int item = thread_number(); item < end[dim - 1]; item += together * threads) {
      int place[together];
      unsigned upper[together];
      TileFace found[together];
      Face own_face[together];
      Face below_face[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const int number = min(item + i * threads, end[dim - 1] - 1);
        const int c = (number >= end[0] ? 1 : 0) + (dim == 3 && number >= end[dim - 2] ? 1 : 0);
        const int at = number - (c == 0 ? 0 : c == 1 ? end[0] : end[1]);
        const int first = shared.count[(c + 1) % dim];
        const bool second = at >= first;
        const int t = (c + (second ? 2 : 1)) % dim;
        const unsigned entry = shared.side[t * shared.faces + at - (second ? first : 0)];
        upper[i] = entry % 2;
        const auto side = static_cast<int>(2 * t + upper[i]);
        const std::int32_t cell = cell_at(topology, shared, static_cast<int>(entry / 2));
        const std::int32_t below = __ldg(topology.neighbour[2 * c] + cell);
        const std::int32_t other = __ldg(topology.neighbour[side] + cell);
        own_face[i] = topology.face[side][cell];
        const std::int32_t mine = own_face[i] == Face::interior ? other : cell;
        const std::int32_t other_below = __ldg(topology.neighbour[side] + below);
        below_face[i] = topology.face[side][below];
        found[i] = {mine, __ldg(topology.neighbour[2 * c + 1] + mine),
                    below_face[i] == Face::interior ? other_below : below};
        place[i] = c * shared.faces + at;
      }
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const auto end_of_cell = static_cast<int>(upper[i]);
        shared.face[place[i]] = found[i];
        shared.code[place[i]] = static_cast<std::uint8_t>(face_signs(own_face[i], end_of_cell) |
                                                          face_signs(below_face[i], end_of_cell) << 2);
      }
    }
  }
  __device__ static int thread_number() { return static_cast<int>(threadIdx.x + threadIdx.y * blockDim.x); }

  // --- 1: mass matrix and traces -------------------------------------------------------------------------------------

  /// A cell and those below and above it in the component's direction: where a line begins in each.
  struct Stack {
    const T* own;
    const T* above;
    const T* below;
    const T* top;  ///< of the cell below: has its upper hats

    __device__ Stack(const T* x, int c, int start, const TileFace& cells, std::int32_t upper) {
      const T* const first = x + (c * S::block + start) * interleave;
      own = first + S::offset(cells.own);
      above = first + S::offset(cells.above);
      below = first + S::offset(cells.below);
      top = first + S::offset(upper);
    }
    /// z of the column `at`, rows 0..k: what the cell gives; and what the one below gives to row 0.
    __device__ void multiply(const Tables& tables, int at, T (&z)[n], T& z_below) const {
      T u[n + 1];
      T lower[rows_below];
#pragma unroll
      for (int i = 0; i < n; ++i) u[i] = __ldg(own + at + i * S::columns * interleave);
      u[n] = __ldg(above + at);
      const T hat = __ldg(top + at);
#pragma unroll
      for (int i = 0; i < rows_below; ++i) lower[i] = __ldg(below + at + i * S::columns * interleave);
      z_below = tables.mass[n][n] * hat;
#pragma unroll
      for (int i = 0; i < rows_below; ++i) z_below += tables.mass[n][i] * lower[i];
#pragma unroll
      for (int i = 0; i < n; ++i) {
        z[i] = T(0);
#pragma unroll
        for (int j = 0; j <= n; ++j) {
          if (mass_couples(n, i, j)) z[i] += tables.mass[i][j] * u[j];
        }
      }
    }
  };

  /// Traces of all faces.
  __device__ static void contract_faces(const Tables& tables, const Arguments& arguments, const Shared& shared, int c) {
    const CellTopology& topology = arguments.topology;
    const int first = shared.count[(c + 1) % dim];
    const int count = face_count(shared, c);
    for (int at = first_item(); at < count; at += step) {
      const TileFace face = shared.face[c * shared.faces + at];
      const unsigned code = shared.code[c * shared.faces + at];
      const bool second = dim == 3 && at >= first;
      const int stride = second ? n * interleave : interleave;
      std::int32_t top = face.own;
      if ((code & 3) != (code >> 2 & 3) || face.below >= topology.cells)
        top = topology.neighbour[2 * c + 1][face.below];
      const Stack stack(arguments.x, c, 0, face, top);
      const int line_stride = second ? interleave : n * interleave;
#pragma unroll
      for (int line = first_line(); line < lines; line += team) {
        T p[n]{};
        T q[n]{};
#pragma unroll
        for (int m = 0; m < n; ++m) {
          T z[n];
          T z_below;
          stack.multiply(tables, line * line_stride + m * stride, z, z_below);
          const T sign = (code >> m % 2 & 1) != 0 ? T(-1) : T(1);
          const T sign_below = (code >> (2 + m % 2) & 1) != 0 ? T(-1) : T(1);
          const T flux = sign * tables.flux[m];
          const T value = sign * tables.value[m];
          z[0] += sign * sign_below * z_below;
#pragma unroll
          for (int i = 0; i < n; ++i) {
            p[i] += flux * z[i];
            q[i] += value * z[i];
          }
        }
        T* const to = shared.trace + line * shared.faces + at;
#pragma unroll
        for (int i = 0; i < n; ++i) {
          to[i * lines * shared.faces] = p[i];
          to[(n + i) * lines * shared.faces] = T(0.5) * q[i];
        }
      }
    }
  }
  /// Threads share (cell or face, line).
  static constexpr int step = dim == 3 ? cells : threads;
  __device__ static int first_line() { return dim == 3 && team > 1 ? static_cast<int>(threadIdx.y) : 0; }
  __device__ static int first_item() {
    return static_cast<int>(threadIdx.x) + (dim == 3 ? 0 : cells * static_cast<int>(threadIdx.y));
  }

  // --- 2: Laplacians -------------------------------------------------------------------------------------------------

  /// y += L^O z for h = 1 along the lines of planes of modes, y[row][slow][fast], for a thread's rows from `first` on.
  /// own(row, slow, fast): z of the thread's cell.
  template <int turn, class Z>
  __device__ static void add_laplacian(const Tables& tables, const Shared& shared, int c, int first, Z&& own,
                                       T (&y)[rows][lines][n]) {
    const auto slow = [](int line, int m) { return turn == 0 ? line : m; };
    const auto fast = [](int line, int m) { return turn == 0 ? m : line; };
    const auto for_lines = [](auto&& visit) {
#pragma unroll
      for (int i = 0; i < rows; ++i) {
#pragma unroll
        for (int line = 0; line < lines; ++line) visit(i, line);
      }
    };
    for_lines([&](int i, int line) {
#pragma unroll
      for (int m = 0; m < n; ++m) {
        const T z = own(i, slow(line, m), fast(line, m));
#pragma unroll
        for (int j = m % 2; j < n; j += 2) y[i][slow(line, j)][fast(line, j)] += tables.interior[j][m] * z;
      }
    });
    const int t = (c + 1 + turn) % dim;
    const int before = cells - (turn == 0 ? 0 : shared.count[(c + 1) % dim]);
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int place = shared.where[(2 * t + upper) * cells + static_cast<int>(threadIdx.x)];
      if (place < cells) {
        for_lines([&](int i, int line) {
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
        for_lines([&](int i, int line) {
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

  /// Adds the Laplacians and alpha z to component c of a thread's rows and writes it. `fixed`: row 0 stays zero.
  template <bool with_b, class Z>
  __device__ static void finish(const Tables& tables, const Arguments& arguments, const Shared& shared,
                                std::int32_t cell, int c, int first, bool fixed, Z&& own, T (&y)[rows][lines][n]) {
    if constexpr (dim == 3) {
      add_laplacian<dim - 2>(tables, shared, c, first, own, y);
      for_values([&](int i, int s, int f) { y[i][s][f] *= tables.ratio[c]; });
    }
    add_laplacian<0>(tables, shared, c, first, own, y);
    if (cell == arguments.topology.null) return;
    const T factor = with_b ? -tables.factor[(c + 1) % dim] : tables.factor[(c + 1) % dim];
    T* const to = arguments.y + S::offset(cell) + (c * S::block + first * S::columns) * interleave;
    for_values([&](int i, int s, int f) {
      const T result = (i == 0 && fixed ? T(0) : factor) * (y[i][s][f] + tables.alpha[c] * own(i, s, f));
      __stcs(to + (i * S::columns + s * n + f) * interleave, result);
    });
  }
  /// visit(row, slow, fast) for a thread's rows.
  template <class F>
  __device__ static void for_values(F&& visit) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
#pragma unroll
      for (int s = 0; s < lines; ++s) {
#pragma unroll
        for (int f = 0; f < n; ++f) visit(i, s, f);
      }
    }
  }
};

}  // namespace solenoid::cuda
