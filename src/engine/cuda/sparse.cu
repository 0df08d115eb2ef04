/// \file
/// A thread has a row; the rows of a slice are those of a warp, so that entries are read with unit stride. Per row and
/// pass: the entries (6 bytes each), the diagonal and the vectors; x is gathered, mostly from the cache.
/// Most kernels have little to do and take as long as their loads wait for each other. So entries, which no kernel
/// writes, are loaded all at once, those of a thread's first row while the kernel before is still running.
/// What sums are needed for a step of conjugate gradients stays on the device: blocks leave partial sums, and all
/// blocks of the kernel that takes the step add these up in the same order.

#include "engine/cuda/sparse.hpp"

#include <algorithm>
#include <vector>

#include "engine/cuda/launch.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 256;
constexpr int slice = SparseFormat::slice;
/// Thread blocks that leave partial sums.
constexpr int most_blocks = 512;
/// Rows up to which four threads share one, so that all its entries are loaded at once.
constexpr std::int32_t most_shared = 32768;
/// Sums of a step: d . A d_t for the directions before, d . A d, d . r.
constexpr int most_sums = Directions<float>::most + 1;

template <class F>
__device__ void for_all(std::int64_t begin, std::int64_t end, const F& visit) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < end; i += step) {
    visit(i);
  }
}

/// The entries of a row besides its diagonal, every `lanes`th in each of as many neighbouring threads.
template <class T, int lanes>
class Row {
 public:
  __device__ Row(const SparseMatrix<T>& a, std::int64_t row) : a_(a) {
    const std::int64_t s = row / slice;
    next_ = a.begin[s] + row % slice + lane() * slice;
    end_ = a.begin[s + 1];
    load();
  }
  /// Their products with x, added up.
  __device__ T times(const T* x) {
    return times_values([x](std::int32_t column) { return x[column]; });
  }
  /// The same for x(column).
  template <class X>
  __device__ T times_values(const X& x) {
    T sum = 0;
    for (;;) {
#pragma unroll
      for (int j = 0; j < ahead; ++j) sum += entry_value<T>(value_[j]) * x(column_[j]);
      if (next_ >= end_) break;
      load();
    }
#pragma unroll
    for (int offset = lanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    return sum;
  }
  /// Among the threads of a row.
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % lanes; }

 private:
  static constexpr int ahead = 6;  // neighbours on a lattice

  __device__ void load() {
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      const std::int64_t e = next_ + j * lanes * slice;
      const bool there = e < end_;
      column_[j] = there ? a_.column[e] : a_.rows;
      value_[j] = there ? a_.value[e] : std::uint16_t(0);
    }
    next_ += ahead * lanes * slice;
  }

  const SparseMatrix<T>& a_;
  std::int64_t next_;
  std::int64_t end_;
  std::int32_t column_[ahead];
  std::uint16_t value_[ahead];
};

/// visit(i, entries of row i) for the rows in [begin, end), once earlier kernels are through. Whole warps have rows,
/// or none.
template <int lanes, class T, class F>
__device__ void for_rows(const SparseMatrix<T>& a, std::int64_t begin, std::int64_t end, const F& visit) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x / lanes;
  std::int64_t i = begin + (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
  if (i >= end) {
    wait_for_earlier_kernels();
    return;
  }
  Row<T, lanes> first(a, i);
  wait_for_earlier_kernels();
  visit(i, first);
  for (i += step; i < end; i += step) {
    Row<T, lanes> row(a, i);
    visit(i, row);
  }
}

template <class T, int lanes>
__global__ void relax_kernel(const __grid_constant__ SparseMatrix<T> a, int colour, const T* b, T* x) {
  for_rows<lanes>(a, a.colour_begin[colour], a.colour_begin[colour + 1], [&](std::int64_t i, Row<T, lanes>& row) {
    const T value = (b[i] - row.times(x)) * a.inverse_diagonal[i];
    if (row.lane() == 0) x[i] = value;
  });
}
template <class T>
__global__ void relax_zero_kernel(const __grid_constant__ SparseMatrix<T> a, const T* b, T* x) {
  wait_for_earlier_kernels();
  for_all(0, a.rows, [&](std::int64_t i) { x[i] = i < a.colour_begin[1] ? b[i] * a.inverse_diagonal[i] : T(0); });
}
template <class T, int lanes>
__global__ void jacobi_twice_kernel(const __grid_constant__ SparseMatrix<T> a, T factor, const T* b, T* y) {
  for_rows<lanes>(a, 0, a.rows, [&](std::int64_t i, Row<T, lanes>& row) {
    const T beside = row.times_values([&](std::int32_t column) { return a.inverse_diagonal[column] * b[column]; });
    if (row.lane() == 0) y[i] = jacobi_from_zero(factor, a.inverse_diagonal[i], b[i], beside);
  });
}
template <class T, int lanes>
__global__ void jacobi_kernel(const __grid_constant__ SparseMatrix<T> a, T factor, const T* b, const T* x, T* y) {
  for_rows<lanes>(a, 0, a.rows, [&](std::int64_t i, Row<T, lanes>& row) {
    const T beside = row.times(x);
    if (row.lane() == 0) y[i] = x[i] + factor * a.inverse_diagonal[i] * (b[i] - a.diagonal[i] * x[i] - beside);
  });
}
template <class T, int lanes>
__global__ void residual_kernel(const __grid_constant__ SparseMatrix<T> a, const T* b, const T* x, T* r) {
  for_rows<lanes>(a, 0, a.solved_from, [&](std::int64_t i, Row<T, lanes>& row) {
    const T beside = row.times(x);
    if (row.lane() == 0) r[i] = b[i] - a.diagonal[i] * x[i] - beside;
  });
}
template <class T>
__global__ void restrict_kernel(Aggregates to, const T* r, T* coarse) {
  constexpr int ahead = 4;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  std::int32_t next = 0;
  std::int32_t end = 0;
  std::int32_t child[ahead];
  const auto load = [&] {
#pragma unroll
    for (int j = 0; j < ahead; ++j) child[j] = next + j < end ? to.child[next + j] : -1;
    next += ahead;
  };
  const auto begin = [&] {
    if (i >= to.coarse_rows) return;
    next = to.child_begin[i];
    end = to.child_begin[i + 1];
    load();
  };
  begin();
  wait_for_earlier_kernels();
  while (i < to.coarse_rows) {
    T sum = 0;
    for (;;) {
#pragma unroll
      for (int j = 0; j < ahead; ++j) sum += child[j] >= 0 ? r[child[j]] : T(0);
      if (next >= end) break;
      load();
    }
    coarse[i] = sum;
    i += step;
    begin();
  }
}
template <class T>
__global__ void prolong_kernel(std::int32_t rows, Aggregates to, T factor, const T* coarse, T* x) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  std::int32_t parent = i < rows ? to.parent[i] : 0;
  wait_for_earlier_kernels();
  for (; i < rows; i += step) {
    x[i] += factor * coarse[parent];
    if (i + step < rows) parent = to.parent[i + step];
  }
}
template <class T, int lanes>
__global__ void multiply_kernel(const __grid_constant__ SparseMatrix<T> a, const T* x, T* y) {
  for_rows<lanes>(a, 0, a.rows, [&](std::int64_t i, Row<T, lanes>& row) {
    const T beside = row.times(x);
    if (row.lane() == 0) y[i] = a.diagonal[i] * x[i] + beside;
  });
}

/// The sum over a thread block, for all its threads.
__device__ double block_sum(double value) {
  __shared__ double of_warp[threads / 32];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffU, value, offset);
  __syncthreads();  // of_warp is read no more
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0.0;
#pragma unroll
  for (int w = 0; w < threads / 32; ++w) sum += of_warp[w];
  return sum;
}

template <class T, int count, int lanes>
__global__ void __launch_bounds__(threads)
    multiply_sums_kernel(const __grid_constant__ SparseMatrix<T> a, const __grid_constant__ Directions<T> directions,
                         const T* r, double* partial) {
  constexpr int newest = count - 1;
  const T* const d = directions.d[newest];
  T* const a_d = directions.a_d[newest];
  double sums[count + 1]{};
  const auto add = [&](std::int64_t i, T here, T image) {
    a_d[i] = image;
#pragma unroll
    for (int t = 0; t < newest; ++t) sums[t] += static_cast<double>(here) * directions.a_d[t][i];
    sums[newest] += static_cast<double>(here) * image;
    sums[newest + 1] += static_cast<double>(here) * r[i];
  };
  for_rows<lanes>(a, a.solved_to, a.rows, [&](std::int64_t i, Row<T, lanes>& row) {
    const T beside = row.times(d);
    if (row.lane() == 0) add(i, d[i], a.diagonal[i] * d[i] + beside);
  });
  for_all(0, a.solved_to, [&](std::int64_t i) { add(i, d[i], a.inverse_diagonal[i] > T(0) ? r[i] : T(0)); });
#pragma unroll
  for (int k = 0; k <= count; ++k) {
    const double sum = block_sum(sums[k]);
    if (threadIdx.x == 0) partial[k * most_blocks + blockIdx.x] = sum;
  }
}

template <class T, int count>
__global__ void __launch_bounds__(threads)
    advance_kernel(std::int32_t rows, const __grid_constant__ Directions<T> directions, const double* partial,
                   int partial_blocks, const T* r, T* rest, bool first, T* x) {
  wait_for_earlier_kernels();
  constexpr int newest = count - 1;
  double sums[count + 1];
#pragma unroll
  for (int k = 0; k <= count; ++k) {
    double mine = 0.0;
    for (int block = threadIdx.x; block < partial_blocks; block += threads) mine += partial[k * most_blocks + block];
    sums[k] = block_sum(mine);
  }
  T share[count];
  double curvature = sums[newest];
#pragma unroll
  for (int t = 0; t < newest; ++t) {
    const double of_t = directions.curvature[t];
    const double part = of_t > 0.0 ? sums[t] / of_t : 0.0;
    share[t] = static_cast<T>(part);
    curvature -= part * sums[t];
  }
  const bool goes = curvature > 0.0 && isfinite(curvature) && isfinite(sums[count]);
  const T alpha = goes ? static_cast<T>(sums[count] / curvature) : T(0);
  T* const d = directions.d[newest];
  T* const a_d = directions.a_d[newest];
  for_all(0, rows, [&](std::int64_t i) {
    T direction = d[i];
#pragma unroll
    for (int t = 0; t < newest; ++t) direction -= share[t] * directions.d[t][i];
    x[i] = (first ? T(0) : x[i]) + alpha * direction;
    if (rest == nullptr) return;
    T image = a_d[i];
#pragma unroll
    for (int t = 0; t < newest; ++t) image -= share[t] * directions.a_d[t][i];
    d[i] = direction;
    a_d[i] = image;
    rest[i] = r[i] - alpha * image;
  });
  if (blockIdx.x == 0 && threadIdx.x == 0) directions.curvature[newest] = goes ? static_cast<T>(curvature) : T(0);
}

/// Of `value` on the faces of a cell, over their widths.
template <class T, class F>
__device__ T net_flux(const Incidence<T>& incidence, std::int64_t cell, const F& value) {
  T sum = 0;
  for (int side = 0; side < 2 * incidence.dim; ++side) {
    const std::int32_t face = incidence.face_of_cell[side][cell];
    const T flux = value(face) * incidence.inverse_width[face];
    sum += side % 2 == 0 ? -flux : flux;
  }
  return sum;
}
template <class T>
__global__ void divergence_kernel(const __grid_constant__ Incidence<T> incidence, const T* w, const T* u, T* g) {
  wait_for_earlier_kernels();
  for_all(0, incidence.cells, [&](std::int64_t cell) {
    g[cell] = net_flux(incidence, cell, [&](std::int32_t face) { return w[face] * u[face]; });
  });
}
template <class T>
__global__ void divergence_defect_kernel(const __grid_constant__ Incidence<T> incidence, const T* r, const T* u, T* g) {
  wait_for_earlier_kernels();
  for_all(0, incidence.cells, [&](std::int64_t cell) {
    g[cell] = -r[cell] - net_flux(incidence, cell, [&](std::int32_t face) { return u[face]; });
  });
}
template <class T>
__global__ void gradient_kernel(const __grid_constant__ Incidence<T> incidence, const T* w, const T* p, T* u) {
  wait_for_earlier_kernels();
  for_all(0, incidence.faces, [&](std::int64_t face) {
    const T slope =
        (p[incidence.cell_of_face[0][face]] - p[incidence.cell_of_face[1][face]]) * incidence.inverse_width[face];
    u[face] = w == nullptr ? slope : w[face] * slope;
  });
}
template <class T>
__global__ void axpy_kernel(std::int64_t count, T factor, const T* x, T* y) {
  wait_for_earlier_kernels();
  for_all(0, count, [&](std::int64_t i) { y[i] += factor * x[i]; });
}
template <class T>
__global__ void __launch_bounds__(threads) dot_kernel(std::int64_t count, const T* x, const T* y, double* partial) {
  wait_for_earlier_kernels();
  double sum = 0.0;
  for_all(0, count, [&](std::int64_t i) { sum += static_cast<double>(x[i]) * y[i]; });
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// Blocks for so many rows.
unsigned blocks(std::int64_t rows) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((rows + threads - 1) / threads, 1, 132 * 16));
}
unsigned summing_blocks(std::int64_t rows) { return std::min<unsigned>(blocks(rows), most_blocks); }

template <class T>
class CudaSparseKernels final : public SparseKernels<T> {
 public:
  explicit CudaSparseKernels(Shared& shared) : shared_(shared), partial_(shared.engine, most_sums * most_blocks) {}

  void relax(const SparseMatrix<T>& a, int colour, const T* b, T* x) override {
    const std::int32_t rows = a.colour_begin[colour + 1] - a.colour_begin[colour];
    with_lanes(
        a, [&](auto lanes) { start("sparse relax", relax_kernel<T, lanes>, blocks(rows * lanes), a, colour, b, x); });
  }
  void relax_zero(const SparseMatrix<T>& a, const T* b, T* x) override {
    start("sparse relax zero", relax_zero_kernel<T>, blocks(a.rows), a, b, x);
  }
  void jacobi_twice_from_zero(const SparseMatrix<T>& a, T factor, const T* b, T* y) override {
    with_lanes(a, [&](auto lanes) {
      start("sparse Jacobi from zero", jacobi_twice_kernel<T, lanes>, blocks(a.rows * lanes), a, factor, b, y);
    });
  }
  void jacobi(const SparseMatrix<T>& a, T factor, const T* b, const T* x, T* y) override {
    with_lanes(a, [&](auto lanes) {
      start("sparse Jacobi", jacobi_kernel<T, lanes>, blocks(a.rows * lanes), a, factor, b, x, y);
    });
  }
  void residual(const SparseMatrix<T>& a, const T* b, const T* x, T* r) override {
    with_lanes(a, [&](auto lanes) {
      start("sparse residual", residual_kernel<T, lanes>, blocks(a.solved_from * lanes), a, b, x, r);
    });
  }
  void restrict_to(const Aggregates& to, const T* r, T* coarse) override {
    start("sparse restrict", restrict_kernel<T>, blocks(to.coarse_rows), to, r, coarse);
  }
  void prolong_add(const SparseMatrix<T>& a, const Aggregates& to, T factor, const T* coarse, T* x) override {
    start("sparse prolong", prolong_kernel<T>, blocks(a.solved_from), a.solved_from, to, factor, coarse, x);
  }
  void multiply(const SparseMatrix<T>& a, const T* x, T* y) override {
    with_lanes(
        a, [&](auto lanes) { start("sparse multiply", multiply_kernel<T, lanes>, blocks(a.rows * lanes), a, x, y); });
  }

  void multiply_sums(const SparseMatrix<T>& a, const Directions<T>& directions, const T* r) override {
    with_count(directions.count, [&](auto count) {
      with_lanes(a, [&](auto lanes) {
        start("sparse multiply and sums", multiply_sums_kernel<T, count, lanes>, partial_blocks(a), a, directions, r,
              partial_.data());
      });
    });
  }
  void advance(const SparseMatrix<T>& a, const Directions<T>& directions, const T* r, T* rest, bool first,
               T* x) override {
    with_count(directions.count, [&](auto count) {
      start("sparse advance", advance_kernel<T, count>, blocks(a.rows), a.rows, directions, partial_.data(),
            static_cast<int>(partial_blocks(a)), r, rest, first, x);
    });
  }
  void divergence(const Incidence<T>& incidence, const T* w, const T* u, T* g) override {
    start("sparse divergence", divergence_kernel<T>, blocks(incidence.cells), incidence, w, u, g);
  }
  void divergence_defect(const Incidence<T>& incidence, const T* r, const T* u, T* g) override {
    start("sparse divergence defect", divergence_defect_kernel<T>, blocks(incidence.cells), incidence, r, u, g);
  }
  void gradient(const Incidence<T>& incidence, const T* w, const T* p, T* u) override {
    start("sparse gradient", gradient_kernel<T>, blocks(incidence.faces), incidence, w, p, u);
  }
  void axpy(std::int64_t count, T factor, const T* x, T* y) override {
    start("sparse axpy", axpy_kernel<T>, blocks(count), count, factor, x, y);
  }
  double dot(std::int64_t count, const T* x, const T* y) override {
    const unsigned grid = summing_blocks(count);
    start("sparse dot", dot_kernel<T>, grid, count, x, y, partial_.data());
    std::vector<double> partial(grid);
    shared_.engine.download(partial_.data(), partial.data(), grid * sizeof(double));
    double sum = 0.0;
    for (const double part : partial) sum += part;
    return sum;
  }

 private:
  template <class Kernel, class... Arguments>
  void start(const char* name, Kernel* kernel, unsigned grid, const Arguments&... arguments) {
    launch(name, kernel, grid, threads, 0, shared_.stream, arguments...);
  }
  /// Returns work(integral_constant) for the threads that share a row.
  template <class Work>
  static auto with_lanes(const SparseMatrix<T>& a, const Work& work) {
    if (a.rows <= most_shared) return work(std::integral_constant<int, 4>());
    return work(std::integral_constant<int, 1>());
  }
  /// Blocks of multiply_sums().
  static unsigned partial_blocks(const SparseMatrix<T>& a) {
    return with_lanes(a, [&](auto lanes) { return summing_blocks(a.rows * lanes); });
  }
  /// work(integral_constant) for the number of directions.
  template <class Work>
  static void with_count(int count, const Work& work) {
    switch (count) {
      case 1: return work(std::integral_constant<int, 1>());
      case 2: return work(std::integral_constant<int, 2>());
      case 3: return work(std::integral_constant<int, 3>());
      case 4: return work(std::integral_constant<int, 4>());
      default: return work(std::integral_constant<int, 5>());
    }
  }

  Shared& shared_;
  Vector<double> partial_;
};

}  // namespace

template <class T>
std::unique_ptr<SparseKernels<T>> make_sparse_kernels(Shared& shared) {
  return std::make_unique<CudaSparseKernels<T>>(shared);
}

template std::unique_ptr<SparseKernels<float>> make_sparse_kernels(Shared&);
template std::unique_ptr<SparseKernels<double>> make_sparse_kernels(Shared&);

}  // namespace solenoid::cuda
