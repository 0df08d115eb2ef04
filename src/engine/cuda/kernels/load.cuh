#pragma once
/// \file
/// b = (f, v) for every basis function v, by k + 2 Gauss points per direction.
///
/// The points of a block's cells are shared out; values and sums are in shared memory (LoadMemory). For one component
/// after the other: its program (point_values.cuh), then the directions are summed up, a thread having lines of
/// points; test functions come from the constant bank.
///
/// Traffic per unknown: DRAM 8 bytes; 12 bytes a cell for its place and, for a flow, 20 for what lies beside it. In
/// shared memory about (points / n)^dim times four accesses for the sums, and two or three for each instruction.

#include "engine/cuda/kernels/load.hpp"
#include "engine/cuda/kernels/point_values.cuh"
#include "engine/cuda/kernels/shape.cuh"

namespace solenoid::cuda {

/// `velocities`: 0, or dim.
template <int velocities, int dim, int order>
class LoadBlock {
 public:
  using S = Shape<dim, order, velocities>;
  static constexpr int n = S::n;
  static constexpr LoadMemory memory{dim, n};
  static constexpr int points = memory.points();
  static constexpr int cells = memory.cells;
  static constexpr int components = velocities > 0 ? dim : 1;

  __device__ LoadBlock(const LoadArguments& arguments, double* shared)
      : arguments_(arguments),
        shared_(shared),
        values_({}, shared),
        first_(static_cast<std::int32_t>(blockIdx.x) * cells) {}

  __device__ void load() const {
    prepare();
    component<0>();
    if constexpr (components > 1) component<1>();
    if constexpr (components > 2) component<2>();
  }

  static void launch_load(const LoadArguments& arguments, Stream stream);

 private:
  using Points = FixedPoints<dim, points, cells>;

  __device__ void prepare() const {
    const auto& [places, first, last] = block_cells();
    for_all(cells, [&](int cell) {
      double product = 1.0;
#pragma unroll
      for (int a = 0; a < dim; ++a) product *= width(places, min(first + cell, last), a);
      shared_[memory.scale_at() + cell] = sqrt(product);
    });
    values_.find_points(block_cells(), arguments_.tables.point, memory.coordinates_at());
    __syncthreads();
  }

  __device__ typename PointValues<Points>::Cells block_cells() const {
    return {arguments_.places, first_, arguments_.topology.cells - 1};
  }

  template <int c>
  __device__ void component() const {
    const PointField& field = arguments_.component[c];
    if (field.zero) return;
    if (!values_.evaluate(field, block_cells(), memory.free_at(), memory.values_at())) *arguments_.not_finite = 1;
    __syncthreads();
    integrate<c>();
  }

  // --- integrals -----------------------------------------------------------------------------------------------------

  /// Test functions of component c in direction a.
  template <int c, int a>
  static constexpr bool own = velocities > 0 && a == c;
  template <int c, int a>
  static constexpr int rows = own<c, a> ? n + 1 : n;
  /// Functions of the directions below a, and points of those above.
  template <int c, int a>
  static constexpr int inner = a == 0   ? 1
                               : a == 1 ? rows<c, 0>
                                        : rows<c, 0>* rows<c, 1>;
  template <int a>
  static constexpr int outer = power(points, dim - 1 - a);

  /// visit(line, sums) for this thread's lines of points in direction a, which are [outer][point][inner][cell], and
  /// their integrals against the test functions.
  template <int c, int a, class F>
  __device__ void contract(const double* from, const F& visit) const {
    constexpr int line_size = inner<c, a> * cells;
    for_all(outer<a> * line_size, [&](int line) {
      const double* const first = from + line / line_size * (points * line_size) + line % line_size;
      double value[points];
#pragma unroll
      for (int q = 0; q < points; ++q) value[q] = first[q * line_size];
      double sum[rows<c, a>];
#pragma unroll
      for (int i = 0; i < rows<c, a>; ++i) {
        sum[i] = 0.0;
#pragma unroll
        for (int q = 0; q < points; ++q) {
          sum[i] += (own<c, a> ? arguments_.tables.continuous[i][q] : arguments_.tables.legendre[i][q]) * value[q];
        }
      }
      visit(line, sum);
    });
  }
  /// To [outer][function][inner][cell].
  template <int c, int a>
  __device__ void contract(const double* from, double* to) const {
    constexpr int line_size = inner<c, a> * cells;
    contract<c, a>(from, [&](int line, const auto& sum) {
      double* const first = to + line / line_size * (rows<c, a> * line_size) + line % line_size;
#pragma unroll
      for (int i = 0; i < rows<c, a>; ++i) first[i * line_size] = sum[i];
    });
    __syncthreads();
  }

  template <int c>
  __device__ void integrate() const {
    double* const values = shared_ + memory.values_at();
    double* const other = shared_ + memory.free_at();
    contract<c, 0>(values, other);
    if constexpr (dim == 3) contract<c, 1>(other, values);
    contract<c, dim - 1>(dim == 3 ? values : other, [&](int line, const auto& sum) {
      const std::int32_t cell = first_ + line % cells;
      if (cell >= arguments_.topology.cells) return;
      const double scale = shared_[memory.scale_at() + line % cells];
      const int i = line / cells % rows<c, 0>;
      const int j = line / cells / rows<c, 0>;
#pragma unroll
      for (int k = 0; k < rows<c, dim - 1>; ++k) add<c>(cell, i, dim == 3 ? j : k, dim == 3 ? k : 0, scale * sum[k]);
    });
    __syncthreads();
  }
  /// The integral against a basis function, to where its unknown lies. Two cells share a hat: the sum of two numbers
  /// has the same bits in either order.
  template <int c>
  __device__ void add(std::int32_t cell, int i, int j, int k, double value) const {
    const CellTopology& topology = arguments_.topology;
    const int index[3]{i, j, k};
    const bool upper = velocities > 0 && index[c] == n;
    int offset = c * S::block;
#pragma unroll
    for (int a = 0; a < dim; ++a) {
      constexpr bool flow = velocities > 0;
      const int stride = flow ? velocity_stride(dim, order, c, a) : pressure_stride(order, a);
      offset += (upper && a == c ? 0 : index[a]) * stride;
    }
    double* const b = arguments_.b + offset * interleave;
    if (velocities == 0 || (index[c] != 0 && !upper)) {
      __stcs(b + S::offset(cell), value);
      return;
    }
    const int side = 2 * c + (upper ? 1 : 0);
    if (normal_fixed(topology.face[side][cell])) return;
    const std::int32_t record = upper ? topology.neighbour[side][cell] : cell;
    if (record != topology.null) atomicAdd(b + S::offset(record), value);
  }

  const LoadArguments& arguments_;
  double* const shared_;
  const PointValues<Points> values_;
  const std::int32_t first_;
};

template <int velocities, int dim, int order>
__global__ void __launch_bounds__(point_threads, 3) load_kernel(const __grid_constant__ LoadArguments arguments) {
  extern __shared__ __align__(16) unsigned char shared[];
  wait_for_earlier_kernels();
  LoadBlock<velocities, dim, order>(arguments, reinterpret_cast<double*>(shared)).load();
}

template <int velocities, int dim, int order>
void LoadBlock<velocities, dim, order>::launch_load(const LoadArguments& arguments, Stream stream) {
  launch("load", load_kernel<velocities, dim, order>, blocks_for(arguments.topology.cells, cells), point_threads,
         arguments.numbers * sizeof(double), stream, arguments);
}

}  // namespace solenoid::cuda
