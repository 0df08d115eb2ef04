#pragma once
/// \file
/// The operator: one thread per cell and line of its tensor-product modes.
///
/// The mass matrix of P acts in a component's own direction, the tangential Laplacians in the others, so they commute:
///
///     y_c = (nu L^O_a + nu L^O_b + alpha) z_c + nu L^P_c u_c - B_c^T p,     z_c = M^P_c u_c
///
/// z of a cell (its lower hat and bubbles) takes the rows of the cell, the hat above and three rows of the cell below.
/// Every row is complete where it is owned: nothing is carried from cell to cell, and no value has two writers.
///
/// A thread block works on `cells` cells (lanes of a warp: cells of two interleaved blocks) and all n lines of each.
/// For one component after the other
///   1. thread (cell, i_b) has the line of all i_a: z of its own and of both neighbours in direction a; leaves its own
///   z
///      and (nu L_a + alpha) z in shared memory;
///   2. thread (cell, i_a) has the line of all i_b: adds nu L_b z and what belongs to the cell itself, writes y.
/// All faces are taken for interior ones; the few cells that know a boundary face add what it has over those. A second
/// kernel sees to hat-only records.
/// Shared memory: z and y of one component, [n^3][cells] each. Traffic: x and y once (16 bytes per unknown in double);
/// neighbours come from the caches, which is why blocks of cells are close in space.

#include "engine/cuda/kernels/shape.cuh"

namespace solenoid::cuda {

/// True if the mass matrix of P couples functions i and j of a cell (0 and n are hats).
constexpr bool mass_couples(int n, int i, int j) {
  const bool hat_i = i == 0 || i == n;
  const bool hat_j = j == 0 || j == n;
  if (hat_i && hat_j) return true;
  if (hat_i) return j <= 2;
  if (hat_j) return i <= 2;
  const int distance = i > j ? i - j : j - i;
  return distance == 0 || distance == 2;
}

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
  T alpha[dim];   ///< alpha over the factor of direction c + 1
  T factor[dim];  ///< nu / h^2
  T inverse_h[dim];

  explicit OperatorTables(const CellData<T>& cell) : penalty(cell.penalty) {
    for (int i = 0; i <= n; ++i) {
      for (int j = 0; j <= n; ++j) mass[i][j] = cell.mass[i][j];
    }
    for (int j = 0; j < n; ++j) {
      value[j] = cell.value[j];
      slope[j] = cell.slope[j];
    }
    for (int j = 0; j < n; ++j) {
      for (int m = 0; m < n; ++m) {
        interior[j][m] = cell.interior[j][m];
        // The traces of m in the face form, tested with the trace and the derivative of j.
        beside[j][m] = value[j] * (T(0.5) * slope[m] - penalty * value[m]) + T(0.5) * slope[j] * value[m];
      }
    }
    for (int a = 0; a < dim; ++a) {
      inverse_h[a] = cell.inverse_h[a];
      factor[a] = cell.viscosity * inverse_h[a] * inverse_h[a];
    }
    for (int c = 0; c < dim; ++c) alpha[c] = cell.alpha / factor[(c + 1) % dim];
  }
};

template <class T, int dim, int order>
struct CellOperator {
  using S = Shape<dim, order>;
  using Tables = OperatorTables<T, dim, order>;
  static constexpr int n = S::n;
  static constexpr int rows_below = n < 3 ? n : 3;  // rows of the cell below that the hat couples to

  /// A cell with the cells below and above it in the component's direction: where the line's first column begins in
  /// each. Either of this cell and the one below may be missing.
  struct Stack {
    const T* own;
    const T* hat;  ///< between this cell and the one below
    const T* above;
    const T* below;
    T hat_mass;  ///< diagonal of the hat: from each cell that is there
    bool is_cell;
  };

  /// `first`: the first column in record 0.
  __device__ static Stack stack(const Tables& tables, const CellTopology& topology, const T* first, int c,
                                std::int32_t own, std::int32_t below) {
    const auto at = [&](std::int32_t r) { return first + S::offset(r); };
    const bool is_cell = own < topology.cells;
    const T hat_mass = (is_cell ? tables.mass[0][0] : T(0)) + (below < topology.cells ? tables.mass[n][n] : T(0));
    const std::int32_t hat = is_cell ? own : topology.neighbour[2 * c + 1][below];
    return {at(own), at(hat), at(topology.neighbour[2 * c + 1][own]), at(below), hat_mass, is_cell};
  }

  /// z of a column, counted from the first of the line: rows 0..k.
  __device__ static void multiply_mass(const Tables& tables, const Stack& stack, int column, T (&z)[n]) {
    T u[n + 1];
    T lower[rows_below];
    const T hat = stack.hat[column * interleave];
#pragma unroll
    for (int i = 1; i < n; ++i) u[i] = stack.own[(i * S::columns + column) * interleave];
    u[n] = stack.above[column * interleave];
#pragma unroll
    for (int i = 0; i < rows_below; ++i) lower[i] = stack.below[(i * S::columns + column) * interleave];
    u[0] = stack.is_cell ? hat : T(0);
    z[0] = stack.hat_mass * hat;
#pragma unroll
    for (int i = 0; i < rows_below; ++i) z[0] += tables.mass[n][i] * lower[i];
#pragma unroll
    for (int i = 0; i < n; ++i) {
      if (i > 0) z[i] = mass_couples(n, i, 0) ? tables.mass[i][0] * u[0] : T(0);
#pragma unroll
      for (int j = 1; j <= n; ++j) {
        if (mass_couples(n, i, j)) z[i] += tables.mass[i][j] * u[j];
      }
    }
  }

  /// y += L^O z for h = 1 along a line, all rows: what the cell's own z of column m gives,
  __device__ static void add_own(const Tables& tables, int m, const T (&z)[n], T (&y)[n][n]) {
#pragma unroll
    for (int i = 0; i < n; ++i) {
#pragma unroll
      for (int j = m % 2; j < n; j += 2) y[i][j] += tables.interior[j][m] * z[i];
    }
  }
  /// and what both neighbours give.
  template <int stride>
  __device__ static void add_beside(const Tables& tables, const Stack& lower, const Stack& upper, T (&y)[n][n]) {
#pragma unroll
    for (int m = 0; m < n; ++m) {
      T below[n];
      T above[n];
      multiply_mass(tables, lower, m * stride, below);
      multiply_mass(tables, upper, m * stride, above);
#pragma unroll
      for (int i = 0; i < n; ++i) {
        // Neighbours reach even test functions through their sum and odd ones through their difference, or the reverse.
        const T sum = above[i] + below[i];
        const T difference = above[i] - below[i];
        const T even = m % 2 == 0 ? sum : -difference;
        const T odd = m % 2 == 0 ? difference : -sum;
#pragma unroll
        for (int j = 0; j < n; ++j) y[i][j] += tables.beside[j][m] * (j % 2 == 0 ? even : odd);
      }
    }
  }

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

  /// The same for all rows of a line of a cell: what its boundary faces in direction t, and those of the cell below,
  /// have over interior ones. The hat belongs to both cells, whose faces may differ. bubble(i, m): z of the cell.
  template <int stride, class Z>
  __device__ static void add_boundary(const Tables& tables, const CellTopology& topology, int t, std::int32_t cell,
                                      std::int32_t below, const Stack& stack, const Z& bubble, T (&y)[n][n]) {
    for (int upper = 0; upper < 2; ++upper) {
      const int own_extra = face_weight(topology.face[2 * t + upper][cell]) - 1;
      const int below_extra = face_weight(topology.face[2 * t + upper][below]) - 1;
      if (own_extra != 0) {
        const auto hat = [&](int m) { return cell_mass(tables, stack.own, stack.above, 0, m * stride); };
        add_face(tables, T(own_extra), upper, hat, y[0]);
#pragma unroll
        for (int i = 1; i < n; ++i) {
          add_face(
              tables, T(own_extra), upper, [&](int m) { return bubble(i, m); }, y[i]);
        }
      }
      if (below_extra != 0) {
        const auto hat = [&](int m) { return cell_mass(tables, stack.below, stack.own, n, m * stride); };
        add_face(tables, T(below_extra), upper, hat, y[0]);
      }
    }
  }
};

template <class T, int dim, int order>
struct Operator {
  using S = Shape<dim, order>;
  using Cell = CellOperator<T, dim, order>;
  using Tables = OperatorTables<T, dim, order>;
  static constexpr int n = S::n;
  static constexpr int lines = S::lines;
  /// Cells of a thread block.
  static constexpr int cells = dim == 2 ? 128 : n <= 2 ? 64 : 32;
  static constexpr int threads = cells * lines;
  /// Warps on a multiprocessor that registers are spared for: more hide more latency until values spill. Measured.
  static constexpr int warps = sizeof(T) == 4 ? (n <= 4 ? 24 : 12) : n <= 2 ? 24 : n == 3 ? 15 : n == 4 ? 12 : 5;
  static constexpr int resident = warps * 32 / threads > 0 ? warps * 32 / threads : 1;
  static constexpr std::size_t shared_bytes = (dim == 3 ? 2 : 1) * S::block * cells * sizeof(T);

  struct Arguments {
    CellTopology topology;
    const std::uint8_t* boundary_sides;
    RecordBlocks blocks;
    const T* x;
    const T* b;
    T* y;
  };

  /// Stores the line of component c that begins at column `start`, completed by what does not act in tangential
  /// directions. stack: at that column.
  template <bool with_b, int c, int stride>
  __device__ static void finish(const Tables& tables, const Arguments& arguments, std::int32_t cell, std::int32_t below,
                                bool active, const typename Cell::Stack& stack, int start, const T (&y)[n][n]) {
    constexpr int turn = stride == 1 ? 1 : 2;
    constexpr int stride_t = pressure_stride(order, (c + turn) % dim);      // along the line
    constexpr int stride_s = pressure_stride(order, (c + 3 - turn) % dim);  // across, in 3D
    constexpr int stride_c = pressure_stride(order, c);
    const bool fixed = normal_fixed(arguments.topology.face[2 * c][cell]);
    const T hat_stiffness = below == arguments.topology.null ? T(1) : T(2);
    const std::int64_t at = S::offset(cell);
    const int p_start =
        (dim * S::block + start / (dim == 3 && stride == 1 ? n : 1) * (dim == 3 ? stride_s : 0)) * interleave;
    const T* const p = arguments.x + at + p_start;
    const T* const p_below = arguments.x + S::offset(below) + p_start;
    const std::int64_t first = at + (c * S::block + start) * interleave;
    T* const to = arguments.y + first;
    const T* const b = with_b ? arguments.b + first : nullptr;
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const int place = (i * S::columns + j * stride) * interleave;
        const int column = j * stride * interleave;
        T stiffness = stack.own[place];
        T gradient = -p[(j * stride_t + i * stride_c) * interleave];
        if (i == 0) {
          stiffness = hat_stiffness * stiffness - stack.above[column] - stack.below[column];
          gradient = -gradient - p_below[j * stride_t * interleave];
        }
        T result = y[i][j] + tables.factor[c] * stiffness + tables.inverse_h[c] * gradient;
        if (with_b) result = __ldcs(b + place) - result;
        if (i == 0 && fixed) result = T(0);
        if (active) __stcs(to + place, result);
      }
    }
  }

  /// y_p = -sum_c B_c u_c on the plane i_2 = line (in 2D: everything).
  template <bool with_b>
  __device__ static void divergence(const Tables& tables, const Arguments& arguments, std::int32_t cell, int line) {
    const std::int64_t at = S::offset(cell);
    const T* u = arguments.x + at;
    const T* above[dim];
#pragma unroll
    for (int c = 0; c < dim; ++c) {
      above[c] = arguments.x + S::offset(arguments.topology.neighbour[2 * c + 1][cell]) + c * S::block * interleave;
    }
#pragma unroll
    for (int i1 = 0; i1 < n; ++i1) {
#pragma unroll
      for (int i0 = 0; i0 < n; ++i0) {
        const int index[3] = {i0, i1, dim == 3 ? line : 0};
        T sum = 0;
#pragma unroll
        for (int c = 0; c < dim; ++c) {
          const int column = index[(c + 1) % dim] + (dim == 3 ? n * index[(c + 2) % 3] : 0);
          const int place = c * S::block + index[c] * S::columns + column;
          T divergence = u[place * interleave];
          if (index[c] == 0) divergence = above[c][column * interleave] - divergence;
          sum += tables.inverse_h[c] * divergence;
        }
        const std::int64_t place = at + (dim * S::block + i0 + n * (i1 + n * index[2])) * interleave;
        __stcs(arguments.y + place, with_b ? __ldcs(arguments.b + place) + sum : -sum);
      }
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
      return Cell::cell_mass(tables, values(r), values(topology.neighbour[2 * c + 1][r]), n, at);
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
        if (extra != 0) Cell::add_face(tables, T(extra), upper, own, y);
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

/// Steps 1 and 2 for component c.
template <bool with_b, int c, class T, int dim, int order>
__device__ void apply_component(const OperatorTables<T, dim, order>& tables,
                                const typename Operator<T, dim, order>::Arguments& arguments, std::int32_t cell,
                                int line, T* shared) {
  using O = Operator<T, dim, order>;
  using Cell = CellOperator<T, dim, order>;
  using S = Shape<dim, order>;
  constexpr int n = S::n;
  constexpr int a = (c + 1) % dim;
  const CellTopology& topology = arguments.topology;
  const bool active = cell != topology.null;
  const std::int32_t below = topology.neighbour[2 * c][cell];
  const unsigned boundary = arguments.boundary_sides[cell] | arguments.boundary_sides[below];
  const T* const component = arguments.x + c * S::block * interleave;
  const auto stack_own = [&](int start) {
    return Cell::stack(tables, topology, component + start * interleave, c, cell, below);
  };
  // The cell below a neighbour is the neighbour of the cell below: beside a hole the two may differ, and the hat
  // couples across the faces of its own two cells only.
  const auto stack_beside = [&](int side, int start) {
    return Cell::stack(tables, topology, component + start * interleave, c, topology.neighbour[side][cell],
                       topology.neighbour[side][below]);
  };
  constexpr int b_lines = dim == 3 ? n : 1;
  const auto place = [](int i, int ib, int ia) { return ((i * b_lines + ib) * n + ia) * O::cells; };
  if constexpr (dim == 3) __syncthreads();  // the component before is done with shared memory
  T y[n][n]{};
  {
    const int start = line * n;
    const auto own = stack_own(start);
#pragma unroll
    for (int m = 0; m < n; ++m) {
      T column[n];
      Cell::multiply_mass(tables, own, m, column);
#pragma unroll
      for (int i = 0; i < n; ++i) {
        shared[place(i, line, m)] = column[i];
        y[i][m] += tables.alpha[c] * column[i];
      }
      Cell::add_own(tables, m, column, y);
    }
    Cell::template add_beside<1>(tables, stack_beside(2 * a, start), stack_beside(2 * a + 1, start), y);
    if ((boundary >> 2 * a & 3) != 0) {
      const auto bubble = [&](int i, int m) { return shared[place(i, line, m)]; };
      Cell::template add_boundary<1>(tables, topology, a, cell, below, own, bubble, y);
    }
#pragma unroll
    for (int i = 0; i < n; ++i) {
#pragma unroll
      for (int j = 0; j < n; ++j) y[i][j] *= tables.factor[a];
    }
  }
  if constexpr (dim == 2) {
    O::template finish<with_b, c, 1>(tables, arguments, cell, below, active, stack_own(0), 0, y);
  } else {
    constexpr int b = (c + 2) % 3;
    T* const shared_y = shared + S::block * O::cells;
#pragma unroll
    for (int i = 0; i < n; ++i) {
#pragma unroll
      for (int j = 0; j < n; ++j) shared_y[place(i, line, j)] = y[i][j];
    }
    __syncthreads();
    T sum[n][n]{};
#pragma unroll
    for (int m = 0; m < n; ++m) {
      T column[n];
#pragma unroll
      for (int i = 0; i < n; ++i) column[i] = shared[place(i, m, line)];
      Cell::add_own(tables, m, column, sum);
    }
    Cell::template add_beside<n>(tables, stack_beside(2 * b, line), stack_beside(2 * b + 1, line), sum);
    if ((boundary >> 2 * b & 3) != 0) {
      const auto bubble = [&](int i, int m) { return shared[place(i, m, line)]; };
      Cell::template add_boundary<n>(tables, topology, b, cell, below, stack_own(line), bubble, sum);
    }
#pragma unroll
    for (int i = 0; i < n; ++i) {
#pragma unroll
      for (int j = 0; j < n; ++j) sum[i][j] = shared_y[place(i, j, line)] + tables.factor[b] * sum[i][j];
    }
    O::template finish<with_b, c, n>(tables, arguments, cell, below, active, stack_own(line), line, sum);
  }
}

/// y = A x or b - A x on cells. Threads: (cell, line).
template <bool with_b, class T, int dim, int order>
__global__ __launch_bounds__(Operator<T, dim, order>::threads, Operator<T, dim, order>::resident) void apply_cells(
    const __grid_constant__ OperatorTables<T, dim, order> tables,
    const __grid_constant__ typename Operator<T, dim, order>::Arguments arguments) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int line = static_cast<int>(threadIdx.y);
  const std::int32_t cell = cell_of_thread(arguments.blocks, arguments.topology);
  T* const shared = reinterpret_cast<T*>(memory) + threadIdx.x;
  apply_component<with_b, 0, T, dim, order>(tables, arguments, cell, line, shared);
  apply_component<with_b, 1, T, dim, order>(tables, arguments, cell, line, shared);
  if constexpr (dim == 3) apply_component<with_b, 2, T, dim, order>(tables, arguments, cell, line, shared);
  if (cell != arguments.topology.null) {
    Operator<T, dim, order>::template divergence<with_b>(tables, arguments, cell, line);
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
  launch(arguments.b == nullptr ? "apply" : "residual", kernel, blocks_for(arguments.blocks.count, cells / interleave),
         dim3(cells, lines), shared_bytes, stream, tables, plain);
  constexpr int hat_threads = 128;
  const int hats = (arguments.topology.records - arguments.topology.cells) * S::columns;
  launch("apply on hat-only records", apply_hat_only<T, dim, order>, blocks_for(hats, hat_threads), hat_threads, 0,
         stream, tables, plain);
}

}  // namespace solenoid::cuda
