#pragma once
/// \file
/// The convective term, cell by cell (engine/convection.hpp).
///
/// Functions of O are Legendre's psi_0..psi_k, those of P here phi_0 = 1, phi_1 = x - 1/2 and the bubbles phi_{j+1} =
/// b_j: even ones and odd ones alternate in both, and all derivatives are sums of few,
///
///     phi_{j+1}' = psi_j,    psi_i' = sum of D_il phi_l over l < k (ConvectionTables::derivative).
///
/// The hats on the faces of a cell are phi_0 / 2 -+ phi_1. Each product u_a u_c is integrated once, against all
/// functions that either component needs, and every face is computed by both of its cells, from the same numbers.
///
/// A thread block has `lanes` cells side by side, a thread a lane and a member of the team; what is shared has the lane
/// as the fastest index. With barriers between them:
///   1. a member has lines of coefficients along z, of the cell and of the traces of what lies beyond its faces across
///      x and y: to the planes of points; both ends and the traces beyond them, to the faces across z;
///   2. a member has a share of the products of a plane, and their sums over the points of the plane in registers: for
///      two lines of points y and 1 - y at a time velocities, products, integrals along x, then along y. It meets the
///      faces across x at the ends of the lines, and has those across y. Two members have the faces across z;
///   3. a member has a function of x and y: integrals along z, and the rows.
/// In 2D there is one plane and nothing across it. A cell has the rows of its bubbles and adds its share of either hat
/// to what is zero before (clear_hats): the sum of zero and two numbers does not depend on their order.
///
/// Traffic per unknown for k = 2: DRAM 18 bytes (u and y are 16, hats once more 2). Limits: docs/notebook.md.

#include "engine/cuda/kernels/convection_planes.cuh"
#include "engine/cuda/kernels/largest_rate.cuh"

namespace solenoid::cuda {

/// The cells of a thread block.
template <int dim, int order, ConvectiveFlux flux_>
class ConvectionBlock : ConvectionMember<dim, order, flux_> {
  using Member = ConvectionMember<dim, order, flux_>;
  using L = ConvectionLayout<dim, order>;
  using Member::arguments_;
  using Member::at;
  using Member::central_;
  using Member::half_points;
  using Member::n;
  using Member::O;
  using Member::P;
  using Member::p;
  using Member::points;
  using Member::tables_;
  using typename Member::Space;

 public:
  __device__ ConvectionBlock(const ConvectionArguments& arguments, double* shared)
      : Member(arguments, shared + threadIdx.x, 0),
        records_(reinterpret_cast<std::int32_t*>(shared + L::memory * L::lanes) + threadIdx.x),
        member_(static_cast<int>(threadIdx.y)) {
    const auto place = static_cast<std::int32_t>(blockIdx.x * L::lanes + threadIdx.x);
    const std::int32_t cell = place / interleave < arguments.blocks.count
                                  ? arguments.blocks.list[place / interleave] * interleave + place % interleave
                                  : arguments.cells;
    cell_ = cell < arguments.cells ? cell : arguments.topology.null;
  }

  __device__ void run() {
    find_records();
    if constexpr (L::prefetches_neighbours) prefetch_neighbours();
    prefetch_later_cells();
    load();
    __syncthreads();
    integrate();
    __syncthreads();
    wait_for_earlier_kernels();  // not before: registers (docs/notebook.md)
    write();
  }

 private:
  // --- records -------------------------------------------------------------------------------------------------------

  __device__ void find_records() {
    const CellTopology& topology = arguments_.topology;
    if constexpr (flux_ == ConvectiveFlux::central) {
#pragma unroll
      for (int side = 0; side < 2 * dim; ++side) {
        const bool inner = cell_ < arguments_.cells && topology.face[side][cell_] == Face::interior;
        if (inner) central_ |= 1U << side;
      }
    }
    const auto beyond = [&](int side, std::int32_t record) { return topology.neighbour[side][record]; };
    constexpr int above = 2 * dim * (dim - 1);
    for_jobs<above + 2 * dim + 1>([&](int job) {
      if (job == above + 2 * dim) {
        std::int32_t free = 0;
#pragma unroll
        for (int side = 0; side < 2 * dim; ++side) {
          if (cell_ < arguments_.cells && !normal_fixed(topology.face[side][cell_])) free |= 1 << side;
        }
        records_[L::free_hats * L::lanes] = free;
      } else if (job < above) {
        const int side = job / (dim - 1);
        const int c = (side / 2 + 1 + job % (dim - 1)) % dim;
        records_[(2 * dim + job) * L::lanes] = beyond(2 * c + 1, beyond(side, cell_));
      } else {
        records_[(job - above) * L::lanes] = beyond(job - above, cell_);
      }
    });
    __syncthreads();
  }
  __device__ std::int32_t beside(int side) const { return records_[side * L::lanes]; }
  /// The record with the upper hats in direction c of the one beyond a side.
  __device__ std::int32_t above(int side, int c) const {
    return records_[(2 * dim + side * (dim - 1) + (c - side / 2 - 1 + dim) % dim) * L::lanes];
  }
  /// Component c of a record.
  __device__ const double* component(std::int32_t record, int c) const {
    return arguments_.u + Shape<dim, order>::offset(record) + c * power(n, dim) * interleave;
  }
  static constexpr int stride(int c, int a) { return a < dim ? velocity_stride(dim, order, c, a) : 0; }
  /// visit(job) for this member's jobs.
  template <int count, class F>
  __device__ void for_jobs(const F& visit) const {
    for_jobs_of_member<count, L::team>(member_, visit);
  }

  // --- 1. coefficients -----------------------------------------------------------------------------------------------

  static constexpr int along_z = L::flat ? 1 : n;

  /// Asks for most of what load() reads of cells beyond faces across y and z, so that many requests are under way.
  __device__ void prefetch_neighbours() const {
    for_jobs<power(n, dim)>([&](int i) {
#pragma unroll
      for (int side = 2; side < 2 * dim; ++side) {
#pragma unroll
        for (int c = 0; c < dim; ++c) {
          if (c != side / 2) prefetch(component(beside(side), c) + i * interleave);
        }
      }
    });
  }
  /// Brings to the second-level cache what the block reads that starts when this one is done.
  __device__ void prefetch_later_cells() const {
    const int thread = static_cast<int>(threadIdx.x) + L::lanes * member_;
    const auto later = static_cast<std::int32_t>(blockIdx.x + L::resident * arguments_.multiprocessors) * L::lanes;
    const std::int32_t place = later / interleave + thread;
    if (later % interleave == 0 && thread < L::most(L::lanes / interleave, 1) && place < arguments_.blocks.count) {
      prefetch_bulk(arguments_.u + std::int64_t{arguments_.blocks.list[place]} * interleave * record_size(dim, order),
                    dim * power(n, dim) * interleave * static_cast<int>(sizeof(double)));
    }
  }

  // What differs between components x and y, or between faces across x and y, is decided at run time: twice as many
  // instructions would not fit the cache.

  /// Component x and y: those with hats, two lines each, come first.
  __device__ void load() const {
    constexpr int own = 2 * n * n;
    constexpr int own_z = own + (L::flat ? 0 : n * n);
    constexpr int traces = own_z + 4 * n;
    constexpr int traces_of_z = traces + (L::flat ? 0 : 4 * n);
    for_jobs<traces_of_z>([&](int job) {
      if (job < own) {
        load_own(job / n % 2, job / (2 * n), job % n);
      } else if (job >= own_z && job < traces) {
        load_trace((job - own_z) % 4, (job - own_z) / 4);
      } else if constexpr (!L::flat) {
        if (job < own_z) {
          load_own_z(job - own);
        } else {
          load_trace_of_z((job - traces) % 4, (job - traces) / 4);
        }
      }
    });
  }
  /// Coefficients of hats become those of phi_0, phi_1.
  template <int size>
  __device__ static void from_hats(double (&lower)[size], double (&upper)[size]) {
#pragma unroll
    for (int l = 0; l < size; ++l) {
      const double a = lower[l];
      const double b = upper[l];
      lower[l] = 0.5 * (a + b);
      upper[l] = b - a;
    }
  }
  __device__ static void read(const double* from, int step, double (&line)[along_z]) {
#pragma unroll
    for (int l = 0; l < along_z; ++l) line[l] = __ldg(from + l * step);
  }
  /// Lines of component x or y, of the cell and of those beyond the faces across z: of its hats (function 0) or of a
  /// bubble, with function `other` of the other direction of planes.
  __device__ void load_own(int c, int function, int other) const {
    constexpr int records = L::flat ? 1 : 3;
    double lines[records][along_z];
    double hats[records][along_z];
    const auto record = [&](int i) { return i == 0 ? cell_ : beside(3 + i); };
    const int along = (c == 0 ? stride(0, 2) : stride(1, 2)) * interleave;
    const int offset = other * (c == 0 ? stride(0, 1) : stride(1, 0)) * interleave;
#pragma unroll
    for (int i = 0; i < records; ++i) {
      read(component(record(i), c) + offset + function * stride(0, 0) * interleave, along, lines[i]);
    }
    if (function == 0) {
#pragma unroll
      for (int i = 0; i < records; ++i) {
        read(component(i == 0 ? beside(2 * c + 1) : above(3 + i, c), c) + offset, along, hats[i]);
      }
#pragma unroll
      for (int i = 0; i < records; ++i) from_hats(lines[i], hats[i]);
    }
    int column = c == 0 ? other * p : other;
    const int step = c == 0 ? 1 : n;
    if (function > 0) column += (function + 1) * step;
#pragma unroll 1
    for (int i = 0;; ++i) {
      to_planes<O>(lines[0], L::own(c) + column);
      if constexpr (!L::flat) {
        double lower;
        double upper;
        this->ends([&](int l) { return lines[0][l]; }, lower, upper);
        at(L::face_at(0) + L::own(c) + column) = lower;
        at(L::face_at(1) + L::own(c) + column) = upper;
        this->ends([&](int l) { return lines[1][l]; }, lower, upper);
        at(L::face_at(0) + L::beyond(c) + column) = upper;
        this->ends([&](int l) { return lines[2][l]; }, lower, upper);
        at(L::face_at(1) + L::beyond(c) + column) = lower;
      }
      if (function > 0 || i == 1) break;
      column += step;
#pragma unroll
      for (int r = 0; r < records; ++r) {
#pragma unroll
        for (int l = 0; l < along_z; ++l) lines[r][l] = hats[r][l];
      }
    }
  }
  /// A line of component z, i + n j for functions i of x and j of y.
  __device__ void load_own_z(int column) const {
    const int offset = (column % n * stride(2, 0) + column / n * stride(2, 1)) * interleave;
    double line[p];
#pragma unroll
    for (int l = 0; l < n; ++l) line[l] = __ldg(component(cell_, 2) + offset + l * stride(2, 2) * interleave);
    line[n] = __ldg(component(beside(5), 2) + offset);
    at(L::face_at(0) + L::normal + column) = line[0];
    at(L::face_at(1) + L::normal + column) = line[n];
    to_phi(line);
    to_planes<P>(line, L::own(2) + column);
  }
  __device__ static void to_phi(double (&line)[p]) {
    const double a = line[0];
    const double b = line[n];
#pragma unroll
    for (int l = n; l > 1; --l) line[l] = line[l - 1];
    line[0] = 0.5 * (a + b);
    line[1] = b - a;
  }
  /// Trace of coefficients along a line that begins there; beyond an upper side it is that at the lower end.
  __device__ double trace(int side, const double* from, int step) const {
    double lower;
    double upper;
    this->ends([&](int m) { return __ldg(from + m * step); }, lower, upper);
    return side % 2 == 1 ? lower : upper;
  }
  /// The other component of planes beyond a side across x or y: its hats (function 0) or a bubble.
  __device__ void load_trace(int side, int function) const {
    const int c = 1 - side / 2;
    const int across = (c == 1 ? stride(1, 0) : stride(0, 1)) * interleave;
    const int along = (c == 1 ? stride(1, 2) : stride(0, 2)) * interleave;
    double line[along_z];
    double hats[along_z];
    const double* const from = component(beside(side), c) + function * stride(0, 0) * interleave;
#pragma unroll
    for (int l = 0; l < along_z; ++l) line[l] = trace(side, from + l * along, across);
    if (function > 0) {
      to_planes<O>(line, L::trace(c, side) + function + 1);
      return;
    }
    const double* const top = component(above(side, c), c);
#pragma unroll
    for (int l = 0; l < along_z; ++l) hats[l] = trace(side, top + l * along, across);
    from_hats(line, hats);
    to_planes<O>(line, L::trace(c, side));
    to_planes<O>(hats, L::trace(c, side) + 1);
  }
  /// Component z beyond such a side, with a function of the other direction of planes.
  __device__ void load_trace_of_z(int side, int function) const {
    const bool across_x = side < 2;
    const int across = (across_x ? stride(2, 0) : stride(2, 1)) * interleave;
    const int offset = function * (across_x ? stride(2, 1) : stride(2, 0)) * interleave;
    double line[p];
    const double* const from = component(beside(side), 2) + offset;
#pragma unroll
    for (int l = 0; l < n; ++l) line[l] = trace(side, from + l * stride(2, 2) * interleave, across);
    line[n] = trace(side, component(above(side, 2), 2) + offset, across);
    to_phi(line);
    to_planes<P>(line, L::trace(2, side) + function);
  }
  /// A line of coefficients along z to a column of all planes.
  template <Space space, int size>
  __device__ void to_planes(const double (&line)[size], int column) const {
    if constexpr (L::flat) {
      at(column) = line[0];
    } else {
      double values[points];
      this->template to_points<space>(line, values);
#pragma unroll
      for (int q = 0; q < points; ++q) at(L::plane_at(q) + column) = values[q];
    }
  }

  // --- 2. planes -----------------------------------------------------------------------------------------------------

  __device__ void integrate() {
    const int share = member_ / L::plane_team;
    const int plane = member_ % L::plane_team;
    if (share < L::shares) {
      with_constant<L::shares>(share, [&](auto of) { integrate<L::share(decltype(of)::value)>(plane); });
    } else {
      if (plane < 2) {
        if constexpr (!L::flat) {
          ConvectionZFace<dim, order, flux_>(arguments_, &at(L::face_at(plane)), central_, 4 + plane).integrate();
        }
      }
      wait_for_others();
    }
  }
  __device__ static void wait_for_others() {
    if constexpr (L::shares > 1) barrier();
    if constexpr (L::adds) barrier();
  }
  template <unsigned share>
  __device__ void integrate(int plane) {
    if (plane >= L::planes) {
      wait_for_others();
      return;
    }
    ConvectionPlane<dim, order, flux_, share> sums(arguments_, &at(L::plane_at(plane)), central_);
    sums.integrate();
    if constexpr (L::shares > 1) barrier();
    sums.store();
    if constexpr (L::adds) barrier();
    sums.add();
    rate_ = sums.rate();
  }

  // --- 3. rows -------------------------------------------------------------------------------------------------------

  /// Columns of components x and y, then of z; in 2D lines of columns.
  __device__ void write() const {
    if constexpr (L::flat) {
      for_jobs<2 * p>([&](int job) { write_line(job / p, job % p); });
    } else {
      for_jobs<L::own_columns>([&](int column) {
        const int c = column / (n * p);
        c < 2 ? write_tangential(c, column - L::own(c)) : write_normal(column - L::own(2));
      });
    }
    if (cell_ != arguments_.topology.null) {
      double* const pressure = arguments_.y + Shape<dim, order>::offset(cell_) + dim * power(n, dim) * interleave;
      for_jobs<power(n, dim)>([&](int job) { pressure[job * interleave] = 0.0; });
    }
    write_largest_rate(rate_, threadIdx.x + L::lanes * threadIdx.y, arguments_.rate);
  }
  __device__ double* own(int c) const {
    return arguments_.y + Shape<dim, order>::offset(cell_) + c * power(n, dim) * interleave;
  }
  /// The hats of component c, or those on its upper side; nullptr where they are prescribed.
  __device__ double* hats(int c, int upper) const {
    if ((records_[L::free_hats * L::lanes] >> (2 * c + upper) & 1) == 0) return nullptr;
    return arguments_.y + Shape<dim, order>::offset(upper == 1 ? beside(2 * c + 1) : cell_) +
           c * power(n, dim) * interleave;
  }
  /// Even and odd parts of a column of planes.
  __device__ void halves(int column, double (&even)[half_points], double (&odd)[half_points]) const {
#pragma unroll
    for (int h = 0; h < half_points; ++h) {
      const double lower = at(L::plane_at(h) + column);
      const double upper = h == points - 1 - h ? 0.0 : at(L::plane_at(points - 1 - h) + column);
      even[h] = lower + upper;
      odd[h] = h == points - 1 - h ? 0.0 : lower - upper;
    }
  }
  /// Integral against function i of even and odd parts.
  __device__ static double against(const double (*test)[max_n + 1], int i, const double (&even)[half_points],
                                   const double (&odd)[half_points], bool is_even) {
    double sum = 0.0;
#pragma unroll
    for (int h = 0; h < half_points; ++h) {
      if (!is_even && h == points - 1 - h) continue;
      sum += test[h][i] * (is_even ? even[h] : odd[h]);
    }
    return sum;
  }
  /// In 2D: the hats on one side or a bubble of component x or y, with all functions of the other direction.
  __device__ void write_line(int c, int first) const {
    if (cell_ == arguments_.topology.null) return;
    const int from = L::own(c) + (c == 0 ? first : first * n);
    const auto row = [&](int other) { return at(from + other * (c == 0 ? p : 1)); };
    const int step = (c == 0 ? stride(0, 1) : stride(1, 0)) * interleave;
    if (first < 2) {
      if (double* const y = hats(c, first); y != nullptr) {
#pragma unroll
        for (int other = 0; other < n; ++other) atomicAdd(y + other * step, row(other));
      }
    } else {
      double* const y = own(c) + (first - 1) * stride(0, 0) * interleave;
#pragma unroll
      for (int other = 0; other < n; ++other) y[other * step] = row(other);
    }
  }
  /// Component x, [y][x], or y, [y][x]: a hat or bubble in its own direction.
  __device__ void write_tangential(int c, int column) const {
    const int first = c == 0 ? column % p : column / n;
    const int other = c == 0 ? column / p : column % n;
    double even[half_points];
    double odd[half_points];
    double derived_even[half_points];
    double derived_odd[half_points];
    halves(L::own(c) + column, even, odd);
    halves(L::derived(c) + column, derived_even, derived_odd);
    const double lower = at(L::face_at(0) + L::own(c) + column);
    const double upper = at(L::face_at(1) + L::own(c) + column);
    double rows[n];
#pragma unroll
    for (int l = 0; l < n; ++l) {
      rows[l] = against(tables_.test[O], l, even, odd, l % 2 == 0);
      double over = this->faces(l, upper + lower, upper - lower);
      if (l > 0) over -= against(tables_.test_derivative, l, derived_even, derived_odd, l % 2 == 1);
      rows[l] += tables_.scale[2] * over;
    }
    if (cell_ == arguments_.topology.null) return;
    const int along = (c == 0 ? stride(0, 2) : stride(1, 2)) * interleave;
    const int offset = other * (c == 0 ? stride(0, 1) : stride(1, 0)) * interleave;
    if (first < 2) {
      if (double* const y = hats(c, first); y != nullptr) {
#pragma unroll
        for (int l = 0; l < n; ++l) atomicAdd(y + offset + l * along, rows[l]);
      }
    } else {
      double* const y = own(c) + (first - 1) * stride(0, 0) * interleave + offset;
#pragma unroll
      for (int l = 0; l < n; ++l) y[l * along] = rows[l];
    }
  }
  /// Component z, [y][x].
  __device__ void write_normal(int column) const {
    double even[half_points];
    double odd[half_points];
    double derived_even[half_points];
    double derived_odd[half_points];
    halves(L::own(2) + column, even, odd);
    halves(L::derived(2) + column, derived_even, derived_odd);
    double rows[p];
#pragma unroll
    for (int l = 0; l < p; ++l) {
      rows[l] = against(tables_.test[P], l, even, odd, l % 2 == 0);
      if (l > 0) rows[l] -= tables_.scale[2] * against(tables_.test[O], l - 1, derived_even, derived_odd, l % 2 == 1);
    }
    Member::to_hats(rows);
    if (cell_ == arguments_.topology.null) return;
    const int offset = (column % n * stride(2, 0) + column / n * stride(2, 1)) * interleave;
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      if (double* const y = hats(2, upper); y != nullptr) atomicAdd(y + offset, rows[upper]);
    }
    double* const y = own(2) + offset;
#pragma unroll
    for (int l = 1; l < n; ++l) y[l * stride(2, 2) * interleave] = rows[l + 1];
  }
  std::int32_t* const records_;
  const int member_;
  std::int32_t cell_;
  std::uint64_t rate_ = 0;
};

template <int dim, int order, ConvectiveFlux flux>
__global__ void __launch_bounds__(ConvectionLayout<dim, order>::threads, ConvectionLayout<dim, order>::resident)
    convection_kernel(const __grid_constant__ ConvectionArguments arguments) {
  extern __shared__ __align__(16) unsigned char memory[];
  ConvectionBlock<dim, order, flux> block(arguments, reinterpret_cast<double*>(memory));
  block.run();
}

template <int dim, int order>
void convect(const ConvectionArguments& arguments, Stream stream) {
  using L = ConvectionLayout<dim, order>;
  const auto blocks = static_cast<unsigned>((arguments.blocks.count * interleave + L::lanes - 1) / L::lanes);
  const auto start = [&](auto kernel) {
    constexpr bool early = false;
    launch<early>("convection", kernel, blocks, dim3(L::lanes, L::team), L::shared_bytes, stream, arguments);
  };
  if (arguments.flux == ConvectiveFlux::upwind) {
    start(convection_kernel<dim, order, ConvectiveFlux::upwind>);
  } else {
    start(convection_kernel<dim, order, ConvectiveFlux::central>);
  }
}

}  // namespace solenoid::cuda
