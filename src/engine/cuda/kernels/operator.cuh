#pragma once
/// \file
/// The operator on tiles of cells.
///
/// The mass matrix of P acts in a component's own direction, the tangential Laplacians in the others, so they commute:
///
///     y_c = (nu L^O_a + nu L^O_b + alpha) z_c + nu L^P_c u_c - B_c^T p,     z_c = M^P_c u_c
///
/// Every row is complete where it is owned: nothing is carried from cell to cell, and no value has two writers.
///
/// A thread block works on a tile: `cells` records of neighbouring blocks (128 of them are 32 x 2 x 2 cells where rows
/// allow). It finds the faces of the tile and writes the pressure; then, for one component after the other,
///   1. thread (face, line): what lies beyond the tile is needed for its traces only. The columns of the cell behind a
///      face are multiplied by the mass matrix and contracted to the two numbers of a line that the face forms need,
///          P = sum_m (1/2 slope_m - penalty value_m) z_m,    Q = 1/2 sum_m value_m z_m.
///      A face at a boundary is a face of the tile too: it has the traces of the cell itself, with the weight of the
///      face and the other sign. So walls are nothing special in what follows.
///   2. thread (cell, line): z of the tile's own cells, to shared memory.
///   3. thread (cell, i_c): stiffness and gradient of a row, in registers: on their way while others still do 1 and 2.
///   4. thread (cell, i_c): Laplacians of the plane of tangential modes, from z of the cell, of its neighbours in the
///      tile and from traces; writes y.
/// Hat rows (i_c = 0) belong to two cells, this one and the one below: where the two have different neighbours behind a
/// side (at corners of holes), the face has the traces of both, each with its own weight and sign.
/// A second kernel sees to hat-only records.
///
/// Shared memory: z of one component [n^3][cells]; traces [P, Q][n][lines][faces]; the faces and where each cell finds
/// its neighbours. Everything from global memory goes through the read-only path, so that loads need not wait for
/// stores. Traffic per unknown in double: DRAM 16 bytes; L2 delivers 48 to 50 (k = 1, 2: measured), of which a tile of
/// 32 x 2 x 2 cells needs 22 if the first-level cache missed nothing twice. Limits (H200): latency of those loads, 24
/// warps for k = 2, and the first-level cache's data path, 67 % and 54 % busy for k = 1, 2.

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
struct Operator {
  using S = Shape<dim, order>;
  using Tables = OperatorTables<T, dim, order>;
  static constexpr int n = S::n;
  static constexpr int lines = S::lines;
  static constexpr int cells = tile_cells(dim, order);
  static constexpr int tile_blocks = cells / interleave;
  static constexpr int threads = cells * n;
  static constexpr int sides = 2 * (dim - 1);       // tangential ones
  static constexpr int rows_below = n < 3 ? n : 3;  // rows of the cell below that the hat couples to
  /// Warps on a multiprocessor that registers are spared for. Measured.
  static constexpr int warps = n <= 2 ? 40 : n == 3 ? 24 : n == 4 ? 16 : n == 5 ? 10 : 6;
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
    T* z;            ///< [n][columns][cells]
    T* trace;        ///< [P, Q][n][lines][faces]
    TileFace* face;  ///< [dim][faces]
    std::uint8_t*
        code;  ///< [dim][faces]; bits 0, 1: `own` counts with a minus in even, odd modes; 2, 3: `below`; 4: turn
    std::uint16_t* where;  ///< [dim][sides][cells]: a cell of the tile, or `cells` + a face
    std::int32_t* block;   ///< [tile_blocks]
    int* count;            ///< [dim]: faces
    int faces;             ///< room for them

    __device__ Shared(unsigned char* memory, int room) : faces(room) {
      z = reinterpret_cast<T*>(memory);
      trace = z + S::block * cells;
      face = reinterpret_cast<TileFace*>(trace + 2 * n * lines * room);
      block = reinterpret_cast<std::int32_t*>(face + dim * room);
      count = block + tile_blocks;
      where = reinterpret_cast<std::uint16_t*>(count + 4);
      code = reinterpret_cast<std::uint8_t*>(where + dim * sides * cells);
    }
  };
  static constexpr std::size_t shared_bytes(int faces) {
    return (S::block * cells + 2 * n * lines * faces) * sizeof(T) + dim * faces * (sizeof(TileFace) + 1) +
           (tile_blocks + 4) * sizeof(std::int32_t) + dim * sides * cells * sizeof(std::uint16_t);
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

  /// Fills in the faces of the tile and where cells find their neighbours.
  __device__ static void find_neighbours(const Arguments& arguments, const Shared& shared) {
    const CellTopology& topology = arguments.topology;
    const int slot = static_cast<int>(threadIdx.x);
    const std::int32_t cell = cell_at(topology, shared, slot);
    const unsigned boundary = __ldg(arguments.boundary_sides + cell);
    constexpr int rounds = (2 * dim + n - 1) / n;
#pragma unroll
    for (int round = 0; round < rounds; ++round) {
      const int side = round * n + static_cast<int>(threadIdx.y);
      if (side >= 2 * dim) break;
      const int t = side / 2;
      const std::int32_t own = __ldg(topology.neighbour[side] + cell);
      const unsigned own_boundary = __ldg(arguments.boundary_sides + own);
      int inside = -1;
      if ((boundary >> side & 1) == 0) {
#pragma unroll
        for (int i = 0; i < tile_blocks; ++i) {
          if (own / interleave == shared.block[i]) inside = i * interleave + own % interleave;
        }
      }
#pragma unroll
      for (int turn = 0; turn < dim - 1; ++turn) {
        const int c = (t + dim - 1 - turn) % dim;
        const std::int32_t below = __ldg(topology.neighbour[2 * c] + cell);
        // Is the cell below the neighbour the neighbour of the cell below?
        const bool aligned = (boundary >> 2 * c & 1) != 0 ? (own_boundary >> 2 * c & 1) != 0
                                                          : (__ldg(arguments.boundary_sides + below) >> side & 1) == 0;
        int place = aligned ? inside : -1;
        if (cell == topology.null) place = 0;  // anything
        if (place < 0) place = cells + add_face_of(topology, shared, cell, below, own, c, turn, side);
        shared.where[((c * (dim - 1) + turn) * 2 + side % 2) * cells + slot] = static_cast<std::uint16_t>(place);
      }
    }
  }
  /// Its number.
  __device__ static int add_face_of(const CellTopology& topology, const Shared& shared, std::int32_t cell,
                                    std::int32_t below, std::int32_t own, int c, int turn, int side) {
    const Face own_face = topology.face[side][cell];
    const Face below_face = topology.face[side][below];
    const bool beyond = own_face == Face::interior;
    const std::int32_t mine = beyond ? own : cell;
    // Lanes that are here together take consecutive numbers.
    const unsigned together = __match_any_sync(__activemask(), side);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int leader = __ffs(static_cast<int>(together)) - 1;
    int first = 0;
    if (lane == leader) first = atomicAdd(shared.count + c, __popc(together));
    const int at = __shfl_sync(together, first, leader) + __popc(together & ((1U << lane) - 1));
    shared.face[c * shared.faces + at] = {
        mine, __ldg(topology.neighbour[2 * c + 1] + mine),
        below_face == Face::interior ? __ldg(topology.neighbour[side] + below) : below};
    shared.code[c * shared.faces + at] =
        static_cast<std::uint8_t>(face_signs(own_face, side % 2) | face_signs(below_face, side % 2) << 2 | turn << 4);
    return at;
  }

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
    const int line = dim == 3 ? static_cast<int>(threadIdx.y) : 0;
    const int count = shared.count[c];
    for (int at = first_item(); at < count; at += step) {
      const TileFace face = shared.face[c * shared.faces + at];
      const unsigned code = shared.code[c * shared.faces + at];
      const bool second = dim == 3 && (code >> 4) != 0;
      const int stride = second ? n * interleave : interleave;
      std::int32_t top = face.own;
      if ((code & 3) != (code >> 2 & 3) || face.below >= topology.cells)
        top = topology.neighbour[2 * c + 1][face.below];
      const Stack stack(arguments.x, c, second ? line : line * n, face, top);
      T p[n]{};
      T q[n]{};
#pragma unroll
      for (int m = 0; m < n; ++m) {
        T z[n];
        T z_below;
        stack.multiply(tables, m * stride, z, z_below);
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
  /// z of all cells.
  __device__ static void multiply_mass(const Tables& tables, const Arguments& arguments, const Shared& shared, int c) {
    const CellTopology& topology = arguments.topology;
    const int line = dim == 3 ? static_cast<int>(threadIdx.y) : 0;
    const int slot = first_item();
    if (slot >= cells) return;
    const std::int32_t cell = cell_at(topology, shared, slot);
    const std::int32_t below = __ldg(topology.neighbour[2 * c] + cell);
    const Stack stack(arguments.x, c, line * n, {cell, __ldg(topology.neighbour[2 * c + 1] + cell), below},
                      below < topology.cells ? cell : topology.null);
    T* const to = shared.z + line * n * cells + slot;
#pragma unroll
    for (int m = 0; m < n; ++m) {
      T z[n];
      T z_below;
      stack.multiply(tables, m * interleave, z, z_below);
      z[0] += z_below;
#pragma unroll
      for (int i = 0; i < n; ++i) to[(i * S::columns + m) * cells] = z[i];
    }
  }
  /// Threads share (cell or face, line).
  static constexpr int step = dim == 3 ? cells : threads;
  __device__ static int first_item() {
    return static_cast<int>(threadIdx.x) + (dim == 3 ? 0 : cells * static_cast<int>(threadIdx.y));
  }

  // --- 2: Laplacians and the rest ------------------------------------------------------------------------------------

  /// y += L^O z for h = 1 along the lines of a plane of modes, y[slow][fast]. plane: z of the row, of cell 0.
  template <int turn>
  __device__ static void add_laplacian(const Tables& tables, const Shared& shared, const std::uint16_t* where,
                                       const T* plane, int row, int slot, T (&y)[lines][n]) {
    const auto at = [&](int line, int m) -> int { return (turn == 0 ? line * n + m : line + m * n) * cells; };
    const auto to = [&](int line, int j) -> T& { return turn == 0 ? y[line][j] : y[turn == 0 ? 0 : j][line]; };
#pragma unroll
    for (int line = 0; line < lines; ++line) {
#pragma unroll
      for (int m = 0; m < n; ++m) {
        const T z = plane[at(line, m) + slot];
#pragma unroll
        for (int j = m % 2; j < n; j += 2) to(line, j) += tables.interior[j][m] * z;
      }
    }
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int place = where[(2 * turn + upper) * cells + slot];
      if (place < cells) {
#pragma unroll
        for (int line = 0; line < lines; ++line) {
#pragma unroll
          for (int m = 0; m < n; ++m) {
            const T z = plane[at(line, m) + place];
#pragma unroll
            for (int j = 0; j < n; ++j) {
              const bool minus = (upper == 1 ? m : j) % 2 != 0;
              to(line, j) += minus ? -tables.beside[j][m] * z : tables.beside[j][m] * z;
            }
          }
        }
      } else {
        const T* const trace = shared.trace + row * lines * shared.faces + place - cells;
#pragma unroll
        for (int line = 0; line < lines; ++line) {
          const T p = trace[line * shared.faces];
          const T q = trace[(n * lines + line) * shared.faces];
#pragma unroll
          for (int j = 0; j < n; ++j) {
            const T test = tables.value[j] * p + tables.slope[j] * q;
            to(line, j) += upper == 0 && j % 2 != 0 ? -test : test;
          }
        }
      }
    }
  }

  /// y = what acts along c on a row of the cell (stiffness and gradient, diagonal but for the hats), minus b, over the
  /// factor of the last direction.
  template <bool with_b>
  __device__ static void along(const Tables& tables, const Arguments& arguments, std::int32_t cell, int c, int row,
                               T (&y)[lines][n]) {
    const CellTopology& topology = arguments.topology;
    const std::int64_t start = (c * S::block + row * S::columns) * interleave;
    const std::int64_t at = S::offset(cell);
    const T* const u = arguments.x + at + start;
    const int stride_c = S::pressure_stride(c) * interleave;
    const int stride_a = S::pressure_stride((c + 1) % dim) * interleave;
    const int stride_b = S::pressure_stride((c + 2) % dim) * interleave;
    constexpr int pressure = dim * S::block * interleave;
    const T* const p = arguments.x + at + pressure + row * stride_c;
    const T* const b = with_b ? arguments.b + at + start : nullptr;
    const T scale = tables.inverse_factor[(c + dim - 1) % dim];
    const auto for_modes = [](auto&& visit) {
#pragma unroll
      for (int s = 0; s < lines; ++s) {
#pragma unroll
        for (int f = 0; f < n; ++f) visit(s, f, (s * n + f) * interleave);
      }
    };
    if (row > 0) {
      for_modes([&](int s, int f, int place) {
        y[s][f] = tables.factor[c] * __ldg(u + place) - tables.inverse_h[c] * __ldg(p + f * stride_a + s * stride_b);
      });
    } else {
      const std::int32_t below = __ldg(topology.neighbour[2 * c] + cell);
      const T weight = below == topology.null ? T(1) : T(2);
      const T* const u_above = arguments.x + S::offset(__ldg(topology.neighbour[2 * c + 1] + cell)) + start;
      const T* const u_below = arguments.x + S::offset(below) + start;
      const T* const p_below = arguments.x + S::offset(below) + pressure;
      for_modes([&](int s, int f, int place) {
        const int place_p = f * stride_a + s * stride_b;
        y[s][f] = tables.factor[c] * (weight * __ldg(u + place) - __ldg(u_above + place) - __ldg(u_below + place)) +
                  tables.inverse_h[c] * (__ldg(p + place_p) - __ldg(p_below + place_p));
      });
    }
    for_modes([&](int s, int f, int place) { y[s][f] = scale * (with_b ? y[s][f] - __ldcs(b + place) : y[s][f]); });
  }

  /// Component c of a row of the cell.
  template <bool with_b>
  __device__ static void finish(const Tables& tables, const Arguments& arguments, const Shared& shared,
                                std::int32_t cell, int c, int row, T (&y)[lines][n]) {
    const CellTopology& topology = arguments.topology;
    const int slot = static_cast<int>(threadIdx.x);
    const T* const plane = shared.z + row * S::columns * cells;
    const std::uint16_t* const where = shared.where + c * sides * cells;
    if constexpr (dim == 3) {
      add_laplacian<dim - 2>(tables, shared, where, plane, row, slot, y);
#pragma unroll
      for (int s = 0; s < lines; ++s) {
#pragma unroll
        for (int f = 0; f < n; ++f) y[s][f] *= tables.ratio[c];
      }
    }
    add_laplacian<0>(tables, shared, where, plane, row, slot, y);
    if (cell == topology.null) return;
    const bool fixed = row == 0 && normal_fixed(topology.face[2 * c][cell]);
    const T factor = fixed ? T(0) : with_b ? -tables.factor[(c + 1) % dim] : tables.factor[(c + 1) % dim];
    T* const to = arguments.y + S::offset(cell) + (c * S::block + row * S::columns) * interleave;
#pragma unroll
    for (int s = 0; s < lines; ++s) {
#pragma unroll
      for (int f = 0; f < n; ++f) {
        const T z = plane[(s * n + f) * cells + slot];
        __stcs(to + (s * n + f) * interleave, factor * (y[s][f] + tables.alpha[c] * z));
      }
    }
  }

  /// y_p = -sum_c B_c u_c on the plane of the thread's last index.
  template <bool with_b>
  __device__ static void divergence(const Tables& tables, const Arguments& arguments, const Shared& shared) {
    const int last = static_cast<int>(threadIdx.y);
    const std::int32_t cell = cell_at(arguments.topology, shared, static_cast<int>(threadIdx.x));
    if (cell == arguments.topology.null) return;
    const std::int64_t at = S::offset(cell);
    const T* u = arguments.x + at;
    const T* above[dim];
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      above[c] = arguments.x + S::offset(arguments.topology.neighbour[2 * c + 1][cell]) + c * S::block * interleave;
    }
#pragma unroll
    for (int i1 = 0; i1 < lines; ++i1) {
#pragma unroll
      for (int i0 = 0; i0 < n; ++i0) {
        const int index[3] = {i0, dim == 3 ? i1 : last, dim == 3 ? last : 0};
        T sum = 0;
#pragma unroll
        for (int c = 0; c < dim; ++c) {
          const int column = index[(c + 1) % dim] + (dim == 3 ? n * index[(c + 2) % 3] : 0);
          const int place = c * S::block + index[c] * S::columns + column;
          T divergence = __ldg(u + place * interleave);
          if (index[c] == 0) divergence = __ldg(above[c] + column * interleave) - divergence;
          sum += tables.inverse_h[c] * divergence;
        }
        const std::int64_t place = at + (dim * S::block + i0 + n * (index[1] + n * index[2])) * interleave;
        __stcs(arguments.y + place, with_b ? __ldcs(arguments.b + place) + sum : -sum);
      }
    }
  }

  // --- hat-only records ----------------------------------------------------------------------------------------------

  /// Row `function` (0..n, the last is the upper hat) of z in a column, from this cell alone. `cell`, `above`: where
  /// the component begins in the cell and in the record above it.
  __device__ static T cell_mass(const Tables& tables, const T* cell, const T* above, int function, int column) {
    T z = tables.mass[function][n] * above[column * interleave];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (mass_couples(n, function, j)) z += tables.mass[function][j] * cell[(j * S::columns + column) * interleave];
    }
    return z;
  }

  /// y += factor E(z, .) for h = 1 on face `upper` (0, 1) of a line; z(m) are the modes.
  template <class Z>
  __device__ static void add_face(const Tables& tables, T factor, int upper, const Z& z, T (&y)[n]) {
    const T sign = upper == 1 ? T(1) : T(-1);  // of odd modes
    T v = 0;
    T d = 0;
#pragma unroll
    for (int m = 0; m < n; ++m) {
      const T mode = m % 2 == 0 ? z(m) : sign * z(m);
      v += tables.value[m] * mode;
      d += tables.slope[m] * mode;
    }
    const T value = factor * (tables.penalty * v - T(0.5) * d);
    const T slope = factor * T(-0.5) * v;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const T test = tables.value[j] * value + tables.slope[j] * slope;
      y[j] += j % 2 == 0 ? test : sign * test;
    }
  }

  /// A hat of a hat-only record: the row of the upper hat of the cell below it.
  __device__ static void hat_only(const Tables& tables, const Arguments& arguments, std::int32_t hat, int column) {
    const CellTopology& topology = arguments.topology;
    int c = 0;
    while (topology.neighbour[2 * c][hat] == topology.null) ++c;
    const std::int32_t cell = topology.neighbour[2 * c][hat];
    const std::int64_t place = S::offset(hat) + (c * S::block + column) * interleave;
    if (normal_fixed(topology.face[2 * c + 1][cell])) {
      arguments.y[place] = T(0);
      return;
    }
    const auto values = [&](std::int32_t r) { return arguments.x + S::offset(r) + c * S::block * interleave; };
    const auto z = [&](std::int32_t r, int at) {
      return cell_mass(tables, values(r), values(topology.neighbour[2 * c + 1][r]), n, at);
    };
    T result = tables.factor[(c + 1) % dim] * tables.alpha[c] * z(cell, column);
    for (int turn = 1; turn < dim; ++turn) {
      const int t = (c + turn) % dim;
      const int stride = turn == 1 ? 1 : n;
      const int mode = turn == 1 ? column % n : column / n;
      const auto own = [&](int m) { return z(cell, column + (m - mode) * stride); };
      T sum = 0;
      for (int m = 0; m < n; ++m) {
        const int at = column + (m - mode) * stride;
        const T lower = z(topology.neighbour[2 * t][cell], at);
        const T upper = z(topology.neighbour[2 * t + 1][cell], at);
        sum += tables.beside[mode][m] * ((mode % 2 == 0 ? lower : -lower) + (m % 2 == 0 ? upper : -upper));
        if (m % 2 == mode % 2) sum += tables.interior[mode][m] * own(m);
      }
      for (int upper = 0; upper < 2; ++upper) {
        const int extra = face_weight(topology.face[2 * t + upper][cell]) - 1;
        T y[n]{};
        if (extra != 0) add_face(tables, T(extra), upper, own, y);
        sum += y[mode];
      }
      result += tables.factor[t] * sum;
    }
    const T* p = arguments.x + S::offset(cell) + dim * S::block * interleave;
    const int base =
        column % n * S::pressure_stride((c + 1) % dim) + (dim == 3 ? column / n * S::pressure_stride((c + 2) % 3) : 0);
    result += tables.factor[c] * (values(hat)[column * interleave] - values(cell)[column * interleave]) -
              tables.inverse_h[c] * p[base * interleave];
    arguments.y[place] = arguments.b == nullptr ? result : arguments.b[place] - result;
  }

  static void apply(const ApplyArguments<T>& arguments, Stream stream);
};

/// y = A x or b - A x on cells. Threads: (cell of the tile, line or row).
template <bool with_b, class T, int dim, int order>
__global__ __launch_bounds__(Operator<T, dim, order>::threads, Operator<T, dim, order>::resident) void apply_cells(
    const __grid_constant__ OperatorTables<T, dim, order> tables,
    const __grid_constant__ typename Operator<T, dim, order>::Arguments arguments) {
  using O = Operator<T, dim, order>;
  extern __shared__ __align__(16) unsigned char memory[];
  const typename O::Shared shared(memory, arguments.blocks.tile_faces);
  const int thread = static_cast<int>(threadIdx.x + threadIdx.y * blockDim.x);
  if (thread < O::tile_blocks) {
    const int slot = static_cast<int>(blockIdx.x) * O::tile_blocks + thread;
    // Past the end: the block of the null record.
    shared.block[thread] =
        slot < arguments.blocks.count ? arguments.blocks.list[slot] : arguments.topology.null / interleave;
  }
  if (thread < dim) shared.count[thread] = 0;
  __syncthreads();
  O::find_neighbours(arguments, shared);
  O::template divergence<with_b>(tables, arguments, shared);
  __syncthreads();
  const std::int32_t cell = O::cell_at(arguments.topology, shared, static_cast<int>(threadIdx.x));
  const int row = static_cast<int>(threadIdx.y);
#pragma unroll 1
  for (int c = 0; c < dim; ++c) {
    O::contract_faces(tables, arguments, shared, c);
    O::multiply_mass(tables, arguments, shared, c);
    T y[O::lines][O::n];
    O::template along<with_b>(tables, arguments, cell, c, row, y);
    __syncthreads();
    O::template finish<with_b>(tables, arguments, shared, cell, c, row, y);
    if (c + 1 < dim) __syncthreads();
  }
}

/// The same on hat-only records. One thread per record and hat.
template <class T, int dim, int order>
__global__ void apply_hat_only(const __grid_constant__ OperatorTables<T, dim, order> tables,
                               const __grid_constant__ typename Operator<T, dim, order>::Arguments arguments) {
  constexpr int columns = Shape<dim, order>::columns;
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int32_t hat = arguments.topology.cells + index / columns;
  if (hat < arguments.topology.records) {
    Operator<T, dim, order>::hat_only(tables, arguments, hat, index % columns);
  }
}

template <class T, int dim, int order>
void Operator<T, dim, order>::apply(const ApplyArguments<T>& arguments, Stream stream) {
  const Tables tables(*arguments.cell);
  const Arguments plain{arguments.topology, arguments.boundary_sides, arguments.blocks, arguments.x, arguments.b,
                        arguments.y};
  const auto kernel = arguments.b == nullptr ? apply_cells<false, T, dim, order> : apply_cells<true, T, dim, order>;
  launch(arguments.b == nullptr ? "apply" : "residual", kernel, blocks_for(arguments.blocks.count, tile_blocks),
         dim3(cells, n), shared_bytes(arguments.blocks.tile_faces), stream, tables, plain);
  constexpr int hat_threads = 128;
  const int hats = (arguments.topology.records - arguments.topology.cells) * S::columns;
  launch("apply on hat-only records", apply_hat_only<T, dim, order>, blocks_for(hats, hat_threads), hat_threads, 0,
         stream, tables, plain);
}

}  // namespace solenoid::cuda
