/// \file
/// A thread block goes through its share of the cells, some of them at a time. Of a component it takes the coefficients
/// to shared memory, then turns one direction after the other from functions to points, a thread having a line of
/// functions in registers; at the points, sums are kept in registers until all cells are done.
///
/// Traffic per unknown: DRAM 8 bytes, and 24 bytes a cell of a flow for its place and the cells above. Per point and
/// direction n multiplications.

#include "engine/cuda/points/integrals.hpp"

#include "engine/cuda/kernels/block_sum.cuh"
#include "engine/cuda/kernels/point_values.cuh"
#include "engine/cuda/launch.hpp"

namespace solenoid::cuda {
namespace {

/// Values of a field at the points of a block's cells.
class CellFields {
 public:
  __device__ CellFields(const DiscreteField& field, double* shared)
      : field_(field), memory_(field.memory), shared_(shared) {
    for_all(memory_.table_size(), [&](int i) { shared_[i] = field_.tables[i]; });
    __syncthreads();
    for_all(memory_.cell_points(), [&](int i) {
      double weight = 1.0;
      for (int a = 0, rest = i; a < memory_.dim; ++a, rest /= memory_.points) {
        weight *= shared_[memory_.weight_at() + rest % memory_.points];
      }
      shared_[memory_.weights_at() + i] = weight;
    });
  }

  /// To the cells `first` and on.
  __device__ void move_to(std::int32_t first) {
    __syncthreads();
    first_ = first;
    for_all(memory_.cells, [&](int cell) {
      const std::int32_t here = min(first + cell, field_.cells - 1);
      double volume = 1.0;
      for (int a = 0; a < memory_.dim; ++a) volume *= width(field_.places, here, a);
      shared_[memory_.volume_at() + cell] = volume;
    });
    __syncthreads();
  }

  [[nodiscard]] __device__ bool has(int cell) const { return first_ + cell < field_.cells; }
  [[nodiscard]] __device__ std::int32_t number(int cell) const { return first_ + cell; }
  [[nodiscard]] __device__ double volume(int cell) const { return shared_[memory_.volume_at() + cell]; }
  /// Of a point, in a cell of size 1.
  [[nodiscard]] __device__ double weight(int point) const {
    return shared_[memory_.weights_at() + point / memory_.cells];
  }

  /// Component c at all points, times sqrt(volume). Component `velocities` is the scalar field. The next call
  /// overwrites it; all threads get here together.
  __device__ const double* values(int c) {
    __syncthreads();
    load(c);
    double* from = shared_ + memory_.first_at();
    double* to = shared_ + memory_.second_at();
    int inner = memory_.cells;
    for (int a = 0; a < memory_.dim; ++a) {
      const bool own = is_velocity(c) && a == c;
      int outer = 1;
      for (int b = a + 1; b < memory_.dim; ++b) outer *= rows(c, b);
      turn(shared_ + memory_.function_at(own), rows(c, a), inner, outer, from, to);
      inner *= memory_.points;
      double* const done = to;
      to = from;
      from = done;
    }
    return from;
  }

 private:
  [[nodiscard]] __device__ bool is_velocity(int c) const { return c < field_.velocities; }
  /// Functions of component c in direction a.
  [[nodiscard]] __device__ int rows(int c, int a) const { return is_velocity(c) && a == c ? memory_.n + 1 : memory_.n; }

  /// Coefficients of component c to the first array, [i_z][i_y][i_x][cell].
  __device__ void load(int c) {
    const int dim = memory_.dim;
    const int order = memory_.n - 1;
    const int record_numbers = (field_.velocities + 1) * power_of(memory_.n, dim);
    int count = memory_.cells;
    for (int a = 0; a < dim; ++a) count *= rows(c, a);
    for_all(count, [&](int i) {
      const int cell = i % memory_.cells;
      int rest = i / memory_.cells;
      double value = 0.0;
      if (has(cell)) {
        std::int32_t record = first_ + cell;
        int at = c * power_of(memory_.n, dim);
        for (int a = 0; a < dim; ++a) {
          const int index = rest % rows(c, a);
          rest /= rows(c, a);
          if (index == memory_.n) {  // the upper hat
            record = field_.upper[a][first_ + cell];
          } else {
            at += index * (is_velocity(c) ? velocity_stride(dim, order, c, a) : pressure_stride(order, a));
          }
        }
        value = field_.x[record_offset(record, record_numbers) + std::int64_t{interleave} * at];
      }
      shared_[memory_.first_at() + i] = value;
    });
    __syncthreads();
  }

  static __device__ int power_of(int base, int exponent) {
    int result = 1;
    for (int i = 0; i < exponent; ++i) result *= base;
    return result;
  }

  /// [outer][function][inner] -> [outer][point][inner]
  __device__ void turn(const double* functions, int count, int inner, int outer, const double* from, double* to) const {
    switch (count) {
      case 1: return turn<1>(functions, inner, outer, from, to);
      case 2: return turn<2>(functions, inner, outer, from, to);
      case 3: return turn<3>(functions, inner, outer, from, to);
      case 4: return turn<4>(functions, inner, outer, from, to);
      case 5: return turn<5>(functions, inner, outer, from, to);
      case 6: return turn<6>(functions, inner, outer, from, to);
      case 7: return turn<7>(functions, inner, outer, from, to);
      case 8: return turn<8>(functions, inner, outer, from, to);
      case 9: return turn<9>(functions, inner, outer, from, to);
      case 10: return turn<10>(functions, inner, outer, from, to);
      default: __trap();
    }
  }
  template <int count>
  __device__ void turn(const double* functions, int inner, int outer, const double* from, double* to) const {
    static_assert(count <= max_n + 1);
    for_all(outer * inner, [&](int line) {
      const int o = line / inner;
      const int i = line - o * inner;
      const double* const in = from + o * count * inner + i;
      double* const out = to + o * memory_.points * inner + i;
      double coefficient[count];
#pragma unroll
      for (int f = 0; f < count; ++f) coefficient[f] = in[f * inner];
      for (int q = 0; q < memory_.points; ++q) {
        const double* const at_point = functions + q * (memory_.n + 1);
        double sum = 0.0;
#pragma unroll
        for (int f = 0; f < count; ++f) sum += at_point[f] * coefficient[f];
        out[q * inner] = sum;
      }
    });
    __syncthreads();
  }

  const DiscreteField& field_;
  const IntegralMemory memory_;
  double* const shared_;
  std::int32_t first_ = 0;
};

/// The cells of a block's turns: every gridDim.x-th group of them.
template <class F>
__device__ void for_cells(const DiscreteField& field, const F& visit) {
  const std::int32_t step = field.memory.cells;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * step; first < field.cells;
       first += static_cast<std::int64_t>(gridDim.x) * step) {
    visit(static_cast<std::int32_t>(first));
  }
}

__global__ void __launch_bounds__(point_threads)
    integrate_difference_kernel(const __grid_constant__ DifferenceArguments arguments, DifferencePartial* partials) {
  extern __shared__ __align__(16) double shared[];
  wait_for_earlier_kernels();
  const DiscreteField& field = arguments.field;
  const IntegralMemory memory = field.memory;
  const PointValues<AnyPoints> points({memory.dim, memory.points, memory.cells, memory.value_count()}, shared);
  const double* const expected = shared + memory.third_at();
  DifferencePartial own{};
  CellFields cells(field, shared);
  for_cells(field, [&](std::int32_t first) {
    cells.move_to(first);
    const PointValues<AnyPoints>::Cells here{field.places, first, field.cells - 1};
    points.find_points(here, shared, memory.coordinates_at());
    __syncthreads();
    for (int c = 0; c < arguments.components; ++c) {
      const PointField& exact = arguments.exact[c];
      if (!exact.zero && !points.evaluate(exact, here, memory.fourth_at(), memory.third_at())) {
        *arguments.not_finite = 1;
      }
      const double* const value = cells.values(arguments.component + c);
      for_all(memory.value_count(), [&](int i) {
        const int cell = i % memory.cells;
        if (!cells.has(cell)) return;
        if (arguments.part != nullptr && arguments.part[cells.number(cell)] != arguments.of_part) return;
        const double volume = cells.volume(cell);
        const double e = value[i] / sqrt(volume) - (exact.zero ? 0.0 : expected[i]) - arguments.shift;
        const double weight = cells.weight(i) * volume;
        if (c == 0) own.measure += weight;
        own.sum += weight * e;
        own.square += weight * e * e;
      });
      __syncthreads();
    }
  });
  const DifferencePartial all{block_sum<point_threads>(own.measure), block_sum<point_threads>(own.sum),
                              block_sum<point_threads>(own.square)};
  if (threadIdx.x == 0) partials[blockIdx.x] = all;
}

/// Where a point of a cell is in an array of all points.
__device__ std::int64_t place_in(const LatticeArray& array, const std::int64_t (&at)[3]) {
  return (at[0] * array.count[1] + at[1]) * array.count[2] + at[2];
}

__global__ void __launch_bounds__(point_threads)
    velocity_at_kernel(const __grid_constant__ DiscreteField field, const __grid_constant__ CellMap map,
                       const __grid_constant__ LatticeArray array) {
  extern __shared__ __align__(16) double shared[];
  wait_for_earlier_kernels();
  const IntegralMemory memory = field.memory;
  CellFields cells(field, shared);
  for_cells(field, [&](std::int32_t first) {
    cells.move_to(first);
    for (int c = 0; c < memory.dim; ++c) {
      const double* const value = cells.values(c);
      for_all(memory.value_count(), [&](int i) {
        const int cell = i % memory.cells;
        if (!cells.has(cell)) return;
        std::int64_t at[3]{};
        for (int a = 0, rest = i / memory.cells; a < memory.dim; ++a, rest /= memory.points) {
          at[a] =
              static_cast<std::int64_t>(lattice(field.places, first + cell, a)) * memory.points + rest % memory.points;
        }
        double* const u = array.values + place_in(array, at) * memory.dim;
        const double w = value[i] / sqrt(cells.volume(cell));
        if (!map.sheared) {
          u[c] = w;
        } else {  // the same thread adds all components
          for (int b = 0; b < memory.dim; ++b) u[b] = (c == 0 ? 0.0 : u[b]) + map.image[b][c] * w;
        }
      });
    }
  });
}

/// A thread has a cell: the fluxes through both of its faces across a direction, from the first function of their hats.
__global__ void face_fluxes_kernel(const __grid_constant__ DiscreteField field, int a,
                                   const __grid_constant__ LatticeArray array) {
  wait_for_earlier_kernels();
  const auto cell = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (cell >= field.cells) return;
  const int dim = field.memory.dim;
  int block = 1;
  double volume = 1.0;
  std::int64_t at[3]{};
  for (int b = 0; b < dim; ++b) {
    block *= field.memory.n;
    volume *= width(field.places, cell, b);
    at[b] = lattice(field.places, cell, b);
  }
  // A hat is 1 / sqrt(volume) on its face.
  const double area = sqrt(volume) / width(field.places, cell, a);
  for (int upper = 0; upper < 2; ++upper) {
    const std::int32_t record = upper == 0 ? cell : field.upper[a][cell];
    const double hat = field.x[record_offset(record, (dim + 1) * block) + std::int64_t{interleave} * a * block];
    at[a] += upper;
    array.values[place_in(array, at)] = area * hat;
  }
}

}  // namespace

void velocity_at(const DiscreteField& field, const CellMap& map, const LatticeArray& array, int blocks, Stream stream) {
  constexpr int nan = 0xff;  // in each byte
  const std::size_t size = sizeof(double) * array.count[0] * array.count[1] * array.count[2] * field.memory.dim;
  check(cudaMemsetAsync(array.values, nan, size, stream), "velocity at points");
  launch("velocity at points", velocity_at_kernel, blocks, point_threads, field.memory.third_at() * sizeof(double),
         stream, field, map, array);
}

void face_fluxes(const DiscreteField& field, int a, const LatticeArray& array, Stream stream) {
  const std::size_t size = sizeof(double) * array.count[0] * array.count[1] * array.count[2];
  check(cudaMemsetAsync(array.values, 0, size, stream), "fluxes through faces");
  launch("fluxes through faces", face_fluxes_kernel, blocks_for(field.cells, point_threads), point_threads, 0, stream,
         field, a, array);
}

void integrate_difference(const DifferenceArguments& arguments, int blocks, DifferencePartial* partials,
                          Stream stream) {
  launch("integrate difference", integrate_difference_kernel, blocks, point_threads, arguments.numbers * sizeof(double),
         stream, arguments, partials);
}

}  // namespace solenoid::cuda
