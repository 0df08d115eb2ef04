#pragma once
/// \file
/// Values of fields at the quadrature points of a thread block's cells: carries out their programs
/// (points/point_program.hpp) in shared memory, all threads of the block together.

#include "engine/cuda/kernels/points.hpp"

namespace solenoid::cuda {

inline constexpr int point_threads = 256;

template <class F>
__device__ void for_all(int count, const F& visit) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += point_threads) visit(i);
}

/// Lattice coordinate of a cell in a direction, and how wide the cell is there.
__device__ inline std::int32_t lattice(const CellPlaces& places, std::int32_t cell, int a) {
  return __ldg(&places.position[cell][a]);
}
__device__ inline double width(const CellPlaces& places, std::int32_t cell, int a) {
  return __ldg(&places.width[a][lattice(places, cell, a)]);
}

template <int dim>
struct CellWidths {
  double inverse[dim];
  double volume = 1.0;

  __device__ CellWidths(const CellPlaces& places, std::int32_t cell) {
#pragma unroll
    for (int a = 0; a < dim; ++a) {
      const double h = width(places, cell, a);
      inverse[a] = 1.0 / h;
      volume *= h;
    }
  }
};

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

/// Gauss points per direction, and cells of a block, known to the compiler;
template <int dim_, int points_, int cells_>
struct FixedPoints {
  static constexpr int dim = dim_;
  static constexpr int points = points_;
  static constexpr int cells = cells_;
  static constexpr int count = cells * power(points, dim);
  /// Points of a thread that share the reading of an instruction.
  static constexpr int together = count > 2 * point_threads ? 4 : count > point_threads ? 2 : 1;
};
/// or not.
struct AnyPoints {
  int dim;
  int points;
  int cells;
  int count;
  static constexpr int together = 2;
};

template <class Points>
class PointValues {
 public:
  __device__ PointValues(const Points& rule, double* shared) : rule_(rule), shared_(shared) {}

  /// Of which cells points are: the cells `first` and on; those behind the last cell stand for the last one.
  struct Cells {
    const CellPlaces& places;
    std::int32_t first;
    std::int32_t last;
  };

  /// Coordinates of the points of cells, in an array [direction][point][cell].
  __device__ void find_points(const Cells& cells, const double* points, int coordinates_at) const {
    const auto& [places, first, last] = cells;
    for_all(rule_.dim * rule_.points * rule_.cells, [&](int i) {
      const int q = i / rule_.cells % rule_.points;
      const int a = i / rule_.cells / rule_.points;
      const int at = lattice(places, min(first + i % rule_.cells, last), a);
      shared_[coordinates_at + i] = places.plane[a][at] + places.width[a][at] * points[q];
    });
  }

  /// Values of a field at all points of cells, in an array [q_z][q_y][q_x][cell]; programs have the memory from
  /// `free_at` on. False in threads that met one that is not finite. The caller synchronises the block.
  __device__ bool evaluate(const PointField& field, const Cells& cells, int free_at, int values_at) const {
    return field.array.values != nullptr ? interpolate(field.array, cells, values_at)
                                         : carry_out(field, free_at, values_at);
  }

 private:
  using Op = Program::Op;

  __device__ bool interpolate(const ArrayField& array, const Cells& cells, int values_at) const {
    bool finite = true;
    for_all(rule_.count, [&](int i) {
      const Point at = point(every(), i);
      const std::int32_t cell = min(cells.first + at.cell, cells.last);
      std::int64_t first[3]{};
      const double* factors[3];
      int points[3]{1, 1, 1};
#pragma unroll
      for (int a = 0; a < 3; ++a) {
        factors[a] = array.factors + at.q[a] * array.points;
        if (a >= rule_.dim) continue;
        first[a] = static_cast<std::int64_t>(lattice(cells.places, cell, a)) * array.points;
        points[a] = array.points;
      }
      double sum = 0.0;
      for (int x = 0; x < points[0]; ++x) {
        for (int y = 0; y < points[1]; ++y) {
          const double* const line =
              array.values +
              (((first[0] + x) * array.count[1] + first[1] + y) * array.count[2] + first[2]) * array.components;
          double of_line = rule_.dim == 3 ? 0.0 : __ldg(line);
          for (int z = 0; rule_.dim == 3 && z < points[2]; ++z) {
            of_line += __ldg(factors[2] + z) * __ldg(line + z * array.components);
          }
          sum += __ldg(factors[0] + x) * (__ldg(factors[1] + y) * of_line);
        }
      }
      finite = finite && isfinite(sum);
      shared_[values_at + i] = sum;
    });
    return finite;
  }
  __device__ bool carry_out(const PointField& field, int free_at, int values_at) const {
    for_all(field.constant_count, [&](int i) { shared_[free_at + i] = field.constants[i]; });
    __syncthreads();
    for (int i = 0; i < field.partial; ++i) {
      const PointInstruction instruction = field.instructions[i];
      const int axes = instruction.result.axes;
      int count = rule_.cells;
#pragma unroll
      for (int a = 0; a < 3; ++a) count *= a < rule_.dim && (axes >> a & 1) != 0 ? rule_.points : 1;
      for_all(count, [&](int k) {
        const Point one[1]{point(axes, k)};
        carry_out(instruction, one);
      });
      __syncthreads();
    }
    constexpr int together = Points::together;
    bool finite = true;
    for (int begin = static_cast<int>(threadIdx.x); begin < rule_.count; begin += together * point_threads) {
      // Instead of points beyond the last one the first of them once more: nobody else's.
      Point own[together];
#pragma unroll
      for (int p = 0; p < together; ++p) {
        const int i = begin + p * point_threads;
        own[p] = point(every(), i < rule_.count ? i : begin);
      }
      for (int i = field.partial; i < field.count; ++i) carry_out(field.instructions[i], own);
#pragma unroll
      for (int p = 0; p < together; ++p) {
        const double value = shared_[field.result.at + place(field.result.axes, own[p])];
        finite = finite && isfinite(value);
        shared_[values_at + place(every(), own[p])] = value;
      }
    }
    return finite;
  }

  /// A point of one of the block's cells.
  struct Point {
    int cell;
    int q[3];
  };
  [[nodiscard]] __device__ int every() const { return (1 << rule_.dim) - 1; }
  /// Number i in an array that depends on these coordinates.
  __device__ Point point(int axes, int i) const {
    Point point{i % rule_.cells, {}};
    int rest = i / rule_.cells;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      if (a >= rule_.dim || (axes >> a & 1) == 0) continue;
      point.q[a] = rest % rule_.points;
      rest /= rule_.points;
    }
    return point;
  }
  /// Place in an array that depends on these coordinates.
  __device__ int place(int axes, const Point& point) const {
    if (axes == 0) return 0;
    int at = 0;
#pragma unroll
    for (int a = 2; a >= 0; --a) {
      if (a < rule_.dim && (axes >> a & 1) != 0) at = at * rule_.points + point.q[a];
    }
    return at * rule_.cells + point.cell;
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

  const Points rule_;
  double* const shared_;
};

}  // namespace solenoid::cuda
