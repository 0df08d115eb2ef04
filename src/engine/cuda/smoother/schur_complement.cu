#include "engine/cuda/smoother/schur_complement.hpp"

#include "engine/cuda/launch.hpp"

namespace solenoid::cuda {
namespace {

constexpr int threads = 256;

/// S along the line in direction c through two pressures that differ there at most.
__device__ double along(const SchurComplement& s, int c, const int (&row)[3], int column) {
  const int a = (c + 1) % s.dim;
  const int b = (c + 2) % s.dim;
  const int lines = s.dim == 3 ? s.modes * s.modes : s.modes;
  const int line = (s.dim == 3 ? (s.start[b] + row[b]) * s.modes : 0) + s.start[a] + row[a];
  const double* const left = s.divergence[c] + (s.start[c] + row[c]) * s.functions[c];
  const double* const right = s.divergence[c] + (s.start[c] + column) * s.functions[c];
  double sum = 0.0;
  for (int e = 0; e < s.functions[c]; ++e) sum += left[e] * s.inverse_lambda[c][e * lines + line] * right[e];
  return sum;
}

__device__ double entry(const SchurComplement& s, int i, int j) {
  const int row[3]{i % s.length[0], i / s.length[0] % s.length[1], i / (s.length[0] * s.length[1])};
  const int column[3]{j % s.length[0], j / s.length[0] % s.length[1], j / (s.length[0] * s.length[1])};
  double sum = 0.0;
  for (int c = 0; c < s.dim; ++c) {
    bool on_line = true;
    for (int d = 0; d < s.dim; ++d) on_line = on_line && (d == c || row[d] == column[d]);
    if (on_line) sum += along(s, c, row, column[c]);
  }
  return sum;
}

/// The mean of the diagonal, as all threads of the block have it, or 1 for k = 0 (PatchSolver::regularise).
__device__ double shift_of(const SchurComplement& s, int size) {
  __shared__ double sums[threads];
  double sum = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < size; i += threads) sum += entry(s, i, i);
  sums[threadIdx.x] = sum;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  return size == 1 ? 1.0 : sums[0] / size;
}

/// Thread blocks of a matrix share its rows.
__global__ __launch_bounds__(threads) void assemble_schur_kernel(const SchurComplement* blocks,
                                                                 const Exchanged* matrices) {
  const SchurComplement s = blocks[blockIdx.y];
  const auto size = static_cast<int>(matrices[blockIdx.y].count);
  double* const matrix = matrices[blockIdx.y].matrix;
  wait_for_earlier_kernels();
  double shift = 0.0;
  if (s.null != nullptr) {
    shift = shift_of(s, size);
    if (blockIdx.x == 0 && threadIdx.x == 0) *s.shift = shift;
  }
  for (int i = static_cast<int>(blockIdx.x); i < size; i += static_cast<int>(gridDim.x)) {
    for (int j = static_cast<int>(threadIdx.x); j <= i; j += threads) {
      const double constant = s.null != nullptr ? shift * s.null[i] * s.null[j] : 0.0;
      matrix[static_cast<std::int64_t>(i) * size + j] = entry(s, i, j) + constant;
    }
  }
}

template <class T>
__global__ __launch_bounds__(threads) void write_inverses_kernel(const SchurComplement* blocks,
                                                                 const Exchanged* matrices, InverseForm form,
                                                                 T* tables) {
  const SchurComplement& s = blocks[blockIdx.y];
  const auto size = static_cast<int>(matrices[blockIdx.y].count);
  const double* const matrix = matrices[blockIdx.y].matrix;
  T* const to = tables + s.place;
  wait_for_earlier_kernels();
  const double inverse_shift = s.null != nullptr ? 1.0 / *s.shift : 0.0;
  const int numbers = inverse_numbers(form, size);
  for (int place = static_cast<int>(blockIdx.x * threads + threadIdx.x); place < numbers;
       place += static_cast<int>(gridDim.x) * threads) {
    const auto [i, j] = inverse_entry(form, size, place);
    double value = 0.0;
    if (i < size && j < size) {
      value = -matrix[static_cast<std::int64_t>(max(i, j)) * size + min(i, j)];
      if (s.null != nullptr) value -= inverse_shift * s.null[i] * s.null[j];
    }
    to[place] = static_cast<T>(value);
  }
}

/// Thread blocks of a matrix.
unsigned blocks_of(int most) {
  constexpr int rows = 4;
  return blocks_for(most, rows);
}

}  // namespace

void assemble_schur(const SchurComplement* blocks, const Exchanged* matrices, int number, int most, Stream stream) {
  launch("Schur complements", assemble_schur_kernel, dim3(blocks_of(most), number), threads, 0, stream, blocks,
         matrices);
}

template <class T>
void write_inverses(const SchurComplement* blocks, const Exchanged* matrices, int number, int most, InverseForm form,
                    T* tables, Stream stream) {
  launch("inverse Schur complements", write_inverses_kernel<T>, dim3(blocks_of(most), number), threads, 0, stream,
         blocks, matrices, form, tables);
}
template void write_inverses(const SchurComplement*, const Exchanged*, int, int, InverseForm, float*, Stream);
template void write_inverses(const SchurComplement*, const Exchanged*, int, int, InverseForm, double*, Stream);

}  // namespace solenoid::cuda
