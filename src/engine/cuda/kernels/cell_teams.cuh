#pragma once
/// \file
/// What kernels share that integrate over cells and their faces by Gauss points, cell by cell, all of it sum
/// factorisation.
///
/// A thread block has `lanes` cells side by side, a thread a lane and a member of the team; what is shared has the lane
/// as the fastest index. There are steps with barriers between them; a job is a member's:
///   1. inside: a function of x of a component, along z and y to points: the values of what is to be differentiated in
///      each direction, [direction][function][line of points along x];
///   2. a line of points: fluxes, and their integrals along x, which take the place of what they are made of;
///   3. the functions again, integrals along y and z: rows of y in shared memory;
///   4. faces, all at once: a function of the first direction along a face, of the traces of a tangential component or
///      of hats of the normal one, to points of the second direction, [face][entry][point];
///   5. a line of points on a face, as in 2;
///   6. direction after direction, both faces across it: integrals along the second one, added to the rows.
/// At last rows go where the kernel wants them, those of upper hats apart from the others.

#include <algorithm>
#include <cstdint>

#include "engine/cuda/kernels/lines_of_points.cuh"

namespace solenoid::cuda {

/// Sizes, and what lies where in shared memory, in numbers of a lane. On a face so many entries for each function of
/// the first direction of traces, then of hats. `derivatives`: of vectors, inside and of hats, are wanted.
template <int dim_, int order_, int points, int of_trace, int of_hat, bool derivatives_>
struct CellTeamLayout : LinesOfPoints<dim_, order_, points> {
  using Lines = LinesOfPoints<dim_, order_, points>;
  using Lines::n;
  using Lines::second_points;
  using Lines::traces;
  static constexpr int dim = dim_;
  static constexpr int order = order_;
  static constexpr bool derivatives = derivatives_;

  static constexpr int face_jobs = traces + n;  // of one face: a function of the first direction each
  static constexpr int face_lines = 2 * dim * second_points;
  static constexpr int hats_at = of_trace * traces;
  static constexpr int entries = hats_at + of_hat * n;
  static constexpr int face_place(int side, int entry, int q) { return (side * entries + entry) * second_points + q; }

  // What is left of the inside, the rows of y, takes its place behind what faces need.
  static constexpr int rows_at = 2 * dim * entries * second_points;
  static constexpr int memory = std::max(Lines::numbers, rows_at + dim * Lines::rows);
};

/// Thread blocks for a layout. A multiprocessor has as many as shared memory allows and registers, so many of a thread.
/// `wide`: whole warps, with members for all lines of points, inside or on faces, at once, for which there are fewer
/// lanes.
template <class Layout, bool wide, int registers>
struct CellTeams : Layout {
  static constexpr int bytes_of_lane = Layout::memory * static_cast<int>(sizeof(double));
  static constexpr int most_bytes = static_cast<int>(most_shared_bytes);
  static constexpr int lanes = 16 * bytes_of_lane <= (wide ? 64 << 10 : 100 << 10)    ? 16
                               : 8 * bytes_of_lane <= (wide ? 128 << 10 : most_bytes) ? 8
                               : 4 * bytes_of_lane <= most_bytes                      ? 4
                                                                                      : 2;
  static constexpr int needed = std::max({Layout::lines, Layout::functions, Layout::dim == 3 ? 16 : 8});
  static constexpr int in_warp = 32 / lanes;
  static constexpr int team = wide ? (std::max(needed, Layout::face_lines) + in_warp - 1) / in_warp * in_warp : needed;
  static constexpr int threads = lanes * team;
  static constexpr int shared_bytes = lanes * bytes_of_lane;
  static_assert(shared_bytes <= most_bytes);
  static constexpr int resident = std::max(1, std::min(most_bytes / shared_bytes, 65536 / (threads * registers)));
};

/// So that in 3D a multiprocessor has two to four wide thread blocks up to k = 4, in exchange for some spills.
constexpr int registers_of_wide_teams(int order) { return order <= 1 ? 72 : order == 2 ? 80 : order == 3 ? 112 : 128; }

/// What such kernels know of vectors; their own Fields have more.
struct CellTeamFields {
  CellTopology topology;
  std::int32_t cells;
  const double* x;
  double* y;
};

/// A thread. Tables are FunctionsAtPoints and more; a kernel has jobs for steps 2, 4, 5, 6, and what comes at last:
///
///     line_inside(line),
///     trace_to_points<a, t>(side, i), hats_to_points<a>(side, i),
///     line_on_face(side, point of the second direction),
///     trace_from_points<a, t>(i), hats_from_points<a>(i),
///     finish(),
///
/// where i is a function of the first direction that tangential component t, or hats, have on a face across a. Those of
/// hats are here, for kernels that want no others.
template <class Kernel, class Layout_, class Tables_, class Fields_>
class CellTeam {
 public:
  using Layout = Layout_;
  using Tables = Tables_;
  using Fields = Fields_;

  __device__ void run() {
    for_jobs<L::functions>([&](int job) { L::with_component(job, [&](auto c, int i) { to_points<c>(i); }); });
    __syncthreads();
    static_assert(L::team >= L::lines);
    if (member_ < L::lines) kernel().line_inside(member_);
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
    for_jobs<L::face_lines>([&](int job) { kernel().line_on_face(job / second_points, job % second_points); });
    __syncthreads();
    face_from_points<0>();
    __syncthreads();
    face_from_points<1>();
    __syncthreads();
    if constexpr (dim == 3) {
      face_from_points<2>();
      __syncthreads();
    }
    kernel().finish();
  }

 protected:
  using L = Layout;
  static constexpr int dim = L::dim;
  static constexpr int n = L::n;
  static constexpr int points = L::points;
  static constexpr int second_points = L::second_points;
  static constexpr int turns = L::turns;
  static constexpr int space(int c, int a) { return L::space(c, a); }

  __device__ CellTeam(const Tables& tables, const Fields& fields, double* shared)
      : tables_(tables), fields_(fields), shared_(shared + threadIdx.x), member_(static_cast<int>(threadIdx.y)) {
    const auto cell = static_cast<std::int32_t>(blockIdx.x * L::lanes + threadIdx.x);
    is_cell_ = cell < fields.cells;
    cell_ = is_cell_ ? cell : fields.topology.null;
  }

  __device__ double& buffer(int place) const { return shared_[place * L::lanes]; }
  __device__ double& row(int c, int place) const { return shared_[(L::rows_at + c * L::rows + place) * L::lanes]; }
  __device__ double& on_face(int side, int entry, int q) const { return buffer(L::face_place(side, entry, q)); }
  __device__ void put_on_face(int side, int entry, const double (&value)[second_points]) const {
#pragma unroll
    for (int q = 0; q < second_points; ++q) on_face(side, entry, q) = value[q];
  }

  /// visit(job) for this member's jobs.
  template <int count, class F>
  __device__ void for_jobs(const F& visit) const {
    for_jobs_of_member<count, L::team>(member_, visit);
  }

  /// Component c of a cell: its record, and that of its upper hats.
  struct Component {
    std::int32_t record;
    std::int32_t above;
  };
  template <int c>
  __device__ Component component(std::int32_t cell) const {
    return {cell, fields_.topology.neighbour[2 * c + 1][cell]};
  }
  template <int c>
  __device__ double coefficient(const Component& of, const int (&index)[3]) const {
    return L::template coefficient<c>(fields_.x, of.record, of.above, index);
  }

  __device__ Face face(int side) const { return is_cell_ ? fields_.topology.face[side][cell_] : Face::interior; }
  /// The cell behind a face, or the null record.
  __device__ std::int32_t beyond(int side) const {
    return face(side) == Face::interior ? fields_.topology.neighbour[side][cell_] : fields_.topology.null;
  }

  /// The tangential component t on a face across a.
  static constexpr int tangent(int a, int t) { return (a + 1 + t) % dim; }
  static constexpr int second_direction(int a) { return dim == 3 ? (a + 2) % dim : 2; }
  /// visit(j, index) for the functions j of the second direction on a face across a that component c has with function
  /// i of the first one.
  template <int c, int a, class F>
  __device__ static void for_second(int i, const F& visit) {
    constexpr int second = second_direction(a);
#pragma unroll turns
    for (int j = 0; j < L::size(c, second); ++j) {
      int index[3]{};
      index[(a + 1) % dim] = i;
      if constexpr (dim == 3) index[second] = j;
      visit(j, index);
    }
  }
  /// Such a function at a point of the second direction.
  template <int c, int a>
  __device__ double in_second(int q, int j) const {
    return dim == 3 ? tables_.value[space(c, second_direction(a))][q][j] : 1.0;
  }
  template <int c, int a>
  __device__ double slope_in_second(int q, int j) const {
    return dim == 3 ? tables_.slope[space(c, second_direction(a))][q][j] : 0.0;
  }

  // Hats of a face, and their derivatives in the second direction.
  static constexpr bool hat_slopes = L::derivatives && dim == 3;
  template <int a>
  __device__ void hats_to_points(int side, int i) const {
    const Component mine = component<a>(cell_);
    double value[second_points]{};
    double slope[second_points]{};
    for_second<a, a>(i, [&](int j, int(&index)[3]) {
      index[a] = side % 2 == 1 ? n : 0;
      const double u = coefficient<a>(mine, index);
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        value[q] += in_second<a, a>(q, j) * u;
        if constexpr (hat_slopes) slope[q] += slope_in_second<a, a>(q, j) * u;
      }
    });
    put_on_face(side, L::hats_at + i, value);
    if constexpr (hat_slopes) put_on_face(side, L::hats_at + n + i, slope);
  }
  template <int a>
  __device__ void hats_from_points(int i) const {
#pragma unroll turns
    for (int upper = 0; upper < 2; ++upper) {
      for_second<a, a>(i, [&](int j, int(&index)[3]) {
        double sum = 0.0;
#pragma unroll
        for (int q = 0; q < second_points; ++q) {
          sum += in_second<a, a>(q, j) * on_face(2 * a + upper, L::hats_at + i, q);
          if constexpr (hat_slopes) sum += slope_in_second<a, a>(q, j) * on_face(2 * a + upper, L::hats_at + n + i, q);
        }
        index[a] = upper * n;
        row(a, L::template place_in_component<a>(index)) += sum;
      });
    }
  }

  /// put(c, number i of component c, row) for the rows of the cell's record, and of its upper hats. Of a record the
  /// lower hats come first.
  template <class Put>
  __device__ void for_rows(const Put& put) const {
    for_jobs<dim * L::block>([&](int i) { put(i / L::block, i % L::block, row(i / L::block, i % L::block)); });
  }
  template <class Put>
  __device__ void for_upper_rows(const Put& put) const {
    for_jobs<dim * L::columns>(
        [&](int i) { put(i / L::columns, i % L::columns, row(i / L::columns, L::block + i % L::columns)); });
  }
  /// The record of a cell in y.
  __device__ double* record(std::int32_t cell) const { return fields_.y + Shape<dim, L::order>::offset(cell); }

  const Tables& tables_;
  const Fields& fields_;
  double* const shared_;
  const int member_;
  std::int32_t cell_;
  bool is_cell_;

 private:
  __device__ Kernel& kernel() { return static_cast<Kernel&>(*this); }

  template <int c>
  __device__ void to_points(int i) const {
    const int function = L::first(c) + i;
    L::template to_lines<c>(tables_, fields_.x, cell_, fields_.topology.neighbour[2 * c + 1][cell_], i,
                            [&](int direction, int line, double value) {
                              if (!L::derivatives && direction > 0) return;
                              buffer(L::place(direction, function, line)) = value;
                            });
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

  /// visit(t, function of the first direction) for one of the functions of traces.
  template <class F>
  __device__ static void with_trace(int job, const F& visit) {
    with_constant<L::tangential>(job < L::trace(1) ? 0 : 1, [&](auto t) { visit(t, job - L::trace(t)); });
  }
  template <int a>
  __device__ void face_to_points(int side, int job) {
    if (job >= L::traces) return kernel().template hats_to_points<a>(side, job - L::traces);
    with_trace(job, [&](auto t, int i) { kernel().template trace_to_points<a, t>(side, i); });
  }
  template <int a>
  __device__ void face_from_points() {
    for_jobs<L::face_jobs>([&](int job) {
      if (job >= L::traces) return kernel().template hats_from_points<a>(job - L::traces);
      with_trace(job, [&](auto t, int i) { kernel().template trace_from_points<a, t>(i); });
    });
  }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::Layout::threads, Kernel::Layout::resident)
    run_cell_team(const __grid_constant__ typename Kernel::Tables tables,
                  const __grid_constant__ typename Kernel::Fields fields) {
  extern __shared__ __align__(16) unsigned char memory[];
  wait_for_earlier_kernels();
  Kernel(tables, fields, reinterpret_cast<double*>(memory)).run();
}

template <class Kernel>
void launch_cell_team(const char* name, const typename Kernel::Tables& tables, const typename Kernel::Fields& fields,
                      Stream stream) {
  using L = typename Kernel::Layout;
  launch(name, run_cell_team<Kernel>, blocks_for(fields.cells, L::lanes), dim3(L::lanes, L::team), L::shared_bytes,
         stream, tables, fields);
}

}  // namespace solenoid::cuda
