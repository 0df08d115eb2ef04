/// \file
/// A thread block goes through faces on one body. Of the cell it takes the coefficients to shared memory, and those of
/// the cells behind its sides; a thread has points in the cell and on its sides, where it adds up all functions. Sums
/// are kept in registers until all faces are done.
///
/// Traffic per face: the records of 2 dim + 1 cells and of those above them. Per point and component
/// (k + 2) (k + 1)^(dim - 1) values of functions, with slopes twice that: nothing is factorised, as cells on the
/// boundary are few.

#include "engine/cuda/kernels/block_sum.cuh"
#include "engine/cuda/launch.hpp"
#include "engine/cuda/points/boundary_forces.hpp"

namespace solenoid::cuda {
namespace {

constexpr int force_threads = 96;

/// Harmonic, as face_viscosity() in level/viscosity_points.hpp.
__device__ double viscosity_between(double a, double b) { return 2.0 / (1.0 / a + 1.0 / b); }

/// The flow at the points of one cell and its sides.
class CellOnBoundary {
 public:
  __device__ CellOnBoundary(const BoundaryForcesArguments& arguments, const BoundaryFace& face, double* shared)
      : arguments_(arguments), memory_(arguments.memory), tables_(arguments.memory.tables), shared_(shared), at_(face) {
    for (int a = 0; a < memory_.dim; ++a) {
      widths_[a] = width(face.cell, a);
      corner_[a] = __ldg(&arguments.places.plane[a][lattice(face.cell, a)]);
    }
  }

  /// What points need of coefficients. All threads get here together.
  __device__ void load() const {
    const bool rows = kind(at_.side) != Face::outflow;
    load_velocity(arguments_.flow, at_.cell, memory_.flow_at());
    const std::int64_t record = record_offset(at_.cell, record_numbers());
    for (int i = thread(); i < memory_.pressure(); i += force_threads) {
      const std::int64_t place = memory_.dim * memory_.pressure() + i;
      shared_[memory_.pressure_at() + i] = arguments_.flow[record + interleave * place];
    }
    if (!rows) return;
    if (arguments_.acceleration != nullptr) load_velocity(arguments_.acceleration, at_.cell, memory_.change_at());
    for (int side = 0; side < 2 * memory_.dim; ++side) {
      if (kind(side) == Face::interior) load_velocity(arguments_.flow, neighbour(side), memory_.behind_at(side));
    }
  }

  /// Adds what this thread's points count.
  __device__ void add_to(ForceSums& sums) const {
    const bool with_rows = kind(at_.side) != Face::outflow;
    const int inside = memory_.points_inside();
    const int on_side = memory_.points_on_side();
    Rows rows{};
    const int begin = with_rows ? 0 : inside + at_.side * on_side;
    const int end = with_rows ? inside + 2 * memory_.dim * on_side : begin + on_side;
    for (int i = begin + thread(); i < end; i += force_threads) {
      const int side = i < inside ? -1 : (i - inside) / on_side;
      const int q = i < inside ? i : (i - inside) % on_side;
      int place[3];
      find_point(side, q, place);
      Point xi{};
      Point box{};
      double weight = side < 0 ? arguments_.measure : arguments_.areas[side / 2];
      for (int a = 0; a < memory_.dim; ++a) {
        xi[a] = shared_[place[a]];
        box[a] = xi[a] * widths_[a] + corner_[a];
        weight *= shared_[tables_.weight_at() + place[a]];
        if (side < 0 || a != side / 2) weight *= widths_[a];
      }
      const FlowThere here = flow(memory_.flow_at(), widths_, place, side < 0 || side == at_.side);
      Tested tested;
      if (side < 0) {
        tested = arguments_.tested.inside(along(), here, inside_there(q, place));
      } else {
        const SideThere there = side_there(side, q, place);
        if (side == at_.side) arguments_.tested.add(sums, side, here, there, weight, arguments_.tested.lever(box));
        tested = arguments_.tested.on(side, along(), side / 2 == at_.side / 2, here, there);
      }
      if (with_rows) arguments_.tested.add(rows, at_.side, tested, weight, xi, widths_);
    }
    if (with_rows) arguments_.tested.add(sums, at_.side, rows, corner_, widths_);
  }

 private:
  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  [[nodiscard]] __device__ int record_numbers() const { return (memory_.dim + 1) * memory_.pressure(); }
  [[nodiscard]] __device__ std::int32_t lattice(std::int32_t cell, int a) const {
    return __ldg(&arguments_.places.position[cell][a]);
  }
  [[nodiscard]] __device__ double width(std::int32_t cell, int a) const {
    return __ldg(&arguments_.places.width[a][lattice(cell, a)]);
  }
  [[nodiscard]] __device__ Face kind(int side) const { return arguments_.face[side][at_.cell]; }
  [[nodiscard]] __device__ std::int32_t neighbour(int side) const { return arguments_.neighbour[side][at_.cell]; }
  /// At point q in the cell, or on an inner or outer side of it.
  [[nodiscard]] __device__ double viscosity(int side, int q) const {
    if (arguments_.viscosity_at != nullptr) {
      const int before = side < 0 ? 0 : memory_.points_inside() + side * memory_.points_on_side();
      return arguments_.viscosity_at[static_cast<std::int64_t>(at_.number) * memory_.points() + before + q];
    }
    const double nu = of_cell(at_.cell);
    return side < 0 || kind(side) != Face::interior ? nu : viscosity_between(nu, of_cell(neighbour(side)));
  }
  [[nodiscard]] __device__ double of_cell(std::int32_t cell) const {
    const ViscosityOfCells& nu = arguments_.viscosity;
    return nu.of == nullptr ? nu.number : nu.of[cell];
  }
  /// The edge that rows are tested along.
  [[nodiscard]] __device__ const Point& along() const { return arguments_.tested.edge[at_.side / 2]; }

  /// Functions of component c in direction a; c == dim: the pressure.
  [[nodiscard]] __device__ int functions(int c, int a) const {
    return a >= memory_.dim ? 1 : a == c ? tables_.n + 1 : tables_.n;
  }

  __device__ void load_velocity(const double* x, std::int32_t cell, int to) const {
    const int order = tables_.n - 1;
    for (int i = thread(); i < memory_.velocity(); i += force_threads) {
      const int c = i / memory_.component();
      int rest = i % memory_.component();
      std::int32_t record = cell;
      int place = c * memory_.pressure();
      for (int a = 0; a < memory_.dim; ++a) {
        const int index = rest % functions(c, a);
        rest /= functions(c, a);
        if (index == tables_.n) {  // the upper hat
          record = arguments_.neighbour[2 * c + 1][cell];
        } else {
          place += index * velocity_stride(memory_.dim, order, c, a);
        }
      }
      shared_[to + i] = x[record_offset(record, record_numbers()) + std::int64_t{interleave} * place];
    }
  }

  /// Of point q, in the cell or on a side of it.
  __device__ void find_point(int side, int q, int (&place)[3]) const {
    for (int a = 0; a < 3; ++a) {
      if (a >= memory_.dim) {
        place[a] = tables_.beyond();
      } else if (side >= 0 && a == side / 2) {
        place[a] = tables_.end(side % 2);
      } else {
        place[a] = q % tables_.points;
        q /= tables_.points;
      }
    }
  }

  /// Of a component with coefficients there, in a cell of width 1: its value and slopes.
  struct Component {
    double value = 0.0;
    double slope[3]{};
  };
  [[nodiscard]] __device__ Component component(const double* x, int c, const int (&place)[3], bool slopes) const {
    const double* f[3];
    const double* g[3];
    int count[3];
    for (int a = 0; a < 3; ++a) {
      f[a] = shared_ + tables_.function_at(place[a], a == c, false);
      g[a] = shared_ + tables_.function_at(place[a], a == c, true);
      count[a] = functions(c, a);
    }
    Component sum;
    for (int l = 0; l < count[2]; ++l) {
      double plane = 0.0;
      double along_x = 0.0;
      double along_y = 0.0;
      for (int j = 0; j < count[1]; ++j, x += count[0]) {
        double line = 0.0;
        double slope = 0.0;
        for (int i = 0; i < count[0]; ++i) {
          line += f[0][i] * x[i];
          if (slopes) slope += g[0][i] * x[i];
        }
        plane += f[1][j] * line;
        along_x += f[1][j] * slope;
        along_y += g[1][j] * line;
      }
      sum.value += f[2][l] * plane;
      sum.slope[0] += f[2][l] * along_x;
      sum.slope[1] += f[2][l] * along_y;
      sum.slope[2] += g[2][l] * plane;
    }
    return sum;
  }

  /// Functions are scaled by it (element/basis.hpp).
  [[nodiscard]] __device__ double scale(const Point& widths) const {
    double volume = 1.0;
    for (int a = 0; a < memory_.dim; ++a) volume *= widths[a];
    return 1.0 / sqrt(volume);
  }

  [[nodiscard]] __device__ Point mapped(const Point& w) const {
    if (!arguments_.map.sheared) return w;
    Point u{};
    for (int i = 0; i < 3; ++i) {
      for (int c = 0; c < 3; ++c) u[i] += arguments_.map.image[i][c] * w[c];
    }
    return u;
  }

  [[nodiscard]] __device__ FlowThere flow(int from, const Point& widths, const int (&place)[3],
                                          bool with_pressure) const {
    const double factor = scale(widths);
    FlowThere result{};
    Matrix3 gradient{};  // of the box
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      if (c == memory_.dim) break;
      const Component w = component(shared_ + from + c * memory_.component(), c, place, true);
      result.u[c] = factor * w.value;
#pragma unroll
      for (int a = 0; a < 3; ++a) {
        if (a < memory_.dim) gradient[c][a] = factor / widths[a] * w.slope[a];
      }
    }
    if (with_pressure) {
      result.p = factor * component(shared_ + memory_.pressure_at(), memory_.dim, place, false).value;
    }
    result.u = mapped(result.u);
    if (!arguments_.map.sheared) {
      result.gradient = gradient;
      return result;
    }
    for (int j = 0; j < 3; ++j) {
      Point pulled{};  // column j of W F^-1
      for (int c = 0; c < 3; ++c) {
        for (int a = 0; a < 3; ++a) pulled[c] += gradient[c][a] * arguments_.map.pulled[a][j];
      }
      const Point column = mapped(pulled);
      for (int i = 0; i < 3; ++i) result.gradient[i][j] = column[i];
    }
    return result;
  }

  [[nodiscard]] __device__ InsideThere inside_there(int q, const int (&place)[3]) const {
    InsideThere result{};
    if (arguments_.acceleration != nullptr) {
      Point w{};
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        if (c == memory_.dim) break;
        const double* const x = shared_ + memory_.change_at() + c * memory_.component();
        w[c] = scale(widths_) * component(x, c, place, false).value;
      }
      result.change = mapped(w);
    }
    result.force = arguments_.force_at == nullptr
                       ? arguments_.force
                       : values_at(arguments_.force_at, at_.number, memory_.points_inside(), q);
    result.mass = arguments_.reactions == nullptr ? arguments_.reaction : arguments_.reactions[at_.number];
    result.viscosity = viscosity(-1, q);
    return result;
  }

  [[nodiscard]] __device__ SideThere side_there(int side, int q, const int (&place)[3]) const {
    SideThere result{};
    result.face = kind(side);
    result.penalty = arguments_.tested.penalty_of(side, widths_[side / 2]);
    result.viscosity = viscosity(side, q);
    if (result.face == Face::interior) {
      const std::int32_t behind = neighbour(side);
      Point widths{};
      int from_behind[3];
      for (int a = 0; a < 3; ++a) {
        if (a < memory_.dim) widths[a] = width(behind, a);
        from_behind[a] = a == side / 2 ? tables_.end(1 - side % 2) : place[a];
      }
      result.behind = flow(memory_.behind_at(side), widths, from_behind, false);
      return result;
    }
    const std::int32_t data = arguments_.data_of[at_.number].of[side];
    result.data =
        data < 0 ? arguments_.constants[-1 - data] : values_at(arguments_.values, data, memory_.points_on_side(), q);
    return result;
  }

  /// Of an array at points.
  [[nodiscard]] __device__ Point values_at(const double* values, std::int32_t number, int points, int q) const {
    Point result{};
    for (int c = 0; c < memory_.dim; ++c) {
      result[c] = values[(static_cast<std::int64_t>(number) * memory_.dim + c) * points + q];
    }
    return result;
  }

  const BoundaryForcesArguments& arguments_;
  const ForceMemory& memory_;
  const PlaceTables& tables_;
  double* const shared_;
  const BoundaryFace at_;
  Point widths_{};
  Point corner_{};
};

__global__ void __launch_bounds__(force_threads)
    boundary_forces_kernel(const __grid_constant__ BoundaryForcesArguments arguments, ForceSums* sums) {
  extern __shared__ __align__(16) double shared[];
  wait_for_earlier_kernels();
  const int table_size = arguments.memory.tables.size();
  for (int i = static_cast<int>(threadIdx.x); i < table_size; i += force_threads) shared[i] = arguments.tables[i];
  ForceSums own{};
  for (std::int32_t i = arguments.first[blockIdx.x]; i < arguments.first[blockIdx.x + 1]; ++i) {
    const CellOnBoundary cell(arguments, arguments.faces[i], shared);
    __syncthreads();
    cell.load();
    __syncthreads();
    cell.add_to(own);
  }
  ForceSums all{};
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    all.force[c] = block_sum<force_threads>(own.force[c]);
    all.torque[c] = block_sum<force_threads>(own.torque[c]);
    all.pressure[c] = block_sum<force_threads>(own.pressure[c]);
    all.viscous[c] = block_sum<force_threads>(own.viscous[c]);
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = all;
}

}  // namespace

void boundary_forces(const BoundaryForcesArguments& arguments, ForceSums* sums, Stream stream) {
  static_assert(ForceMemory{3, {max_n, (3 * max_n + 1) / 2}}.numbers() * sizeof(double) <= most_shared_bytes);
  launch("forces on the boundary", boundary_forces_kernel, arguments.parts, force_threads,
         arguments.memory.numbers() * sizeof(double), stream, arguments, sums);
}

}  // namespace solenoid::cuda
