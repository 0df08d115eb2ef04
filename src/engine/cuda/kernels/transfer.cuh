#pragma once
/// \file
/// Embedding of the coarse space into the fine one, and its transpose: one thread per cell, component and row of it.
///
/// Prolongation: thread (fine cell, row i_c) combines the planes of its coarse cell along the own direction, embeds the
/// plane in the tangential directions and adds it. Restriction: thread (coarse cell, row j_c) does the transpose for
/// all children; the hat gathers from the children of the cell below too, so that every value has one writer. Pressure,
/// or Poisson's u, is a component whose own direction is the last one and is made of modes. In directions that are not
/// coarsened a cell is its own child. Traffic: every vector once; rows that share planes read them from the caches.

#include "engine/cuda/kernels/shape.cuh"

namespace solenoid::cuda {

template <class T, int dim, int order>
struct TransferTables {
  static constexpr int n = order + 1;
  T embed_o[2][n][n];  ///< [child][fine][coarse]
  T embed_p[2][n + 1][n + 1];

  explicit TransferTables(const CellData<T>& cell) {
    for (int child = 0; child < 2; ++child) {
      for (int i = 0; i <= n; ++i) {
        for (int j = 0; j <= n; ++j) {
          embed_p[child][i][j] = cell.embed_p[child][i][j];
          if (i < n && j < n) embed_o[child][i][j] = cell.embed_o[child][i][j];
        }
      }
    }
  }
};

template <class T, int velocities, int dim, int order>
struct Transfer {
  using S = Shape<dim, order, velocities>;
  using Tables = TransferTables<T, dim, order>;
  using Arguments = TransferArguments<T>;
  static constexpr int n = S::n;
  static constexpr int columns = S::columns;
  static constexpr int corners = 1 << dim;
  static constexpr int cells = n <= 4 ? 64 : 32;     ///< of a thread block
  static constexpr int rows_ahead = n <= 3 ? n : 1;  ///< planes that are loaded at once

  /// Direction with stride n^turn inside a plane of component c (`velocities`: the scalar field).
  __device__ static int plane_direction(int c, int turn) { return c == velocities ? turn : (c + 1 + turn) % dim; }
  __device__ static int own_direction(int c) { return c == velocities ? dim - 1 : c; }

  template <bool transposed>
  __device__ static void embed_plane(const Tables& tables, const Arguments& arguments, int c, int bits,
                                     T (&x)[columns]) {
    const int a = plane_direction(c, 0);
    if (arguments.refined[a]) apply_along<transposed, 1>(tables.embed_o[bits >> a & 1], x);
    if constexpr (dim == 3) {
      const int b = plane_direction(c, 1);
      if (arguments.refined[b]) apply_along<transposed, n>(tables.embed_o[bits >> b & 1], x);
    }
  }

  __device__ static void add_plane(T weight, const T* from, T (&x)[columns]) {
#pragma unroll
    for (int i = 0; i < columns; ++i) x[i] += weight * from[i * interleave];
  }

  /// Weight of coarse row j in fine row i along the own direction of component c.
  __device__ static T row_weight(const Tables& tables, const Arguments& arguments, int c, int bits, int i, int j) {
    const int direction = own_direction(c);
    if (!arguments.refined[direction]) return i == j ? T(1) : T(0);
    const int child = bits >> direction & 1;
    return c == velocities ? tables.embed_o[child][i][j] : tables.embed_p[child][i][j];
  }

  __device__ static void prolong(const Tables& tables, const Arguments& arguments, std::int32_t cell, int row, int c) {
    const std::int32_t bits = arguments.parent[cell] % corners;
    const std::int32_t coarse = arguments.parent[cell] / corners;
    T plane[columns]{};
    const T* from = arguments.from + S::offset(coarse) + c * S::block * interleave;
#pragma unroll(rows_ahead)
    for (int j = 0; j < n; ++j) {
      const T weight = row_weight(tables, arguments, c, bits, row, j);
      if (weight != T(0)) add_plane(weight, from + j * columns * interleave, plane);
    }
    if (c < velocities) {
      const T weight = row_weight(tables, arguments, c, bits, row, n);
      const std::int32_t above = arguments.coarse.neighbour[2 * c + 1][coarse];
      if (weight != T(0)) add_plane(weight, arguments.from + S::offset(above) + c * S::block * interleave, plane);
    }
    embed_plane<false>(tables, arguments, c, bits, plane);
    T* to = arguments.to + S::offset(cell) + (c * S::block + row * columns) * interleave;
#pragma unroll
    for (int i = 0; i < columns; ++i) to[i * interleave] = arguments.add ? to[i * interleave] + plane[i] : plane[i];
  }

  __device__ static void restrict_to(const Tables& tables, const Arguments& arguments, std::int32_t cell, int row,
                                     int c) {
    T sum[columns]{};
    const bool hat = c < velocities && row == 0;
    if (!hat || !normal_fixed(arguments.coarse.face[2 * c][cell])) {
      const std::int32_t* const children = arguments.children + cell * std::int64_t(corners);
      const std::int32_t below = c < velocities ? arguments.coarse.neighbour[2 * c][cell] : arguments.coarse.null;
      const bool middle = hat && arguments.refined[c] && below != arguments.coarse.null;
      std::int32_t child = children[0];
#pragma unroll 1
      for (int bits = 0; bits < corners; ++bits) {
        const std::int32_t next = bits + 1 < corners ? children[bits + 1] : child;
        if (child != arguments.fine.null) {
          T plane[columns]{};
          const T* from = arguments.from + S::offset(child) + c * S::block * interleave;
#pragma unroll(rows_ahead)
          for (int i = 0; i < n; ++i) {
            const T weight = row_weight(tables, arguments, c, bits, i, row);
            add_plane(weight, from + i * columns * interleave, plane);
          }
          if (middle && (bits >> c & 1) != 0) {  // middle hats of the cell below
            const std::int32_t other = arguments.children[below * std::int64_t(corners) + bits];
            add_plane(tables.embed_p[1][0][n], arguments.from + S::offset(other) + c * S::block * interleave, plane);
          }
          embed_plane<true>(tables, arguments, c, bits, plane);
#pragma unroll
          for (int i = 0; i < columns; ++i) sum[i] += plane[i];
        }
        child = next;
      }
    }
    T* to = arguments.to + S::offset(cell) + (c * S::block + row * columns) * interleave;
#pragma unroll
    for (int i = 0; i < columns; ++i) to[i * interleave] = sum[i];
  }

  // Hats of hat-only records: a coarse one is made of the fine hats on the same face and of those in the middle of the
  // coarse cell below.

  static constexpr int halves = corners / 2;  ///< children below a hat-only record

  /// Child number `half` of those of a coarse cell that touch its upper face in direction c.
  __device__ static int bits_below(const Arguments& arguments, int c, int half) {
    return (half & ((1 << c) - 1)) | half >> c << (c + 1) | (arguments.refined[c] ? 1 << c : 0);
  }
  /// Weight of coarse hat `column` of direction c in hat i of a child, without that of the face.
  __device__ static T tangential_weight(const Tables& tables, const Arguments& arguments, int c, int bits, int i,
                                        int column) {
    const auto embed = [&](int direction, int fine_mode, int coarse_mode) -> T {
      if (!arguments.refined[direction]) return fine_mode == coarse_mode ? T(1) : T(0);
      return tables.embed_o[bits >> direction & 1][fine_mode][coarse_mode];
    };
    return embed((c + 1) % dim, i % n, column % n) * (dim == 3 ? embed((c + 2) % dim, i / n, column / n) : T(1));
  }
  __device__ static T hat_weight(const Tables& tables, const Arguments& arguments, int c) {
    return arguments.refined[c] ? tables.embed_p[1][n][n] : T(1);
  }

  /// Adds to hat i of the fine hat-only record above child number `half`.
  __device__ static void prolong_hat(const Tables& tables, const Arguments& arguments, std::int32_t hat, int half,
                                     int i) {
    const int c = direction_of_hats(arguments.coarse, hat);
    const int bits = bits_below(arguments, c, half);
    const std::int32_t cell = arguments.coarse.neighbour[2 * c][hat];
    const std::int32_t child = arguments.children[cell * std::int64_t(corners) + bits];
    if (child == arguments.fine.null) return;
    const T* const from = arguments.from + hat_place(arguments.coarse, hat, 0);
    T sum = 0;
    for (int column = 0; column < columns; ++column) {
      sum += tangential_weight(tables, arguments, c, bits, i, column) * from[column * interleave];
    }
    const std::int32_t above = arguments.fine.neighbour[2 * c + 1][child];
    arguments.to[S::offset(above) + (c * S::block + i) * interleave] += hat_weight(tables, arguments, c) * sum;
  }
  __device__ static T restricted_hat(const Tables& tables, const Arguments& arguments, std::int32_t hat, int column) {
    const int c = direction_of_hats(arguments.coarse, hat);
    const std::int32_t cell = arguments.coarse.neighbour[2 * c][hat];
    const T on_face = hat_weight(tables, arguments, c);
    const T in_middle = arguments.refined[c] ? tables.embed_p[1][0][n] : T(0);
    T sum = 0;
    for (int half = 0; half < halves; ++half) {
      const int bits = bits_below(arguments, c, half);
      const std::int32_t child = arguments.children[cell * std::int64_t(corners) + bits];
      if (child == arguments.fine.null) continue;
      const T* const from = arguments.from + c * S::block * interleave;
      const T* const above = from + S::offset(arguments.fine.neighbour[2 * c + 1][child]);
      const T* const middle = from + S::offset(child);
      for (int i = 0; i < columns; ++i) {
        const T value = on_face * above[i * interleave] + in_middle * middle[i * interleave];
        sum += tangential_weight(tables, arguments, c, bits, i, column) * value;
      }
    }
    return sum;
  }
  /// Place of hat `column` of a hat-only record.
  __device__ static std::int64_t hat_place(const CellTopology& topology, std::int32_t hat, int column) {
    return S::offset(hat) + (direction_of_hats(topology, hat) * S::block + column) * interleave;
  }

  static void launch_prolong(const Arguments& arguments, Stream stream);
  static void launch_restrict_to(const Arguments& arguments, Stream stream);

  /// The components of some cells are neighbours.
  static unsigned thread_blocks(const RecordBlocks& blocks) {
    return (velocities + 1) * blocks_for(blocks.count, cells / interleave);
  }
  static constexpr int hat_threads = 128;
  /// `each` threads for each hat-only record.
  static unsigned hat_blocks(const CellTopology& topology, int each) {
    return blocks_for((topology.records - topology.cells) * each, hat_threads);
  }
};

/// fine += P coarse, or fine = P coarse. Threads: (fine cell, row), blocks: (cells, component).
template <class T, int velocities, int dim, int order>
__global__ __launch_bounds__(Transfer<T, velocities, dim, order>::cells*(order + 1)) void prolong_cells(
    const __grid_constant__ TransferTables<T, dim, order> tables,
    const __grid_constant__ TransferArguments<T> arguments) {
  wait_for_earlier_kernels();
  const std::int32_t cell = cell_of_thread(arguments.blocks, arguments.fine, blockIdx.x / (velocities + 1));
  if (cell == arguments.fine.null) return;
  Transfer<T, velocities, dim, order>::prolong(tables, arguments, cell, static_cast<int>(threadIdx.y),
                                               static_cast<int>(blockIdx.x % (velocities + 1)));
}

/// coarse = P^T fine. Threads: (coarse cell, row), blocks: (cells, component).
template <class T, int velocities, int dim, int order>
__global__ __launch_bounds__(Transfer<T, velocities, dim, order>::cells*(order + 1)) void restrict_cells(
    const __grid_constant__ TransferTables<T, dim, order> tables,
    const __grid_constant__ TransferArguments<T> arguments) {
  wait_for_earlier_kernels();
  const std::int32_t cell = cell_of_thread(arguments.blocks, arguments.coarse, blockIdx.x / (velocities + 1));
  if (cell == arguments.coarse.null) return;
  Transfer<T, velocities, dim, order>::restrict_to(tables, arguments, cell, static_cast<int>(threadIdx.y),
                                                   static_cast<int>(blockIdx.x % (velocities + 1)));
}

/// The same for hat-only records: one thread per fine hat above a child of the cell below a coarse one.
template <class T, int velocities, int dim, int order>
__global__ void prolong_hat_only(const __grid_constant__ TransferTables<T, dim, order> tables,
                                 const __grid_constant__ TransferArguments<T> arguments) {
  wait_for_earlier_kernels();
  using P = Transfer<T, velocities, dim, order>;
  constexpr int each = P::halves * P::columns;
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int32_t hat = arguments.coarse.cells + index / each;
  if (hat >= arguments.coarse.records) return;
  P::prolong_hat(tables, arguments, hat, index / P::columns % P::halves, index % P::columns);
}

/// One thread per coarse hat.
template <class T, int velocities, int dim, int order>
__global__ void restrict_hat_only(const __grid_constant__ TransferTables<T, dim, order> tables,
                                  const __grid_constant__ TransferArguments<T> arguments) {
  wait_for_earlier_kernels();
  using P = Transfer<T, velocities, dim, order>;
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int32_t hat = arguments.coarse.cells + index / P::columns;
  if (hat >= arguments.coarse.records) return;
  const int column = index % P::columns;
  arguments.to[P::hat_place(arguments.coarse, hat, column)] = P::restricted_hat(tables, arguments, hat, column);
}

template <class T, int velocities, int dim, int order>
void Transfer<T, velocities, dim, order>::launch_prolong(const Arguments& arguments, Stream stream) {
  const Tables tables(*arguments.cell);
  launch("prolong", prolong_cells<T, velocities, dim, order>, thread_blocks(arguments.blocks), dim3(cells, n), 0,
         stream, tables, arguments);
  if constexpr (velocities > 0) {
    launch("prolong on hat-only records", prolong_hat_only<T, velocities, dim, order>,
           hat_blocks(arguments.coarse, halves * columns), hat_threads, 0, stream, tables, arguments);
  }
}

template <class T, int velocities, int dim, int order>
void Transfer<T, velocities, dim, order>::launch_restrict_to(const Arguments& arguments, Stream stream) {
  const Tables tables(*arguments.cell);
  launch("restrict_to", restrict_cells<T, velocities, dim, order>, thread_blocks(arguments.blocks), dim3(cells, n), 0,
         stream, tables, arguments);
  if constexpr (velocities > 0) {
    launch("restrict_to on hat-only records", restrict_hat_only<T, velocities, dim, order>,
           hat_blocks(arguments.coarse, columns), hat_threads, 0, stream, tables, arguments);
  }
}

}  // namespace solenoid::cuda
