#include "engine/cuda/dense.hpp"

#include <algorithm>

#include "engine/cuda/kernels/tensor_tiles.cuh"
#include "engine/cuda/launch.hpp"

namespace solenoid::cuda {
namespace {

// Products ------------------------------------------------------------------------------------------------------------

template <class T>
__device__ T warp_sum(T sum) {
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  return sum;
}

constexpr int threads = 256;

/// One warp per row. All of the matrix is on its way to registers while earlier kernels run.
template <class T>
__global__ __launch_bounds__(threads) void multiply_dense_kernel(int count, const std::int64_t* index, const T* matrix,
                                                                 const T* b, T* x) {
  constexpr int per_lane = most_in_registers / 32;
  constexpr int per_thread = most_in_registers / threads;
  constexpr int sums = 4;
  __shared__ T values[most_in_registers];
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = static_cast<int>(blockIdx.x * (threads / 32) + threadIdx.x / 32);
  std::int64_t place[per_thread];
#pragma unroll
  for (int k = 0; k < per_thread; ++k) {
    const int j = static_cast<int>(threadIdx.x) + k * threads;
    place[k] = j < count ? index[j] : -1;
  }
  const std::int64_t row_place = row < count ? index[row] : -1;
  const T* const from = matrix + static_cast<std::int64_t>(row) * count;
  T entry[per_lane];
#pragma unroll
  for (int k = 0; k < per_lane; ++k) entry[k] = row < count && lane + 32 * k < count ? from[lane + 32 * k] : T(0);
  wait_for_earlier_kernels();
#pragma unroll
  for (int k = 0; k < per_thread; ++k) values[threadIdx.x + k * threads] = place[k] < 0 ? T(0) : b[place[k]];
  __syncthreads();
  T sum[sums]{};
#pragma unroll
  for (int k = 0; k < per_lane; ++k) sum[k % sums] += entry[k] * values[lane + 32 * k];
  const T total = warp_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
  if (lane == 0 && row < count) x[row_place] = total;
}

constexpr int many_threads = 512;
constexpr int many_warps = many_threads / 32;
/// Thread blocks that a device has room for at once, and no more, so that few gather the vector.
constexpr unsigned resident_blocks = 2 * 132;
constexpr int ahead = 8;  // entries of a row that a lane waits for while it multiplies as many
constexpr int stretch = 32 * ahead;

/// Numbers of the vector in shared memory: whole stretches.
constexpr int room_for(int count) { return (count + stretch - 1) / stretch * stretch; }

/// The same for rows that are too long for registers: they stream through them.
template <class T>
__global__ __launch_bounds__(many_threads, 2) void stream_dense_kernel(int count, const std::int64_t* index,
                                                                       const T* matrix, const T* b, T* x) {
  extern __shared__ __align__(16) unsigned char memory[];
  T* const values = reinterpret_cast<T*>(memory);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int first_row = static_cast<int>(blockIdx.x + gridDim.x * (threadIdx.x / 32));
  const int rows_between = static_cast<int>(gridDim.x) * many_warps;
  const auto load = [&](int row, int first, T(&entry)[ahead]) {
    const T* const from = matrix + static_cast<std::int64_t>(row) * count;
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      const int j = first + lane + 32 * k;
      entry[k] = row < count && j < count ? from[j] : T(0);
    }
  };
  T entry[ahead];
  load(first_row, 0, entry);
  wait_for_earlier_kernels();
  for (int j = static_cast<int>(threadIdx.x); j < room_for(count); j += many_threads) {
    values[j] = j < count ? b[index[j]] : T(0);
  }
  __syncthreads();
  for (int row = first_row; row < count; row += rows_between) {
    T sum[ahead]{};
    for (int first = 0; first < count; first += stretch) {
      T next[ahead];
      const bool more = first + stretch < count;
      load(more ? row : row + rows_between, more ? first + stretch : 0, next);
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        sum[k] += entry[k] * values[first + lane + 32 * k];
        entry[k] = next[k];
      }
    }
    const T total = warp_sum(((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
    if (lane == 0) x[index[row]] = total;
  }
}

// Inversion -----------------------------------------------------------------------------------------------------------

constexpr int side = dense_tile;
constexpr int tile_size = side * side;
/// Numbers from one row of a tile in shared memory to the next: what a warp loads for a product on tensor cores lies in
/// different banks.
constexpr int stride = side + 4;
constexpr int tile_bytes = side * stride * static_cast<int>(sizeof(double));

/// A warp's part of a tile, 32 x 16 of 8 warps, as tensor cores hold it.
struct Part {
  double value[2][2][4]{};
  int row = static_cast<int>(threadIdx.x / 32 / 4 * 32 + threadIdx.x % 32 / 4);
  int column = static_cast<int>(threadIdx.x / 32 % 4 * 16 + threadIdx.x % 4 * 2);

  /// visit(row, column, value)
  template <class F>
  __device__ void for_each(const F& visit) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) visit(row + 16 * i + k / 2 * 8, column + 8 * j + k % 2, value[i][j][k]);
      }
    }
  }
  /// += a b^T, tiles in shared memory
  __device__ void add_product(const double* a, const double* b) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const double* const from_a = a + row * stride + lane % 4;
    const double* const from_b = b + (column - lane % 4 * 2 + lane / 4) * stride + lane % 4;
#pragma unroll 2
    for (int k = 0; k < side; k += 8) {
      double left[2][4];
      double right[2][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int m = 0; m < 4; ++m) left[i][m] = from_a[(16 * i + m % 2 * 8) * stride + k + m / 2 * 4];
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
#pragma unroll
        for (int m = 0; m < 2; ++m) right[j][m] = from_b[8 * j * stride + k + m * 4];
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) multiply_tile(left[i], right[j], value[i][j]);
      }
    }
  }
};

/// visit(row, column) for all of a tile, neighbouring threads in neighbouring columns.
template <class F>
__device__ void for_tile(const F& visit) {
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < tile_size; i += threads) visit(i / side, i % side);
}

constexpr int pivot_threads = 512;

/// The inverse of a definite block: Gauss-Jordan elimination in registers. A matrix has a thread block, a thread every
/// eighth row of a column.
__global__ __launch_bounds__(pivot_threads) void invert_pivot_kernel(const Exchanged* matrices, int begin, int last) {
  constexpr int teams = pivot_threads / side;
  constexpr int rows = side / teams;
  __shared__ double row[2][side];  // that of the pivot; two, so that a step has one barrier
  __shared__ double column[2][side];
  const Exchanged step = matrices[blockIdx.x];
  const int size = min(last, static_cast<int>(step.count)) - begin;
  wait_for_earlier_kernels();
  const int team = static_cast<int>(threadIdx.x) / side;
  const int j = static_cast<int>(threadIdx.x) % side;
  double value[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const int i = team + teams * r;
    const bool inside = i < size && j < size;
    value[r] = inside ? step.matrix[(begin + max(i, j)) * step.count + begin + min(i, j)] : 0.0;
  }
#pragma unroll
  for (int turn = 0; turn < rows; ++turn) {
    for (int owner = 0; owner < teams; ++owner) {
      const int k = teams * turn + owner;
      if (k >= size) break;
      if (team == owner) row[k % 2][j] = value[turn];
      if (j == k) {
#pragma unroll
        for (int r = 0; r < rows; ++r) column[k % 2][team + teams * r] = value[r];
      }
      __syncthreads();
      const double inverse = 1.0 / row[k % 2][k];
      const double in_row = j == k ? inverse : row[k % 2][j] * inverse;
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const bool own = r == turn && team == owner;
        value[r] = own ? in_row : (j == k ? 0.0 : value[r]) - column[k % 2][team + teams * r] * in_row;
      }
    }
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const int i = team + teams * r;
    step.pivot[i * side + j] = value[r];
    if (i < size && j < size) step.matrix[(begin + i) * step.count + begin + j] = -value[r];
  }
}

/// Columns of the unknowns, and the same times the inverse of their block, which takes their place in the matrix. A
/// thread block has a tile of rows.
__global__ __launch_bounds__(threads) void solve_columns_kernel(const Exchanged* matrices, int begin, int last) {
  extern __shared__ __align__(16) unsigned char memory[];
  double* const columns = reinterpret_cast<double*>(memory);
  double* const other = columns + side * stride;
  const Exchanged step = matrices[blockIdx.y];
  const int first = static_cast<int>(blockIdx.x) * side;
  const int count = static_cast<int>(step.count);
  const int end = min(last, count);
  const int size = end - begin;
  wait_for_earlier_kernels();
  if (first >= count) return;
  // Below the block the unknowns are columns of the lower triangle, above it rows.
  const auto is_below = [&](int i) { return first + i >= end && first + i < count; };
  const auto is_above = [&](int i) { return first + i < begin; };
  const auto below = [&](int i, int k) -> double& { return step.matrix[(first + i) * step.count + begin + k]; };
  const auto above = [&](int i, int k) -> double& { return step.matrix[(begin + k) * step.count + first + i]; };
  bool filled = false;
  for_tile([&](int i, int k) {
    other[i * stride + k] = step.pivot[i * side + k];
    if (is_above(i)) return;
    const double value = is_below(i) && k < size ? below(i, k) : 0.0;
    columns[i * stride + k] = value;
    filled |= value != 0.0;
  });
  for_tile([&](int k, int i) {
    if (!is_above(i)) return;
    const double value = k < size ? above(i, k) : 0.0;
    columns[i * stride + k] = value;
    filled |= value != 0.0;
  });
  filled = __syncthreads_or(filled) != 0;
  if (threadIdx.x == 0) step.filled[blockIdx.x] = filled ? 1 : 0;
  if (!filled) return;
  Part solved;
  solved.add_product(columns, other);
  __syncthreads();
  solved.for_each([&](int i, int k, double value) { other[i * stride + k] = value; });
  __syncthreads();
  for_tile([&](int i, int k) {
    const std::int64_t place = static_cast<std::int64_t>(first + i) * side + k;
    step.columns[place] = columns[i * stride + k];
    step.solved[place] = other[i * stride + k];
    if (is_below(i) && k < size) below(i, k) = other[i * stride + k];
  });
  for_tile([&](int k, int i) {
    if (is_above(i) && k < size) above(i, k) = other[i * stride + k];
  });
}

/// What is left of the others: M -= columns solved^T, on the tiles of the lower triangle. A tile has a thread block.
__global__ __launch_bounds__(threads, 3) void eliminate_kernel(const Exchanged* matrices) {
  extern __shared__ __align__(16) unsigned char memory[];
  double* const columns = reinterpret_cast<double*>(memory);
  double* const solved = columns + side * stride;
  const Exchanged step = matrices[blockIdx.y];
  wait_for_earlier_kernels();
  const int tile = static_cast<int>(blockIdx.x);
  int row = static_cast<int>((sqrtf(8.0F * static_cast<float>(tile) + 1.0F) - 1.0F) / 2.0F);
  while (row * (row + 1) / 2 > tile) --row;
  while ((row + 1) * (row + 2) / 2 <= tile) ++row;
  const int column = tile - row * (row + 1) / 2;
  if (row * side >= step.count) return;
  if (step.filled[row] == 0 || step.filled[column] == 0) return;
  double* const matrix = step.matrix + row * side * step.count + column * side;
  const int rows = min(side, static_cast<int>(step.count) - row * side);
  const int width = min(side, static_cast<int>(step.count) - column * side);
  Part part;
  part.for_each([&](int i, int j, double& value) {
    if (i < rows && j < width) value = matrix[i * step.count + j];
  });
  for_tile([&](int i, int k) {
    columns[i * stride + k] = -step.columns[static_cast<std::int64_t>(row) * tile_size + i * side + k];
    solved[i * stride + k] = step.solved[static_cast<std::int64_t>(column) * tile_size + i * side + k];
  });
  __syncthreads();
  part.add_product(columns, solved);
  part.for_each([&](int i, int j, double value) {
    if (i < rows && j < width) matrix[i * step.count + j] = value;
  });
}

constexpr int shift_threads = 1024;

__device__ double larger(double a, double b) { return fabs(b) > fabs(a) ? b : a; }

__global__ __launch_bounds__(shift_threads) void find_shift_kernel(std::int64_t count, const double* matrix,
                                                                   std::int64_t begin, std::int64_t end,
                                                                   double* shift) {
  __shared__ double of_warp[32];
  wait_for_earlier_kernels();
  double largest = 0.0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += shift_threads) {
    largest = larger(largest, matrix[i * (count + 1)]);
  }
  const auto of_all = [](double value) {
    for (int offset = 16; offset > 0; offset /= 2) {
      value = larger(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    return value;
  };
  largest = of_all(largest);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = largest;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  largest = of_all(of_warp[threadIdx.x]);
  if (threadIdx.x == 0) *shift = largest != 0.0 ? largest : 1.0;
}

__global__ void add_constant_kernel(std::int64_t count, double* matrix, std::int64_t size, const std::int64_t* constant,
                                    const double* shift, bool inverse) {
  wait_for_earlier_kernels();
  const double s = (inverse ? 1.0 / *shift : *shift) / static_cast<double>(size);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size * size; i += step) {
    matrix[constant[i / size] * count + constant[i % size]] += s;
  }
}

constexpr int transposed = 32;

/// A thread block has a tile of the lower triangle, and that of the upper one opposite.
template <class T>
__global__ void negate_kernel(std::int64_t count, const double* from, T* to) {
  __shared__ T tile[transposed][transposed + 1];
  wait_for_earlier_kernels();
  if (blockIdx.x > blockIdx.y) return;
  const auto for_rows = [&](std::int64_t row, std::int64_t column, const auto& visit) {
    for (int i = static_cast<int>(threadIdx.y); i < transposed; i += static_cast<int>(blockDim.y)) {
      if (row + i < count && column + threadIdx.x < count) visit(i, (row + i) * count + column + threadIdx.x);
    }
  };
  const std::int64_t row = std::int64_t{blockIdx.y} * transposed;
  const std::int64_t column = std::int64_t{blockIdx.x} * transposed;
  for_rows(row, column, [&](int i, std::int64_t place) {
    tile[i][threadIdx.x] = static_cast<T>(-from[place]);
    if (row > column || i >= static_cast<int>(threadIdx.x)) to[place] = tile[i][threadIdx.x];
  });
  __syncthreads();
  for_rows(column, row, [&](int i, std::int64_t place) {
    if (row > column || i < static_cast<int>(threadIdx.x)) to[place] = tile[threadIdx.x][i];
  });
}

}  // namespace

template <class T>
void multiply_dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x, Stream stream) {
  const auto size = static_cast<int>(count);
  if (count <= most_in_registers || Rehearsal::active()) {
    launch("dense", multiply_dense_kernel<T>, blocks_for(size * 32, threads), threads, 0, stream, size, index, matrix,
           b, x);
  }
  if (count > most_in_registers || Rehearsal::active()) {
    launch("dense", stream_dense_kernel<T>, std::min(resident_blocks, blocks_for(size, many_warps)), many_threads,
           room_for(size) * sizeof(T), stream, size, index, matrix, b, x);
  }
}

void exchange(const Exchanged* matrices, int number, std::int64_t most, int begin, int end, Stream stream) {
  const auto tiles = static_cast<unsigned>(Exchanged::tiles(most));
  const auto all = static_cast<unsigned>(number);
  launch("inverse of a pivot", invert_pivot_kernel, all, pivot_threads, 0, stream, matrices, begin, end);
  launch("columns of a pivot", solve_columns_kernel, dim3(tiles, all), threads, 2 * tile_bytes, stream, matrices, begin,
         end);
  launch("elimination", eliminate_kernel, dim3(tiles * (tiles + 1) / 2, all), threads, 2 * tile_bytes, stream,
         matrices);
}

void find_shift(std::int64_t count, const double* matrix, std::int64_t begin, std::int64_t end, double* shift,
                Stream stream) {
  launch("shift", find_shift_kernel, 1, shift_threads, 0, stream, count, matrix, begin, end, shift);
}

void add_constant(std::int64_t count, double* matrix, std::int64_t size, const std::int64_t* constant,
                  const double* shift, bool inverse, Stream stream) {
  constexpr std::int64_t most_blocks = 1024;
  const auto blocks = static_cast<unsigned>(std::min(most_blocks, (size * size + threads - 1) / threads));
  launch("constant", add_constant_kernel, blocks, threads, 0, stream, count, matrix, size, constant, shift, inverse);
}

template <class T>
void negate_dense(std::int64_t count, const double* from, T* to, Stream stream) {
  const unsigned tiles = blocks_for(count, std::int64_t{transposed});
  launch("rounding of an inverse", negate_kernel<T>, dim3(tiles, tiles), dim3(transposed, 8), 0, stream, count, from,
         to);
}

#define SOLENOID_INSTANTIATE(T)                                                                       \
  template void multiply_dense<T>(std::int64_t, const std::int64_t*, const T*, const T*, T*, Stream); \
  template void negate_dense<T>(std::int64_t, const double*, T*, Stream);
SOLENOID_INSTANTIATE(float)
SOLENOID_INSTANTIATE(double)
#undef SOLENOID_INSTANTIATE

}  // namespace solenoid::cuda
