#pragma once
/// \file
/// What a viscosity at points adds to the operator of the means, cell by cell. With w = nu - nu_K at a point of a cell
/// and w = nu_F - nu_F,K at one of a face (engine/point_weights.hpp)
///
///     y += sum_K (w G(u), grad v) + sum_F <w gamma [u] - w S(u), [v]> - <w S(v), [u]>,
///     G(u) = grad u, S_c(u) = {d_a u_c};   in the stress form G(u) = 2 eps(u), S_c(u) = {d_a u_c + d_c u_a},
///
/// by k + 2 Gauss points per direction; across a face only components c != a jump. Every face is computed by both of
/// its cells, from the same numbers; the rows of its hats, which only d_c v_a reaches, by half from either.
///
/// A thread block has `lanes` cells side by side, a thread a lane and a member of the team; what is shared has the lane
/// as the fastest index. All is sum factorisation, in steps with barriers between them; a job is a member's:
///   1. inside: a function of x of a component, along z and y to points: the values of what is to be differentiated in
///      each direction, [direction][function][line of points along x];
///   2. a line of points: gradients, fluxes, integrals along x, which take the place of what they are made of;
///   3. the functions again, integrals along y and z: rows of y in shared memory;
///   4. faces, all at once: a function of the first direction along a face: jumps and slopes of traces, and hats, to
///      points of the second direction, [face][entry][point];
///   5. a line of points on a face, as in 2;
///   6. direction after direction, both faces across it: integrals along the second one, added to the rows.
/// At last rows are added to y, those of upper hats left for the cells above (add_upper_hats).
///
/// Traffic per unknown: DRAM x once, y twice, 4 bytes for each point (k = 2: 6), hats once more.

#include "engine/cuda/kernels/lines_of_points.cuh"
#include "engine/cuda/kernels/point_viscosity.hpp"

namespace solenoid::cuda {

/// The tables of one order.
template <int order>
struct ViscosityTablesOf : FunctionsAtPoints<order, viscosity_points(order)> {
  static constexpr int n = order + 1;

  double end[n];
  double end_slope[n];
  double penalty;
  double inverse_h[3];

  explicit ViscosityTablesOf(const ViscosityTables& from)
      : FunctionsAtPoints<order, viscosity_points(order)>(from.functions), penalty(from.penalty) {
    for (int j = 0; j < n; ++j) {
      end[j] = from.functions.end[j];
      end_slope[j] = from.functions.end_slope[j];
    }
    for (int a = 0; a < 3; ++a) inverse_h[a] = from.inverse_h[a];
  }
};

struct ViscosityFields {
  CellTopology topology;
  std::int32_t cells;
  const float* weights;
  double sign;
  const double* x;
  double* y;
  double* upper;
};

/// Sizes, and what lies where in shared memory, in numbers of a lane.
template <int dim, int order>
struct PointViscosityLayout : LinesOfPoints<dim, order, viscosity_points(order)> {
  using Inside = LinesOfPoints<dim, order, viscosity_points(order)>;
  using Inside::block;
  using Inside::functions;
  using Inside::lines;
  using Inside::n;
  using Inside::points;
  using Inside::rows;
  using Inside::second_points;
  using Inside::tangential;
  using Inside::traces;
  static constexpr int most(int a, int b) { return a > b ? a : b; }

  // Entries: jumps, slopes, hats, and in 3D hats with a derivative in the second direction.
  static constexpr int entries = 2 * traces + tangential * n;
  static constexpr int face_jobs = traces + n;  // of one face: a function of the first direction each
  static constexpr int face_place(int side, int entry, int q) { return (side * entries + entry) * second_points + q; }
  static constexpr int hats_at = 2 * traces;

  // What is left of the inside, the rows of y, takes its place behind what faces need.
  static constexpr int rows_at = 2 * dim * entries * second_points;
  static constexpr int memory = most(Inside::numbers, rows_at + dim * rows);
  static constexpr int bytes_of_lane = memory * static_cast<int>(sizeof(double));
  static constexpr int lanes = 16 * bytes_of_lane <= 100 << 10                            ? 16
                               : 8 * bytes_of_lane <= static_cast<int>(most_shared_bytes) ? 8
                                                                                          : 4;
  static constexpr int team = most(most(lines, functions), dim == 3 ? 16 : 8);
  static constexpr int threads = lanes * team;
  static constexpr int shared_bytes = lanes * bytes_of_lane;
  /// Thread blocks for a multiprocessor, by shared memory and by registers: all wait for memory and for each other most
  /// of the time, so that more of them are worth some spills (measured).
  static constexpr int registers = order <= 1 ? 64 : order == 2 ? 80 : 140;
  static constexpr int least(int a, int b) { return a < b ? a : b; }
  static constexpr int resident =
      most(1, least(static_cast<int>(most_shared_bytes) / shared_bytes, 65536 / (threads * registers)));
};

template <int dim, int order, bool stress>
class PointViscosityBlock {
  using L = PointViscosityLayout<dim, order>;
  static constexpr int n = L::n;
  static constexpr int points = L::points;
  static constexpr int second_points = L::second_points;
  static constexpr int turns = L::turns;

 public:
  __device__ PointViscosityBlock(const ViscosityTablesOf<order>& tables, const ViscosityFields& fields, double* shared)
      : tables_(tables), fields_(fields), shared_(shared + threadIdx.x), member_(static_cast<int>(threadIdx.y)) {
    const auto cell = static_cast<std::int32_t>(blockIdx.x * L::lanes + threadIdx.x);
    is_cell_ = cell < fields.cells;
    cell_ = is_cell_ ? cell : fields.topology.null;
    weights_ = fields.weights + record_offset(is_cell_ ? cell : 0, point_weights_of_cell(dim, order));
  }

  __device__ void run() const {
    for_jobs<L::functions>([&](int job) { L::with_component(job, [&](auto c, int i) { to_points<c>(i); }); });
    __syncthreads();
    for_jobs<L::lines>([&](int line) { line_inside(line); });
    __syncthreads();
    double y[n * (n + 1)];
    if (member_ < L::functions) L::with_component(member_, [&](auto c, int i) { from_points<c>(i, y); });
    __syncthreads();
    if (member_ < L::functions) L::with_component(member_, [&](auto c, int i) { put_rows<c>(i, y); });
    for_jobs<2 * dim * L::face_jobs>([&](int job) {
      const int side = job / L::face_jobs;
      with_constant<dim>(side / 2, [&](auto a) { face_to_points<a>(side, job % L::face_jobs); });
    });
    __syncthreads();
    for_jobs<2 * dim * second_points>([&](int job) {
      const int side = job / second_points;
      with_constant<dim>(side / 2, [&](auto a) { line_on_face<a>(side, job % second_points); });
    });
    __syncthreads();
    face_from_points<0>();
    __syncthreads();
    face_from_points<1>();
    __syncthreads();
    if constexpr (dim == 3) {
      face_from_points<2>();
      __syncthreads();
    }
    if (is_cell_) write();
  }

 private:
  __device__ double& buffer(int place) const { return shared_[place * L::lanes]; }
  __device__ double& row(int c, int place) const { return shared_[(L::rows_at + c * L::rows + place) * L::lanes]; }
  __device__ double weight(int i) const {
    return is_cell_ ? static_cast<double>(__ldg(weights_ + i * interleave)) : 0.0;
  }
  static constexpr int space(int c, int a) { return L::space(c, a); }

  /// visit(job) for this member's jobs.
  template <int count, class F>
  __device__ void for_jobs(const F& visit) const {
    for_jobs_of_member<count, L::team>(member_, visit);
  }
  template <int c>
  __device__ double coefficient(std::int32_t record, std::int32_t above, const int (&index)[3]) const {
    return L::template coefficient<c>(fields_.x, record, above, index);
  }

  // --- inside --------------------------------------------------------------------------------------------------------

  template <int c>
  __device__ void to_points(int i) const {
    const int function = L::first(c) + i;
    L::template to_lines<c>(
        tables_, fields_.x, cell_, fields_.topology.neighbour[2 * c + 1][cell_], i,
        [&](int direction, int line, double value) { buffer(L::place(direction, function, line)) = value; });
  }

  /// The function i of x of a component at point q, or its derivative: what a derivative in direction a takes.
  __device__ double in_x(int c, int a, int q, int i) const {
    return a == 0 ? tables_.slope[space(c, 0)][q][i] : tables_.value[space(c, 0)][q][i];
  }

  __device__ void line_inside(int line) const {
    double sum[dim][L::functions];  // [direction][function of x]
    unrolled<dim, L::functions>([&](int a, int f) { sum[a][f] = 0.0; });
    const double of_line = tables_.weight[line % points] * (dim == 3 ? tables_.weight[line / points] : 1.0);
    double next = weight(points * line);
#pragma unroll 1
    for (int q = 0; q < points; ++q) {
      const double difference = next;
      if (q + 1 < points) next = weight(q + 1 + points * line);
      double g[dim][dim];  // [component][direction]
      unrolled<dim, dim>([&](int c, int a) {
        g[c][a] = 0.0;
#pragma unroll
        for (int i = 0; i < L::size(c, 0); ++i) {
          g[c][a] += in_x(c, a, q, i) * buffer(L::place(a, L::first(c) + i, line));
        }
        g[c][a] *= tables_.inverse_h[a];
      });
      const double w = of_line * tables_.weight[q] * difference;
      unrolled<dim, dim>([&](int c, int a) {
        const double flux = w * tables_.inverse_h[a] * (stress ? g[c][a] + g[a][c] : g[c][a]);
#pragma unroll
        for (int i = 0; i < L::size(c, 0); ++i) sum[a][L::first(c) + i] += in_x(c, a, q, i) * flux;
      });
    }
    unrolled<dim, L::functions>([&](int a, int f) { buffer(L::place(a, f, line)) = sum[a][f]; });
  }

  template <int c>
  __device__ void from_points(int i, double (&y)[n * (n + 1)]) const {
    const int function = L::first(c) + i;
    L::template from_lines<c>(
        tables_, [&](int direction, int line) { return buffer(L::place(direction, function, line)); }, y);
  }
  template <int c>
  __device__ void put_rows(int i, const double (&y)[n * (n + 1)]) const {
    constexpr int nz = L::size(c, 2);
    unrolled<L::size(c, 1), nz>([&](int j, int l) {
      row(c, L::template place_in_component<c>({i, j, l})) = y[j * nz + l];
    });
  }

  // --- faces ---------------------------------------------------------------------------------------------------------

  /// 1 on faces with nothing behind, otherwise 1/2: what a mean takes of a slope.
  __device__ double mean(int side) const {
    return is_cell_ && fields_.topology.face[side][cell_] != Face::interior ? 1.0 : 0.5;
  }

  /// Values and slopes of a line of component c across a face of a cell, seen from `upper` ends or lower ones; slopes
  /// point outwards.
  template <int c, int a>
  __device__ void ends(std::int32_t record, std::int32_t above, int (&index)[3], bool upper, double& value,
                       double& slope) const {
    value = 0.0;
    slope = 0.0;
#pragma unroll
    for (int m = 0; m < n; ++m) {
      index[a] = m;
      const double u = coefficient<c>(record, above, index);
      const double signed_u = upper || m % 2 == 0 ? u : -u;
      value += tables_.end[m] * signed_u;
      slope += tables_.end_slope[m] * signed_u;
    }
  }

  template <int a>
  __device__ void face_to_points(int side, int job) const {
    if (job >= L::traces) return hats_to_points<a>(side, job - L::traces);
    with_constant<L::tangential>(job < L::trace(1) ? 0 : 1, [&](auto t) {
      constexpr int c = (a + 1 + t) % dim;
      constexpr int first = (a + 1) % dim;
      constexpr int second = dim == 3 ? (a + 2) % dim : 2;
      constexpr int count = L::size(c, second);
      const int i = job - L::trace(t);
      const bool upper = side % 2 == 1;
      const std::int32_t behind = fields_.topology.neighbour[side][cell_];
      const bool inner = mean(side) == 0.5;
      const std::int32_t beyond = inner ? behind : fields_.topology.null;
      const std::int32_t above = fields_.topology.neighbour[2 * c + 1][cell_];
      const std::int32_t above_beyond = fields_.topology.neighbour[2 * c + 1][beyond];
      const double scale = (upper ? 1.0 : -1.0) * tables_.inverse_h[a] * mean(side);
      double jump[second_points]{};
      double slope[second_points]{};
#pragma unroll turns
      for (int j = 0; j < count; ++j) {
        int index[3]{};
        index[first] = i;
        if constexpr (dim == 3) index[second] = j;
        double mine = 0.0;
        double its = 0.0;
        double my_slope = 0.0;
        double its_slope = 0.0;
        ends<c, a>(cell_, above, index, upper, mine, my_slope);
        ends<c, a>(beyond, above_beyond, index, !upper, its, its_slope);
#pragma unroll
        for (int q = 0; q < second_points; ++q) {
          const double psi = dim == 3 ? tables_.value[space(c, second)][q][j] : 1.0;
          jump[q] += psi * (mine - its);
          slope[q] += psi * scale * (my_slope - its_slope);
        }
      }
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        buffer(L::face_place(side, job, q)) = jump[q];
        buffer(L::face_place(side, L::traces + job, q)) = slope[q];
      }
    });
  }
  template <int a>
  __device__ void hats_to_points(int side, int i) const {
    if constexpr (!stress) return;
    constexpr int first = (a + 1) % dim;
    constexpr int second = dim == 3 ? (a + 2) % dim : 2;
    const std::int32_t above = fields_.topology.neighbour[2 * a + 1][cell_];
    double value[second_points]{};
    double slope[second_points]{};
#pragma unroll turns
    for (int j = 0; j < (dim == 3 ? n : 1); ++j) {
      int index[3]{};
      index[a] = side % 2 == 1 ? n : 0;
      index[first] = i;
      if constexpr (dim == 3) index[second] = j;
      const double u = coefficient<a>(cell_, above, index);
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        value[q] += (dim == 3 ? tables_.value[0][q][j] : 1.0) * u;
        if constexpr (dim == 3) slope[q] += tables_.slope[0][q][j] * u;
      }
    }
#pragma unroll
    for (int q = 0; q < second_points; ++q) {
      buffer(L::face_place(side, L::hats_at + i, q)) = value[q];
      if constexpr (dim == 3) buffer(L::face_place(side, L::hats_at + n + i, q)) = slope[q];
    }
  }

  template <int a>
  __device__ void line_on_face(int side, int q2) const {
    const double out = side % 2 == 1 ? 1.0 : -1.0;
    const double of_mean = mean(side);
    const double gamma = 2.0 * tables_.penalty * tables_.inverse_h[a] * of_mean;
    const double of_line = tables_.inverse_h[a] * (dim == 3 ? tables_.weight[q2] : 1.0);
    constexpr int of_faces = power(points, dim);
    double sum[L::entries];
#pragma unroll
    for (double& entry : sum) entry = 0.0;
    const int first_weight = of_faces + side * L::lines + points * q2;
    double next = weight(first_weight);
#pragma unroll 1
    for (int q = 0; q < points; ++q) {
      const double w = of_line * tables_.weight[q] * next;
      if (q + 1 < points) next = weight(first_weight + q + 1);
#pragma unroll
      for (int t = 0; t < L::tangential; ++t) {
        const int c = (a + 1 + t) % dim;
        const int p = t == 0 ? 1 : 0;  // the first component has its P along the first direction
        double jump = 0.0;
        double shear = 0.0;
#pragma unroll
        for (int i = 0; i < n + p; ++i) {
          jump += tables_.value[p][q][i] * buffer(L::face_place(side, L::trace(t) + i, q2));
          shear += tables_.value[p][q][i] * buffer(L::face_place(side, L::traces + L::trace(t) + i, q2));
        }
        if constexpr (stress) {
          double tilt = 0.0;
#pragma unroll
          for (int i = 0; i < n; ++i) {
            const double psi = t == 0 ? tables_.slope[0][q][i] : tables_.value[0][q][i];
            tilt += psi * buffer(L::face_place(side, L::hats_at + t * n + i, q2));
          }
          shear += tables_.inverse_h[c] * tilt;
        }
        const double flux = w * (gamma * jump - out * shear);
        const double back = -out * w * jump;
#pragma unroll
        for (int i = 0; i < n + p; ++i) {
          sum[L::trace(t) + i] += tables_.value[p][q][i] * flux;
          sum[L::traces + L::trace(t) + i] += tables_.value[p][q][i] * back;
        }
        if constexpr (stress) {
          const double half = 0.5 * tables_.inverse_h[c] * back;
#pragma unroll
          for (int i = 0; i < n; ++i) {
            const double psi = t == 0 ? tables_.slope[0][q][i] : tables_.value[0][q][i];
            sum[L::hats_at + t * n + i] += psi * half;
          }
        }
      }
    }
#pragma unroll
    for (int entry = 0; entry < (stress ? L::entries : L::hats_at); ++entry) {
      buffer(L::face_place(side, entry, q2)) = sum[entry];
    }
  }

  template <int a>
  __device__ void face_from_points() const {
    constexpr int first = (a + 1) % dim;
    constexpr int second = dim == 3 ? (a + 2) % dim : 2;
    for_jobs<L::face_jobs>([&](int job) {
      if (job >= L::traces) return hats_from_points<a>(job - L::traces);
      with_constant<L::tangential>(job < L::trace(1) ? 0 : 1, [&](auto t) {
        constexpr int c = (a + 1 + t) % dim;
#pragma unroll 1
        for (int side = 2 * a; side < 2 * a + 2; ++side) {
          const bool upper = side % 2 == 1;
          const double of_slope = tables_.inverse_h[a] * mean(side);
#pragma unroll turns
          for (int j = 0; j < L::size(c, second); ++j) {
            double value = 0.0;
            double slope = 0.0;
#pragma unroll
            for (int q = 0; q < second_points; ++q) {
              const double psi = dim == 3 ? tables_.value[space(c, second)][q][j] : 1.0;
              value += psi * buffer(L::face_place(side, job, q));
              slope += psi * buffer(L::face_place(side, L::traces + job, q));
            }
            slope *= upper ? of_slope : -of_slope;
            int index[3]{};
            index[first] = job - L::trace(t);
            if constexpr (dim == 3) index[second] = j;
#pragma unroll
            for (int m = 0; m < n; ++m) {
              index[a] = m;
              const double sum = tables_.end[m] * value + tables_.end_slope[m] * slope;
              row(c, L::template place_in_component<c>(index)) += upper || m % 2 == 0 ? sum : -sum;
            }
          }
        }
      });
    });
  }
  template <int a>
  __device__ void hats_from_points(int i) const {
    if constexpr (!stress) return;
    constexpr int first = (a + 1) % dim;
    constexpr int second = dim == 3 ? (a + 2) % dim : 2;
#pragma unroll turns
    for (int upper = 0; upper < 2; ++upper) {
#pragma unroll turns
      for (int j = 0; j < (dim == 3 ? n : 1); ++j) {
        double sum = 0.0;
#pragma unroll
        for (int q = 0; q < second_points; ++q) {
          sum += (dim == 3 ? tables_.value[0][q][j] : 1.0) * buffer(L::face_place(2 * a + upper, L::hats_at + i, q));
          if constexpr (dim == 3) {
            sum += tables_.slope[0][q][j] * buffer(L::face_place(2 * a + upper, L::hats_at + n + i, q));
          }
        }
        int index[3]{};
        index[a] = upper * n;
        index[first] = i;
        if constexpr (dim == 3) index[second] = j;
        row(a, L::template place_in_component<a>(index)) += sum;
      }
    }
  }

  __device__ void write() const {
    double* const y = fields_.y + Shape<dim, order>::offset(cell_);
    double* const upper = fields_.upper + record_offset(cell_, dim * L::columns);
    for_jobs<dim * L::block>([&](int i) { y[i * interleave] += fields_.sign * row(i / L::block, i % L::block); });
    for_jobs<dim * L::columns>(
        [&](int i) { upper[i * interleave] = fields_.sign * row(i / L::columns, L::block + i % L::columns); });
  }

  const ViscosityTablesOf<order>& tables_;
  const ViscosityFields& fields_;
  double* const shared_;
  const int member_;
  const float* weights_;
  std::int32_t cell_;
  bool is_cell_;
};

template <bool stress, int dim, int order>
__global__ void __launch_bounds__(PointViscosityLayout<dim, order>::threads, PointViscosityLayout<dim, order>::resident)
    add_point_viscosity_cells(const __grid_constant__ ViscosityTablesOf<order> tables,
                              const __grid_constant__ ViscosityFields fields) {
  extern __shared__ __align__(16) unsigned char memory[];
  wait_for_earlier_kernels();
  PointViscosityBlock<dim, order, stress>(tables, fields, reinterpret_cast<double*>(memory)).run();
}

template <int dim, int order>
void add_point_viscosity(const PointViscosityArguments& arguments, Stream stream) {
  using L = PointViscosityLayout<dim, order>;
  static_assert(L::shared_bytes <= static_cast<int>(most_shared_bytes));
  const ViscosityTablesOf<order> tables(*arguments.tables);
  const ViscosityFields fields{arguments.topology, arguments.cells, arguments.weights, arguments.sign,
                               arguments.x,        arguments.y,     arguments.upper};
  const auto start = [&]<bool stress>() {
    launch("viscosity at points", add_point_viscosity_cells<stress, dim, order>, blocks_for(arguments.cells, L::lanes),
           dim3(L::lanes, L::team), L::shared_bytes, stream, tables, fields);
  };
  // Order 0 has the gradient form alone.
  if constexpr (order > 0) {
    if (arguments.stress) return start.template operator()<true>();
  }
  start.template operator()<false>();
}

}  // namespace solenoid::cuda
