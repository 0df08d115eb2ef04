#pragma once
/// \file
/// b = (f, v) for every basis function v, by k + 2 Gauss points per direction.
///
/// The points of a block's cells are shared out; values and sums are in shared memory (LoadMemory). For one component
/// after the other: its program (load/point_program.hpp), then the directions are summed up, a thread having lines of
/// points; test functions come from the constant bank.
///
/// Traffic per unknown: DRAM 8 bytes; 12 bytes a cell for its place and, for a flow, 20 for what lies beside it. In
/// shared memory about (points / n)^dim times four accesses for the sums, and two or three for each instruction.

#include "engine/cuda/kernels/load.hpp"
#include "engine/cuda/kernels/shape.cuh"

namespace solenoid::cuda {

inline constexpr int load_threads = 256;

__device__ __noinline__ inline double raise(double a, double b) { return pow(a, b); }

__device__ __noinline__ inline double call(Program::Function function, double a, double b) {
  using Function = Program::Function;
  switch (function) {
    case Function::sin: return sin(a);
    case Function::cos: return cos(a);
    case Function::tan: return tan(a);
    case Function::asin: return asin(a);
    case Function::acos: return acos(a);
    case Function::atan: return atan(a);
    case Function::sinh: return sinh(a);
    case Function::cosh: return cosh(a);
    case Function::tanh: return tanh(a);
    case Function::asinh: return asinh(a);
    case Function::acosh: return acosh(a);
    case Function::atanh: return atanh(a);
    case Function::exp: return exp(a);
    case Function::log: return log(a);
    case Function::log2: return log2(a);
    case Function::log10: return log10(a);
    case Function::sqrt: return sqrt(a);
    case Function::abs: return fabs(a);
    case Function::rint: return rint(a);
    case Function::sign: return a < 0.0 ? -1.0 : a > 0.0 ? 1.0 : 0.0;
    case Function::plus: return a;
    case Function::minus: return -a;
    case Function::atan2: return atan2(a, b);
    case Function::min: return b < a ? b : a;
    case Function::max: return a < b ? b : a;
    case Function::other: break;
  }
  return nan("");
}

/// `velocities`: 0, or dim.
template <int velocities, int dim, int order>
class LoadBlock {
 public:
  using S = Shape<dim, order, velocities>;
  static constexpr int n = S::n;
  static constexpr LoadMemory memory{dim, n};
  static constexpr int points = memory.points();
  static constexpr int cells = memory.cells;
  static constexpr int every = (1 << dim) - 1;
  static constexpr int components = velocities > 0 ? dim : 1;

  __device__ LoadBlock(const LoadArguments& arguments, double* shared)
      : arguments_(arguments), shared_(shared), first_(static_cast<std::int32_t>(blockIdx.x) * cells) {}

  __device__ void load() const {
    prepare();
    component<0>();
    if constexpr (components > 1) component<1>();
    if constexpr (components > 2) component<2>();
  }

  static void launch_load(const LoadArguments& arguments, Stream stream);

 private:
  using Op = Program::Op;

  template <class F>
  static __device__ void for_all(int count, const F& visit) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += load_threads) visit(i);
  }

  __device__ void prepare() const {
    const std::int32_t last = arguments_.topology.cells - 1;
    const auto lattice = [&](int cell, int a) { return __ldg(&arguments_.position[min(first_ + cell, last)][a]); };
    for_all(cells, [&](int cell) {
      double product = 1.0;
#pragma unroll
      for (int a = 0; a < dim; ++a) product *= arguments_.width[a][lattice(cell, a)];
      shared_[memory.scale_at() + cell] = sqrt(product);
    });
    for_all(dim * points * cells, [&](int i) {
      const int q = i / cells % points;
      const int a = i / cells / points;
      const int at = lattice(i % cells, a);
      shared_[memory.coordinates_at() + i] =
          arguments_.plane[a][at] + arguments_.width[a][at] * arguments_.tables.point[q];
    });
    __syncthreads();
  }

  template <int c>
  __device__ void component() const {
    const LoadComponent& component = arguments_.component[c];
    if (component.zero) return;
    evaluate(component);
    integrate<c>();
  }

  // --- values at points ----------------------------------------------------------------------------------------------

  /// A point of one of the block's cells.
  struct Point {
    int cell;
    int q[3];
  };
  /// Number i in an array that depends on these coordinates.
  static __device__ Point point(int axes, int i) {
    Point point{i % cells, {}};
    int rest = i / cells;
#pragma unroll
    for (int a = 0; a < dim; ++a) {
      if ((axes >> a & 1) == 0) continue;
      point.q[a] = rest % points;
      rest /= points;
    }
    return point;
  }
  /// Place in an array that depends on these coordinates.
  static __device__ int place(int axes, const Point& point) {
    if (axes == 0) return 0;
    int at = 0;
#pragma unroll
    for (int a = dim - 1; a >= 0; --a) {
      if ((axes >> a & 1) != 0) at = at * points + point.q[a];
    }
    return at * cells + point.cell;
  }

  /// One instruction at some points.
  template <int count>
  __device__ void carry_out(const PointInstruction& instruction, const Point (&points)[count]) const {
    const auto for_points = [](const auto& visit) {
#pragma unroll
      for (int p = 0; p < count; ++p) visit(p);
    };
    double operand[3][count];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (i < instruction.operands) {
        const PointOperand from = instruction.operand[i];
        for_points([&](int p) { operand[i][p] = shared_[from.at + place(from.axes, points[p])]; });
      }
    }
    double result[count];
    const auto binary = [&](const auto& f) { for_points([&](int p) { result[p] = f(operand[0][p], operand[1][p]); }); };
    switch (instruction.op) {
      case Op::less_equal: binary([](double a, double b) { return a <= b ? 1.0 : 0.0; }); break;
      case Op::greater_equal: binary([](double a, double b) { return a >= b ? 1.0 : 0.0; }); break;
      case Op::not_equal: binary([](double a, double b) { return a != b ? 1.0 : 0.0; }); break;
      case Op::equal: binary([](double a, double b) { return a == b ? 1.0 : 0.0; }); break;
      case Op::less: binary([](double a, double b) { return a < b ? 1.0 : 0.0; }); break;
      case Op::greater: binary([](double a, double b) { return a > b ? 1.0 : 0.0; }); break;
      case Op::add: binary([](double a, double b) { return a + b; }); break;
      case Op::subtract: binary([](double a, double b) { return a - b; }); break;
      case Op::multiply: binary([](double a, double b) { return a * b; }); break;
      case Op::divide: binary([](double a, double b) { return a / b; }); break;
      case Op::power: binary([](double a, double b) { return raise(a, b); }); break;
      case Op::both: binary([](double a, double b) { return a != 0.0 && b != 0.0 ? 1.0 : 0.0; }); break;
      case Op::either: binary([](double a, double b) { return a != 0.0 || b != 0.0 ? 1.0 : 0.0; }); break;
      case Op::select:
        for_points([&](int p) { result[p] = operand[0][p] != 0.0 ? operand[1][p] : operand[2][p]; });
        break;
      case Op::call_one: for_points([&](int p) { result[p] = call(instruction.function, operand[0][p], 0.0); }); break;
      case Op::call_two: binary([&](double a, double b) { return call(instruction.function, a, b); }); break;
      case Op::constant:
      case Op::coordinate: return;
    }
    const PointOperand to = instruction.result;
    for_points([&](int p) { shared_[to.at + place(to.axes, points[p])] = result[p]; });
  }

  /// Values of a component at all points.
  __device__ void evaluate(const LoadComponent& component) const {
    for_all(component.constant_count, [&](int i) { shared_[memory.free_at() + i] = component.constants[i]; });
    __syncthreads();
    for (int i = 0; i < component.partial; ++i) {
      const PointInstruction instruction = component.instructions[i];
      const int axes = instruction.result.axes;
      int count = cells;
#pragma unroll
      for (int a = 0; a < dim; ++a) count *= (axes >> a & 1) != 0 ? points : 1;
      for_all(count, [&](int k) {
        const Point one[1]{point(axes, k)};
        carry_out(instruction, one);
      });
      __syncthreads();
    }
    // Points of a thread that share the reading of an instruction.
    constexpr int together = memory.value_count() > 2 * load_threads ? 4 : memory.value_count() > load_threads ? 2 : 1;
    bool finite = true;
    for (int begin = static_cast<int>(threadIdx.x); begin < memory.value_count(); begin += together * load_threads) {
      // Instead of points beyond the last one the first of them once more: nobody else's.
      Point own[together];
#pragma unroll
      for (int p = 0; p < together; ++p) {
        const int i = begin + p * load_threads;
        own[p] = point(every, i < memory.value_count() ? i : begin);
      }
      for (int i = component.partial; i < component.count; ++i) carry_out(component.instructions[i], own);
#pragma unroll
      for (int p = 0; p < together; ++p) {
        const double value = shared_[component.result.at + place(component.result.axes, own[p])];
        finite = finite && isfinite(value);
        shared_[memory.values_at() + place(every, own[p])] = value;
      }
    }
    if (!finite) *arguments_.not_finite = 1;
    __syncthreads();
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
  const std::int32_t first_;
};

template <int velocities, int dim, int order>
__global__ void __launch_bounds__(load_threads, 3) load_kernel(const __grid_constant__ LoadArguments arguments) {
  extern __shared__ __align__(16) unsigned char shared[];
  wait_for_earlier_kernels();
  LoadBlock<velocities, dim, order>(arguments, reinterpret_cast<double*>(shared)).load();
}

template <int velocities, int dim, int order>
void LoadBlock<velocities, dim, order>::launch_load(const LoadArguments& arguments, Stream stream) {
  launch("load", load_kernel<velocities, dim, order>, blocks_for(arguments.topology.cells, cells), load_threads,
         arguments.numbers * sizeof(double), stream, arguments);
}

}  // namespace solenoid::cuda
