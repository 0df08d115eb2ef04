#include "engine/cuda/kernels/convection.hpp"
#include "engine/cuda/launch.hpp"
#include "mesh/record.hpp"

namespace solenoid::cuda {
namespace {

constexpr int most_points = convection_points(max_n - 1);  // of a face in each direction

/// A thread block has a face, a thread a point, then a hat.
__global__ void add_outflow_kernel(const __grid_constant__ ConvectionOutflow hats, const OpenFace* faces) {
  __shared__ double flux[most_points * most_points];
  wait_for_earlier_kernels();
  const int n = hats.order + 1;
  const int points = convection_points(hats.order);
  const int half_points = (points + 1) / 2;
  const auto [record, side] = faces[blockIdx.x];
  const int c = side / 2;
  const double outward = side % 2 == 1 ? 1.0 : -1.0;
  const std::int64_t first =
      record_offset(record, record_size(hats.dim, hats.order)) + c * power(n, hats.dim) * interleave;
  // psi_i at a point, or times its weight
  const auto psi = [&](const double(*table)[max_n + 1], int i, int q) {
    return q < half_points ? table[q][i] : (i % 2 == 0 ? 1.0 : -1.0) * table[points - 1 - q][i];
  };
  const int rows = hats.dim == 3 ? n : 1;
  const int lines = hats.dim == 3 ? points : 1;
  for (int q = static_cast<int>(threadIdx.x); q < lines * points; q += static_cast<int>(blockDim.x)) {
    double w = 0.0;
    for (int j = 0; j < rows; ++j) {
      double line = 0.0;
      for (int i = 0; i < n; ++i)
        line += psi(hats.tables.value[ConvectionTables::O], i, q % points) * hats.u[first + (i + n * j) * interleave];
      w += hats.dim == 3 ? psi(hats.tables.value[ConvectionTables::O], j, q / points) * line : line;
    }
    flux[q] = outward * w > 0.0 ? w * (outward * w) : 0.0;
  }
  __syncthreads();
  for (int hat = static_cast<int>(threadIdx.x); hat < rows * n; hat += static_cast<int>(blockDim.x)) {
    double sum = 0.0;
    for (int r = 0; r < lines; ++r) {
      double line = 0.0;
      for (int q = 0; q < points; ++q)
        line += psi(hats.tables.test[ConvectionTables::O], hat % n, q) * flux[r * points + q];
      sum += hats.dim == 3 ? psi(hats.tables.test[ConvectionTables::O], hat / n, r) * line : line;
    }
    hats.y[first + hat * interleave] += hats.tables.scale[c] * sum;
  }
}

}  // namespace

void add_outflow(const ConvectionOutflow& hats, const OpenFace* faces, std::int32_t count, Stream stream) {
  constexpr int threads = 128;
  launch("convection: outflow", add_outflow_kernel, static_cast<unsigned>(count), threads, 0, stream, hats, faces);
}

}  // namespace solenoid::cuda
