#pragma once
/// \file
/// The convective term on parallelepipeds (engine/convection.hpp), cell by cell. Vectors hold the velocity u of boxes,
/// in space F u / J (problem/affine_map.hpp). With
///
///     w_a = sum_b g_ab u_b / J^2,    g = F^T F,
///
/// the term is that of boxes, where u carries w instead of itself:
///
///     y = - sum_K sum_ca (u_a w_c, d_a v_c)_K + sum_F <u_n {w} + s |u_n| / 2 [w], [v]>_F + sum_sides <max(u_n, 0) w,
///     v>
///
/// by convection_points(k) Gauss points per direction. The normal component of v does not jump, so that its rows have
/// something of outflow sides alone; that of w there has all components of u in it. Every face is computed by both of
/// its cells, from the same numbers.
///
/// A thread block has `lanes` cells side by side, a thread a lane and a member of the team; what is shared has the lane
/// as the fastest index. All is sum factorisation, in steps with barriers between them; a job is a member's:
///   1. inside: a function of x of a component, along z and y to points, [function][line of points along x];
///   2. a line of points: velocities, products, and these integrated along x against what is differentiated in each
///      direction, [direction][function][line], in the place of what they are made of; the rate;
///   3. the functions again, integrals along y and z: rows of y in shared memory;
///   4. faces, all at once: a function of the first direction along a face: traces of both cells, and hats, to points
///      of the second direction, [face][entry][point];
///   5. a line of points on a face: fluxes, and their integrals along it, in the place of the cell's own traces and
///      hats;
///   6. direction after direction, both faces across it: integrals along the second one, added to the rows.
/// At last rows are written, those of upper hats left for the cells above (add_upper_hats), and zero pressures.
///
/// Traffic per unknown: DRAM u and y once, 16 bytes, hats once more.

#include <cstdint>

#include "engine/cuda/kernels/convection.hpp"
#include "engine/cuda/kernels/largest_rate.cuh"
#include "engine/cuda/kernels/lines_of_points.cuh"

namespace solenoid::cuda {

/// Sizes, and what lies where in shared memory, in numbers of a lane.
template <int dim, int order>
struct ShearedConvectionLayout : LinesOfPoints<dim, order, convection_points(order)> {
  using Inside = LinesOfPoints<dim, order, convection_points(order)>;
  using Inside::block;
  using Inside::functions;
  using Inside::lines;
  using Inside::n;
  using Inside::points;
  using Inside::rows;
  using Inside::second_points;
  using Inside::traces;

  // Entries: traces and hats of the cell, then the traces of what lies beyond.
  static constexpr int hats_at = traces;
  static constexpr int own = traces + n;  // and as many jobs: a function of the first direction each
  static constexpr int beyond_at = own;
  static constexpr int entries = own + traces;
  static constexpr int face_place(int side, int entry, int q) { return (side * entries + entry) * second_points + q; }

  static constexpr int face_lines = 2 * dim * second_points;

  // What is left of the inside, the rows of y, takes its place behind what faces need.
  static constexpr int rows_at = 2 * dim * entries * second_points;
  static constexpr int memory = std::max(Inside::numbers, rows_at + dim * rows);
  static constexpr int bytes_of_lane = memory * static_cast<int>(sizeof(double));
  static constexpr int room = 64 << 10;
  static constexpr int lanes = 16 * bytes_of_lane <= room                                 ? 16
                               : 8 * bytes_of_lane <= 2 * room                            ? 8
                               : 4 * bytes_of_lane <= static_cast<int>(most_shared_bytes) ? 4
                                                                                          : 2;
  /// Members for all lines of points, inside or on faces, at once; whole warps.
  static constexpr int in_warp = 32 / lanes;
  static constexpr int team =
      (std::max({lines, functions, face_lines, dim == 3 ? 16 : 8}) + in_warp - 1) / in_warp * in_warp;
  static constexpr int threads = lanes * team;
  static constexpr int shared_bytes = lanes * bytes_of_lane;
  static_assert(shared_bytes <= static_cast<int>(most_shared_bytes));
  /// Thread blocks for a multiprocessor, by shared memory and by registers: in 3D two or three up to k = 4, in
  /// exchange for some spills.
  static constexpr int registers = order <= 1 ? 72 : order == 2 ? 80 : order == 3 ? 112 : 128;
  static constexpr int resident =
      std::clamp(std::min(static_cast<int>(most_shared_bytes) / shared_bytes, 65536 / (threads * registers)), 1, 16);
};

/// ShearedConvectionArguments, with what one order needs of their tables in place of these.
template <int order>
struct ShearedConvectionFields {
  CellTopology topology;
  std::int32_t cells;
  double upwind;  ///< 1, or 0: central
  ShearedConvectionFactors factors;
  double end[order + 1];  ///< psi_j(1)
  const double* u;
  double* y;
  double* upper;
  std::uint64_t* rate;

  explicit ShearedConvectionFields(const ShearedConvectionArguments& from)
      : topology(from.topology),
        cells(from.cells),
        upwind(from.flux == ConvectiveFlux::upwind ? 1.0 : 0.0),
        factors(from.factors),
        u(from.u),
        y(from.y),
        upper(from.upper),
        rate(from.rate) {
    std::copy_n(from.tables->end, order + 1, end);
  }
};

template <int dim, int order>
class ShearedConvectionBlock {
  using L = ShearedConvectionLayout<dim, order>;
  using Tables = FunctionsAtPoints<order, L::points>;
  static constexpr int n = L::n;
  static constexpr int points = L::points;
  static constexpr int second_points = L::second_points;
  static constexpr int turns = L::turns;

 public:
  __device__ ShearedConvectionBlock(const Tables& tables, const ShearedConvectionFields<order>& fields, double* shared)
      : tables_(tables), fields_(fields), shared_(shared + threadIdx.x), member_(static_cast<int>(threadIdx.y)) {
    const auto cell = static_cast<std::int32_t>(blockIdx.x * L::lanes + threadIdx.x);
    is_cell_ = cell < fields.cells;
    cell_ = is_cell_ ? cell : fields.topology.null;
  }

  __device__ void run() const {
    for_jobs<L::functions>([&](int job) { L::with_component(job, [&](auto c, int i) { to_points<c>(i); }); });
    __syncthreads();
    std::uint64_t rate = 0;
    if (member_ < L::lines) rate = line_inside(member_);
    __syncthreads();
    double y[n * (n + 1)];
    if (member_ < L::functions) L::with_component(member_, [&](auto c, int i) { from_points<c>(i, y); });
    __syncthreads();
    if (member_ < L::functions) L::with_component(member_, [&](auto c, int i) { put_rows<c>(i, y); });
    for_jobs<2 * dim * L::own>([&](int job) {
      const int side = job / L::own;
      with_constant<dim>(side / 2, [&](auto a) { face_to_points<a>(side, job % L::own); });
    });
    __syncthreads();
    for_jobs<L::face_lines>([&](int job) { line_on_face(job / second_points, job % second_points); });
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
    write_largest_rate(rate, threadIdx.x + L::lanes * threadIdx.y, fields_.rate);
  }

 private:
  __device__ double& buffer(int place) const { return shared_[place * L::lanes]; }
  __device__ double& row(int c, int place) const { return shared_[(L::rows_at + c * L::rows + place) * L::lanes]; }
  static constexpr int space(int c, int a) { return L::space(c, a); }

  /// visit(job) for this member's jobs.
  template <int count, class F>
  __device__ void for_jobs(const F& visit) const {
    for_jobs_of_member<count, L::team>(member_, visit);
  }
  template <int c>
  __device__ double coefficient(std::int32_t record, std::int32_t above, const int (&index)[3]) const {
    return L::template coefficient<c>(fields_.u, record, above, index);
  }
  /// w_a, of velocities that begin with component `first`; a counts from there as well.
  __device__ double transported(int first, int a, const double (&u)[dim]) const {
    double w = 0.0;
#pragma unroll
    for (int b = 0; b < dim; ++b) w += fields_.factors.metric[(first + a) % dim][(first + b) % dim] * u[b];
    return w;
  }

  // --- inside --------------------------------------------------------------------------------------------------------

  template <int c>
  __device__ void to_points(int i) const {
    const int function = L::first(c) + i;
    L::template to_lines<c>(tables_, fields_.u, cell_, fields_.topology.neighbour[2 * c + 1][cell_], i,
                            [&](int direction, int line, double value) {
                              if (direction == 0) buffer(L::place(0, function, line)) = value;
                            });
  }

  /// Returns the bits of the largest sum_a |u_a| / (J h_a) at a point of the line.
  __device__ std::uint64_t line_inside(int line) const {
    double along[L::functions];
    double sum[dim][L::functions];  // [direction][function of x]
    unrolled<L::functions>([&](int f) { along[f] = buffer(L::place(0, f, line)); });
    unrolled<dim, L::functions>([&](int a, int f) { sum[a][f] = 0.0; });
    const double of_line = tables_.weight[line % points] * (dim == 3 ? tables_.weight[line / points] : 1.0);
    std::uint64_t rate = 0;
#pragma unroll 1
    for (int q = 0; q < points; ++q) {
      double u[dim];
      double crossing = 0.0;
      unrolled<dim>([&](int c) {
        u[c] = 0.0;
#pragma unroll
        for (int i = 0; i < L::size(c, 0); ++i) u[c] += tables_.value[space(c, 0)][q][i] * along[L::first(c) + i];
        crossing += fields_.factors.crossing[c] * fabs(u[c]);
      });
      rate = std::max(rate, static_cast<std::uint64_t>(__double_as_longlong(crossing)));
      const double weight = -of_line * tables_.weight[q];
      unrolled<dim>([&](int c) {
        const double w = weight * transported(0, c, u);
#pragma unroll
        for (int a = 0; a < dim; ++a) {
          const double flux = fields_.factors.scale[a] * u[a] * w;
#pragma unroll
          for (int i = 0; i < L::size(c, 0); ++i) {
            sum[a][L::first(c) + i] +=
                (a == 0 ? tables_.slope[space(c, 0)][q][i] : tables_.value[space(c, 0)][q][i]) * flux;
          }
        }
      });
    }
    unrolled<dim, L::functions>([&](int a, int f) { buffer(L::place(a, f, line)) = sum[a][f]; });
    return rate;
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

  __device__ Face face(int side) const { return is_cell_ ? fields_.topology.face[side][cell_] : Face::interior; }

  /// The value of a line of component c across a face of a cell, seen from its upper end or the lower one.
  template <int c, int a>
  __device__ double end(std::int32_t record, std::int32_t above, int (&index)[3], bool upper) const {
    double value = 0.0;
#pragma unroll
    for (int m = 0; m < n; ++m) {
      index[a] = m;
      const double u = fields_.end[m] * coefficient<c>(record, above, index);
      value += upper || m % 2 == 0 ? u : -u;
    }
    return value;
  }

  template <int a>
  __device__ void face_to_points(int side, int job) const {
    if (job >= L::hats_at) return hats_to_points<a>(side, job - L::hats_at);
    with_constant<L::tangential>(job < L::trace(1) ? 0 : 1, [&](auto t) {
      constexpr int c = (a + 1 + t) % dim;
      constexpr int first = (a + 1) % dim;
      constexpr int second = dim == 3 ? (a + 2) % dim : 2;
      const bool upper = side % 2 == 1;
      const std::int32_t beyond =
          face(side) == Face::interior ? fields_.topology.neighbour[side][cell_] : fields_.topology.null;
      const std::int32_t above = fields_.topology.neighbour[2 * c + 1][cell_];
      const std::int32_t above_beyond = fields_.topology.neighbour[2 * c + 1][beyond];
      double mine[second_points]{};
      double its[second_points]{};
#pragma unroll turns
      for (int j = 0; j < L::size(c, second); ++j) {
        int index[3]{};
        index[first] = job - L::trace(t);
        if constexpr (dim == 3) index[second] = j;
        const double here = end<c, a>(cell_, above, index, upper);
        const double there = end<c, a>(beyond, above_beyond, index, !upper);
#pragma unroll
        for (int q = 0; q < second_points; ++q) {
          const double psi = dim == 3 ? tables_.value[space(c, second)][q][j] : 1.0;
          mine[q] += psi * here;
          its[q] += psi * there;
        }
      }
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        buffer(L::face_place(side, job, q)) = mine[q];
        buffer(L::face_place(side, L::beyond_at + job, q)) = its[q];
      }
    });
  }
  template <int a>
  __device__ void hats_to_points(int side, int i) const {
    constexpr int first = (a + 1) % dim;
    constexpr int second = dim == 3 ? (a + 2) % dim : 2;
    const std::int32_t above = fields_.topology.neighbour[2 * a + 1][cell_];
    double value[second_points]{};
#pragma unroll turns
    for (int j = 0; j < (dim == 3 ? n : 1); ++j) {
      int index[3]{};
      index[a] = side % 2 == 1 ? n : 0;
      index[first] = i;
      if constexpr (dim == 3) index[second] = j;
      const double u = coefficient<a>(cell_, above, index);
#pragma unroll
      for (int q = 0; q < second_points; ++q) value[q] += (dim == 3 ? tables_.value[0][q][j] : 1.0) * u;
    }
#pragma unroll
    for (int q = 0; q < second_points; ++q) buffer(L::face_place(side, L::hats_at + i, q)) = value[q];
  }

  /// Components count from the normal one.
  __device__ void line_on_face(int side, int q2) const {
    const int a = side / 2;
    const double out = side % 2 == 1 ? 1.0 : -1.0;
    const Face kind = face(side);
    const bool inner = kind == Face::interior;
    const double upwind = inner ? fields_.upwind : 1.0;
    const double of_line = fields_.factors.scale[a] * (dim == 3 ? tables_.weight[q2] : 1.0);
    double along[L::entries];
    double sum[L::own];
    unrolled<L::entries>([&](int entry) { along[entry] = buffer(L::face_place(side, entry, q2)); });
    unrolled<L::own>([&](int entry) { sum[entry] = 0.0; });
#pragma unroll 1
    for (int q = 0; q < points; ++q) {
      double mine[dim]{};
#pragma unroll
      for (int i = 0; i < n; ++i) mine[0] += tables_.value[0][q][i] * along[L::hats_at + i];
      double its[dim]{mine[0]};
      unrolled<L::tangential>([&](int t) {
        const int p = t == 0 ? 1 : 0;  // the first component has its P along the first direction
#pragma unroll
        for (int i = 0; i < n + p; ++i) {
          mine[1 + t] += tables_.value[p][q][i] * along[L::trace(t) + i];
          its[1 + t] += tables_.value[p][q][i] * along[L::beyond_at + L::trace(t) + i];
        }
      });
      const double outward = out * mine[0];
      const double weight = of_line * tables_.weight[q];
      unrolled<L::tangential>([&](int t) {
        const int p = t == 0 ? 1 : 0;
        const double here = transported(a, 1 + t, mine);
        const double there = inner ? transported(a, 1 + t, its) : 0.0;
        const double flux = 0.5 * weight * (outward * (here + there) + upwind * fabs(outward) * (here - there));
#pragma unroll
        for (int i = 0; i < n + p; ++i) sum[L::trace(t) + i] += tables_.value[p][q][i] * flux;
      });
      const double leaving = kind == Face::outflow && outward > 0.0 ? weight * outward * transported(a, 0, mine) : 0.0;
#pragma unroll
      for (int i = 0; i < n; ++i) sum[L::hats_at + i] += tables_.value[0][q][i] * leaving;
    }
    unrolled<L::own>([&](int entry) { buffer(L::face_place(side, entry, q2)) = sum[entry]; });
  }

  template <int a>
  __device__ void face_from_points() const {
    constexpr int first = (a + 1) % dim;
    constexpr int second = dim == 3 ? (a + 2) % dim : 2;
    for_jobs<L::own>([&](int job) {
      if (job >= L::hats_at) return hats_from_points<a>(job - L::hats_at);
      with_constant<L::tangential>(job < L::trace(1) ? 0 : 1, [&](auto t) {
        constexpr int c = (a + 1 + t) % dim;
#pragma unroll turns
        for (int j = 0; j < L::size(c, second); ++j) {
          double lower = 0.0;
          double upper = 0.0;
#pragma unroll
          for (int q = 0; q < second_points; ++q) {
            const double psi = dim == 3 ? tables_.value[space(c, second)][q][j] : 1.0;
            lower += psi * buffer(L::face_place(2 * a, job, q));
            upper += psi * buffer(L::face_place(2 * a + 1, job, q));
          }
          int index[3]{};
          index[first] = job - L::trace(t);
          if constexpr (dim == 3) index[second] = j;
#pragma unroll
          for (int m = 0; m < n; ++m) {
            index[a] = m;
            row(c, L::template place_in_component<c>(index)) +=
                fields_.end[m] * (m % 2 == 0 ? upper + lower : upper - lower);
          }
        }
      });
    });
  }
  template <int a>
  __device__ void hats_from_points(int i) const {
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
        }
        int index[3]{};
        index[a] = upper * n;
        index[first] = i;
        if constexpr (dim == 3) index[second] = j;
        row(a, L::template place_in_component<a>(index)) += sum;
      }
    }
  }

  // --- results -------------------------------------------------------------------------------------------------------

  __device__ void write() const {
    double* const y = fields_.y + Shape<dim, order>::offset(cell_);
    double* const upper = fields_.upper + record_offset(cell_, dim * L::columns);
    for_jobs<dim * L::block>([&](int i) { y[i * interleave] = row(i / L::block, i % L::block); });
    for_jobs<L::block>([&](int i) { y[(dim * L::block + i) * interleave] = 0.0; });
    for_jobs<dim * L::columns>([&](int i) { upper[i * interleave] = row(i / L::columns, L::block + i % L::columns); });
  }

  const Tables& tables_;
  const ShearedConvectionFields<order>& fields_;
  double* const shared_;
  const int member_;
  std::int32_t cell_;
  bool is_cell_;
};

template <int dim, int order>
__global__ void __launch_bounds__(ShearedConvectionLayout<dim, order>::threads,
                                  ShearedConvectionLayout<dim, order>::resident)
    convect_sheared_cells(const __grid_constant__ FunctionsAtPoints<order, convection_points(order)> tables,
                          const __grid_constant__ ShearedConvectionFields<order> fields) {
  extern __shared__ __align__(16) unsigned char memory[];
  wait_for_earlier_kernels();
  ShearedConvectionBlock<dim, order>(tables, fields, reinterpret_cast<double*>(memory)).run();
}

template <int dim, int order>
void convect_sheared(const ShearedConvectionArguments& arguments, Stream stream) {
  // There is no order 0 on such cells.
  if constexpr (order > 0) {
    using L = ShearedConvectionLayout<dim, order>;
    const FunctionsAtPoints<order, L::points> tables(*arguments.tables);
    const ShearedConvectionFields<order> fields(arguments);
    launch("convection, sheared cells", convect_sheared_cells<dim, order>, blocks_for(arguments.cells, L::lanes),
           dim3(L::lanes, L::team), L::shared_bytes, stream, tables, fields);
  }
}

}  // namespace solenoid::cuda
