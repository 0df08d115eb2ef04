#pragma once
/// \file
/// The convective term, cell by cell (engine/convection.hpp).
///
/// All in Legendre functions psi_0..psi_{k+1}: P's functions are sums of two (ConvectionTables::primitive), derivatives
/// sums of those below, and one table with even and odd functions apart brings coefficients to points and back. Each
/// product u_a u_c is integrated once, against all functions that either component needs,
///
///     T_ac[i][j][l] = sum over points of weight u_a u_c psi_i psi_j psi_l,
///
/// and derivatives are formed of T. Every face is computed by both of its cells, from the same numbers.
///
/// A thread block has `lanes` cells side by side, a thread a lane and a member of the team; what is shared has the lane
/// as the fastest index. With barriers between them:
///   1. coefficients along z, of the cell and of the traces of what lies beyond its faces across x and y, to the planes
///      of points; both ends and the traces beyond them, to the faces across z;
///   2. the faces across z: lines of points along x, fluxes, integrals along x and y;
///   3. for two planes of points z and 1 - z at a time,
///      a. a member has a line of points along x: velocities, products, integrals against functions of x; faces across
///         x, which it meets at both ends. Others have the lines of the faces across y, at either end of the planes;
///      b. a member has one function of x of a product: integrals along y, summed up over planes in registers;
///   4. derivatives, faces, and the functions of P.
/// In 2D there is one plane and nothing across it. A cell has the rows of its bubbles and a share of either hat; that
/// of the upper hat is left for the cell above (add_upper_hats).
///
/// Traffic per unknown for k = 2: DRAM 18 bytes (measured; u and y are 16). Limits: docs/notebook.md.

#include "engine/cuda/kernels/convection.hpp"
#include "engine/cuda/kernels/shape.cuh"

namespace solenoid::cuda {

/// Sizes, and what lies where in shared memory, in numbers of a lane.
template <int dim, int order>
struct ConvectionLayout {
  static constexpr int n = order + 1;  // functions of O
  static constexpr int p = order + 2;  // of P
  static constexpr int points = convection_points(order);
  static constexpr int half_points = (points + 1) / 2;
  static constexpr bool has_centre = points % 2 == 1;
  static constexpr bool flat = dim == 2;
  static constexpr int planes = flat ? 1 : 2;  // at a time
  static constexpr int most(int a, int b) { return a > b ? a : b; }

  /// Functions of component c in direction a.
  static constexpr int size(int c, int a) { return a >= dim ? 1 : a == c ? p : n; }

  // Columns of a plane: components x, y, z, [y][x], Legendre; traces of what lies beyond the lower and upper face
  // across x of y and z, and across y of x and z, in the functions of the component as they are.
  static constexpr int own(int c) { return c == 0 ? 0 : c == 1 ? n * p : 2 * n * p; }
  static constexpr int trace(int c, int side) { return own_columns + side * trace_size + (c == 2 ? p : 0); }
  static constexpr int own_columns = 2 * n * p + (flat ? 0 : n * n);
  static constexpr int trace_size = p + (flat ? 0 : n);
  static constexpr int columns = own_columns + 4 * trace_size;
  static constexpr int o_length = flat ? 1 : n;
  // Those of a face across z: the components, and behind them x and y from beyond.
  static constexpr int beyond(int c) { return own_columns + own(c); }
  static constexpr int face_columns = own_columns + 2 * n * p;

  // Rows of products: one function of x each; those with functions of P in x have, besides, the sum and the difference
  // of both faces across x.
  enum Product { xy, xz, xx, yy, zz, yz };
  static constexpr int row(Product product) {
    constexpr int squares = (flat ? 1 : 2) * (p + 2);
    switch (product) {
      case xy: return 0;
      case xz: return p + 2;
      case xx: return squares;
      case yy: return squares + n;
      case zz: return squares + 2 * n;
      default: return squares + 3 * n;
    }
  }
  static constexpr int rows = flat ? row(zz) : row(yz) + n;
  /// Functions of y and z that a product is integrated against.
  static constexpr int size_y(Product product) { return product == xy || product == yz ? p : n; }
  static constexpr int size_z(Product product) { return flat ? 1 : product == xz || product == yz ? p : n; }

  // Rows take faces across y along, [side][z]: the tangential component x with those of xz (2D: xy), z with those of
  // xx.
  static constexpr Product with_x = flat ? xy : xz;

  // Memory.
  static constexpr int z_faces_at = 0;  // [side][component x: [y][x], component y]: integrals
  static constexpr int z_face = flat ? 0 : 2 * n * p;
  static constexpr int planes_at = 2 * z_face;  // [point of z][column]
  static constexpr int all_planes = flat ? 1 : points;
  // At first the faces across z, [side][column], and their lines, [side][function of x][point of y]:
  static constexpr int face_planes_at = planes_at + all_planes * columns;
  static constexpr int face_lines_at = face_planes_at + 2 * face_columns;
  static constexpr int faces_end = flat ? 0 : face_lines_at + 2 * trace_size * points;
  // Then lines of planes, [plane][row][point of y], and those of faces across y, [plane][side][function of x]:
  static constexpr int lines_at = face_planes_at;
  static constexpr int y_faces_at = lines_at + planes * rows * points;
  static constexpr int work_end = most(faces_end, y_faces_at + planes * 2 * trace_size);
  // In the end, from planes_at on, what rows of products become:
  //   tested: products with a function of P in x, for derivatives along x, [row][y][z]: the first rows, then the faces;
  //   squares, [row][y][z];
  //   rest of a component: derivatives along y and z, and faces, [x][y][z]; for x those of xy and of xz apart;
  //   y_faces_of_z: [even, odd function of y][x][z].
  static constexpr int size_of(Product product) { return size_y(product) * size_z(product); }
  static constexpr int tested_rows = n - 1;
  static constexpr int tested_at(Product product) {
    return planes_at + (product == xy ? 0 : (tested_rows + 2) * size_of(xy));
  }
  static constexpr int squares_at = tested_at(xz) + (flat ? 0 : (tested_rows + 2) * size_of(xz));
  static constexpr int rest_at(int c) {
    constexpr int first = squares_at + dim * n * size_of(xx);
    return first + (c == 0 ? 0 : (flat ? 1 : 2) * rest_x + (c == 1 ? 0 : n * p * n));
  }
  static constexpr int rest_x = p * n * o_length;
  static constexpr int y_faces_of_z_at = rest_at(2) + (flat ? 0 : n * n * p);
  static constexpr int result_end = y_faces_of_z_at + (flat ? 0 : 2 * n * p);
  static constexpr int memory = most(work_end, flat ? rest_at(1) : result_end);

  static constexpr int line_jobs = planes * points;
  static constexpr int y_face_jobs = planes * 2;
  /// Records around the cell, as 32-bit numbers behind all that: beyond its sides, then above these, [side][turn].
  static constexpr int records = 2 * dim * dim;
  static constexpr int bytes_of_lane = memory * static_cast<int>(sizeof(double)) + records * 4;
  static constexpr int lanes = 16 * bytes_of_lane <= static_cast<int>(most_shared_bytes) ? 16 : 8;
  static constexpr int in_warp = 32 / lanes;
  static constexpr int team = (most(rows, line_jobs + y_face_jobs) + in_warp - 1) / in_warp * in_warp;
  static constexpr int threads = lanes * team;
  static constexpr int shared_bytes = lanes * bytes_of_lane;
  /// Thread blocks for a multiprocessor, by shared memory and by registers.
  static constexpr int resident_by(int a, int b) { return most(1, a < b ? a : b); }
  static constexpr int resident =
      resident_by(static_cast<int>(most_shared_bytes) / (shared_bytes + 1024), 65536 / (threads * 72));
};

template <int dim, int order>
class ConvectionBlock {
  using L = ConvectionLayout<dim, order>;
  using Product = typename L::Product;
  static constexpr int n = L::n;
  static constexpr int p = L::p;
  static constexpr int points = L::points;
  static constexpr int half_points = L::half_points;
  static constexpr int columns_of_component = power(n, dim - 1);

 public:
  __device__ ConvectionBlock(const ConvectionArguments& arguments, double* shared)
      : arguments_(arguments),
        tables_(arguments.tables),
        shared_(shared + threadIdx.x),
        records_(reinterpret_cast<std::int32_t*>(shared + L::memory * L::lanes) + threadIdx.x),
        member_(static_cast<int>(threadIdx.y)) {
    constexpr int parts = interleave / L::lanes;
    const auto block = static_cast<std::int32_t>(blockIdx.x);
    const std::int32_t cell = arguments.blocks.list[block / parts] * interleave + block % parts * L::lanes +
                              static_cast<std::int32_t>(threadIdx.x);
    cell_ = cell < arguments.cells ? cell : arguments.topology.null;
    find_records();
    // Functions at the point of y of this member's line.
    const int q = member_ % points;
    const int h = q < half_points ? q : points - 1 - q;
#pragma unroll
    for (int j = 0; j < p; ++j) at_y_[j] = (q == h || j % 2 == 0 ? 1.0 : -1.0) * tables_.value[h][j];
#pragma unroll
    for (int j = 0; j < p; ++j) own_at_y_[j] = at_y_[j];
    to_continuous(own_at_y_);
  }

  __device__ void run() {
    load();
    __syncthreads();
    if constexpr (L::flat) {
      plane_pair(0, false);
    } else {
      z_faces();
#pragma unroll 1
      for (int h = 0; h < points / 2; ++h) plane_pair(h, false);
      if constexpr (L::has_centre) plane_pair(points / 2, true);
    }
    store_products();
    __syncthreads();
    write();
  }

 private:
  // --- records -------------------------------------------------------------------------------------------------------

  __device__ void find_records() {
    const CellTopology& topology = arguments_.topology;
#pragma unroll
    for (int side = 0; side < 2 * dim; ++side) {
      if (cell_ < arguments_.cells && topology.face[side][cell_] == Face::interior) inner_ |= 1U << side;
    }
    if (member_ < 2 * dim) records_[member_ * L::lanes] = topology.neighbour[member_][cell_];
    __syncthreads();
    for_jobs<2 * dim*(dim - 1)>([&](int job) {
      const int side = job / (dim - 1);
      const int c = (side / 2 + 1 + job % (dim - 1)) % dim;
      records_[(2 * dim + job) * L::lanes] = topology.neighbour[2 * c + 1][beside(side)];
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

  // --- transforms ----------------------------------------------------------------------------------------------------

  __device__ double& at(int place) const { return shared_[place * L::lanes]; }

  /// Values at the points of a line.
  template <int size>
  __device__ void to_points(const double (&a)[size], double (&values)[points]) const {
#pragma unroll
    for (int h = 0; h < half_points; ++h) {
      double even = tables_.value[h][0] * a[0];
      double odd = 0.0;
#pragma unroll
      for (int i = 1; i < size; ++i) {
        if (i % 2 == 1 && h == points - 1 - h) continue;
        (i % 2 == 0 ? even : odd) += tables_.value[h][i] * a[i];
      }
      values[h] = even + odd;
      if (h != points - 1 - h) values[points - 1 - h] = even - odd;
    }
  }
  /// Integrals of f(q) psi_i over a line.
  template <int size, class F>
  __device__ void from_points(const F& f, double (&sums)[size]) const {
#pragma unroll
    for (int i = 0; i < size; ++i) sums[i] = 0.0;
#pragma unroll
    for (int h = 0; h < half_points; ++h) {
      const bool centre = h == points - 1 - h;
      const double lower = f(h);
      const double upper = centre ? 0.0 : f(points - 1 - h);
      const double even = lower + upper;
      const double odd = lower - upper;
#pragma unroll
      for (int i = 0; i < size; ++i) {
        if (i % 2 == 1 && centre) continue;
        sums[i] += tables_.test[h][i] * (i % 2 == 0 ? even : odd);
      }
    }
  }
  /// Values at both ends of a line.
  template <int size>
  __device__ void ends(const double (&a)[size], double& lower, double& upper) const {
    double even = a[0];
    double odd = 0.0;
#pragma unroll
    for (int i = 1; i < size; ++i) (i % 2 == 0 ? even : odd) += tables_.end[i] * a[i];
    lower = even - odd;
    upper = even + odd;
  }
  /// Coefficients in P become those in Legendre functions; and integrals against these those against P.
  __device__ void to_legendre(double (&a)[p]) const {
    double b[p];
#pragma unroll
    for (int i = 0; i < p; ++i) b[i] = a[i];
#pragma unroll
    for (int i = 0; i < p; ++i) {
      double sum = i == 0   ? 0.5 * (b[0] + b[n])
                   : i == 1 ? tables_.primitive[1] * (b[n] - b[0])
                            : tables_.primitive[i] * b[i - 1];
      if (i + 1 < n) sum -= tables_.primitive[i + 1] * b[i + 1];
      a[i] = sum;
    }
  }
  __device__ void to_continuous(double (&t)[p]) const {
    double b[p];
    b[0] = 0.5 * t[0] - tables_.primitive[1] * t[1];
    b[n] = 0.5 * t[0] + tables_.primitive[1] * t[1];
#pragma unroll
    for (int j = 1; j < n; ++j) b[j] = tables_.primitive[j + 1] * t[j + 1] - tables_.primitive[j] * t[j - 1];
#pragma unroll
    for (int i = 0; i < p; ++i) t[i] = b[i];
  }
  /// <w {u} + s |w| / 2 [u], .>: w outward, mine and its from inside and outside; leaving: (1 + s) / 2.
  __device__ static double flux(double w, double mine, double its, double leaving) {
    return w * (its + (w > 0.0 ? leaving : 1.0 - leaving) * (mine - its));
  }
  __device__ double leaving(int side) const { return (inner_ >> side & 1U) != 0 ? 0.5 + 0.5 * arguments_.upwind : 1.0; }

  /// visit(job) for this member's jobs.
  template <int count, class F>
  __device__ void for_jobs(const F& visit) const {
    for_jobs_of_member<count, L::team>(member_, visit);
  }

  // --- 1. coefficients -----------------------------------------------------------------------------------------------

  /// Function i of component c in its own direction, from the component in its record or in that above it.
  template <int c>
  __device__ static double read(const double* own, const double* above, int i, int offset) {
    return __ldg(i < n ? own + (i * velocity_stride(dim, order, c, c) + offset) * interleave
                       : above + offset * interleave);
  }

  __device__ void load() const {
    constexpr int own = dim * n;
    constexpr int traces = own + 4 * p;
    constexpr int traces_of_z = traces + (L::flat ? 0 : 4 * n);
    constexpr int beyond_z = traces_of_z + (L::flat ? 0 : 4 * n);
    for_jobs<beyond_z>([&](int job) {
      if (job < own) {
        with_constant<dim>(job / n, [&](auto of) { load_own<decltype(of)::value>(job % n); });
      } else if (job < traces) {
        const int side = (job - own) / p;
        with_constant<2>(side / 2, [&](auto across) { load_trace<decltype(across)::value>(side, (job - own) % p); });
      } else if constexpr (!L::flat) {
        if (job < traces_of_z) {
          const int side = (job - traces) / n;
          with_constant<2>(side / 2,
                           [&](auto across) { load_trace_of_z<decltype(across)::value>(side, (job - traces) % n); });
        } else {
          const int line = (job - traces_of_z) / n;
          with_constant<2>(line / 2,
                           [&](auto of) { load_beyond_z<decltype(of)::value>(line % 2, (job - traces_of_z) % n); });
        }
      }
    });
  }
  /// Component x or y, with function i of the other direction of planes; or z with function i of x.
  template <int c>
  __device__ void load_own(int i) const {
    constexpr int other = c == 0 ? 1 : 0;
    const int first = i * velocity_stride(dim, order, c, other) * interleave;
    const double* const own = component(cell_, c) + first;
    const double* const above = component(beside(2 * c + 1), c) + first;
    if constexpr (c < 2) {
      double lines[p][L::o_length];  // in z
#pragma unroll
      for (int l = 0; l < L::o_length; ++l) {
        double line[p];
#pragma unroll
        for (int m = 0; m < p; ++m) line[m] = read<c>(own, above, m, l * stride_of_z<c>());
        to_legendre(line);
#pragma unroll
        for (int m = 0; m < p; ++m) lines[m][l] = line[m];
      }
#pragma unroll
      for (int m = 0; m < p; ++m) {
        const int column = L::own(c) + (c == 0 ? i * p + m : m * n + i);
        to_planes(lines[m], column);
        to_faces(lines[m], column);
      }
    } else {
#pragma unroll
      for (int j = 0; j < n; ++j) {
        double line[p];
#pragma unroll
        for (int l = 0; l < p; ++l) line[l] = read<c>(own, above, l, j * velocity_stride(dim, order, c, 1));
        to_legendre(line);
        const int column = L::own(c) + j * n + i;
        to_planes(line, column);
        to_faces(line, column);
      }
    }
  }
  /// The other component of planes beyond a side across a (x, y), its function i in its own direction.
  template <int a>
  __device__ void load_trace(int side, int i) const {
    constexpr int c = 1 - a;
    const double* const from = component(i < n ? beside(side) : above(side, c), c) +
                               (i < n ? i * velocity_stride(dim, order, c, c) * interleave : 0);
    double line[L::o_length];
#pragma unroll
    for (int l = 0; l < L::o_length; ++l) line[l] = trace_of<c, a>(side, from, from, 0, l * stride_of_z<c>());
    to_planes(line, L::trace(c, side) + i);
  }
  /// Component z beyond a side across a, with function i of the other direction of planes.
  template <int a>
  __device__ void load_trace_of_z(int side, int i) const {
    const int first = i * velocity_stride(dim, order, 2, 1 - a) * interleave;
    const double* const own = component(beside(side), 2) + first;
    const double* const top = component(above(side, 2), 2) + first;
    double line[p];
#pragma unroll
    for (int l = 0; l < p; ++l) line[l] = trace_of<2, a>(side, own, top, l, 0);
    to_legendre(line);
    to_planes(line, L::trace(2, side) + i);
  }
  /// Component c beyond a side across z, with function i of the other direction of planes.
  template <int c>
  __device__ void load_beyond_z(int upper, int i) const {
    const int first = i * velocity_stride(dim, order, c, 1 - c) * interleave;
    const double* const own = component(beside(4 + upper), c) + first;
    const double* const top = component(above(4 + upper, c), c) + first;
    double line[p];
#pragma unroll
    for (int m = 0; m < p; ++m) line[m] = trace_of<c, 2>(4 + upper, own, top, m, 0);
    to_legendre(line);
#pragma unroll
    for (int m = 0; m < p; ++m) {
      at(L::face_planes_at + upper * L::face_columns + L::beyond(c) + (c == 0 ? i * p + m : m * n + i)) = line[m];
    }
  }
  /// Trace of component c, function i of its own direction, from beyond a side across a.
  template <int c, int a>
  __device__ double trace_of(int side, const double* own, const double* above, int i, int offset) const {
    double even = read<c>(own, above, i, offset);
    double odd = 0.0;
#pragma unroll
    for (int m = 1; m < n; ++m) {
      (m % 2 == 0 ? even : odd) +=
          tables_.end[m] * read<c>(own, above, i, offset + m * velocity_stride(dim, order, c, a));
    }
    return side % 2 == 1 ? even - odd : even + odd;  // beyond an upper side is its lower end
  }
  template <int c>
  __device__ static constexpr int stride_of_z() {
    return L::flat ? 0 : velocity_stride(dim, order, c, 2);
  }
  /// A line of coefficients along z to a column of all planes,
  template <int size>
  __device__ void to_planes(const double (&line)[size], int column) const {
    if constexpr (L::flat) {
      at(L::planes_at + column) = line[0];
    } else {
      double values[points];
      to_points(line, values);
#pragma unroll
      for (int q = 0; q < points; ++q) at(L::planes_at + q * L::columns + column) = values[q];
    }
  }
  /// and of both faces.
  template <int size>
  __device__ void to_faces(const double (&line)[size], int column) const {
    if constexpr (!L::flat) {
      double lower;
      double upper;
      ends(line, lower, upper);
      at(L::face_planes_at + column) = lower;
      at(L::face_planes_at + L::face_columns + column) = upper;
    }
  }

  // --- lines ---------------------------------------------------------------------------------------------------------

  /// Coefficients along x at this member's y, of ny lines.
  template <int nx, int ny>
  __device__ void at_y(int place, double (&line)[nx]) const {
#pragma unroll
    for (int i = 0; i < nx; ++i) {
      line[i] = at_y_[0] * at(place + i);
#pragma unroll
      for (int j = 1; j < ny; ++j) line[i] += at_y_[j] * at(place + j * nx + i);
    }
  }
  /// A trace at this member's y; of a component with functions of P in y, or of O.
  template <int c>
  __device__ double trace_at_y(int place) const {
    double sum = 0.0;
#pragma unroll
    for (int j = 0; j < L::size(c, 1); ++j) sum += (c == 1 ? own_at_y_ : at_y_)[j] * at(place + j);
    return sum;
  }
  template <int size>
  __device__ void store_line(int plane, int row, const double (&sums)[size]) const {
#pragma unroll
    for (int i = 0; i < size; ++i) line_at(plane, row + i) = sums[i];
  }
  __device__ double& line_at(int plane, int row) const {
    return at(L::lines_at + (plane * L::rows + row) * points + member_ % points);
  }
  /// Where the values of a plane of the pair z = h-th point and 1 - z begin.
  __device__ static int values_at(int plane, int h) {
    return L::planes_at + (plane == 0 ? h : points - 1 - h) * L::columns;
  }

  /// u_a u_c along the line.
  template <int size>
  __device__ void integrate(int plane, int row, const double (&u)[points], const double (&v)[points]) const {
    double sums[size];
    from_points([&](int q) { return u[q] * v[q]; }, sums);
    store_line(plane, row, sums);
  }
  /// Faces across x, met by the line at both ends: component c, of which `line` are the coefficients.
  template <int c, int size>
  __device__ void x_faces(int values, int plane, int row, double lower_w, double upper_w,
                          const double (&line)[size]) const {
    double lower;
    double upper;
    ends(line, lower, upper);
    const double below = flux(-lower_w, lower, trace_at_y<c>(values + L::trace(c, 0)), leaving(0));
    const double above = flux(upper_w, upper, trace_at_y<c>(values + L::trace(c, 1)), leaving(1));
    line_at(plane, row) = above + below;
    line_at(plane, row + 1) = above - below;
  }
  /// 3a. The line of a member.
  __device__ void line(int plane, int values) {
    double ux[points];
    double uy[points];
    double line_x[p];
    double line_y[n];
    at_y<p, n>(values + L::own(0), line_x);
    at_y<n, p>(values + L::own(1), line_y);
    double lower_w;
    double upper_w;
    ends(line_x, lower_w, upper_w);
    x_faces<1>(values, plane, L::row(L::xy) + p, lower_w, upper_w, line_y);
    to_points(line_x, ux);
    to_points(line_y, uy);
    integrate<n>(plane, L::row(L::xx), ux, ux);
    integrate<p>(plane, L::row(L::xy), ux, uy);
    integrate<n>(plane, L::row(L::yy), uy, uy);
    double crossing[points];
#pragma unroll
    for (int q = 0; q < points; ++q) crossing[q] = fabs(tables_.scale[0] * ux[q]) + fabs(tables_.scale[1] * uy[q]);
    if constexpr (!L::flat) {
      double uz[points];
      double line_z[n];
      at_y<n, n>(values + L::own(2), line_z);
      x_faces<2>(values, plane, L::row(L::xz) + p, lower_w, upper_w, line_z);
      to_points(line_z, uz);
      integrate<p>(plane, L::row(L::xz), ux, uz);
      integrate<n>(plane, L::row(L::yz), uy, uz);
      integrate<n>(plane, L::row(L::zz), uz, uz);
#pragma unroll
      for (int q = 0; q < points; ++q) crossing[q] += fabs(tables_.scale[2] * uz[q]);
    }
#pragma unroll
    for (int q = 0; q < points; ++q) {
      // As bits, so that no NaN is lost.
      const auto bits = static_cast<std::uint64_t>(__double_as_longlong(crossing[q]));
      rate_ = bits > rate_ ? bits : rate_;
    }
  }

  /// Coefficients along x at an end of a plane, of ny lines.
  template <int nx, int ny>
  __device__ void at_end(int place, int upper, double (&line)[nx]) const {
#pragma unroll
    for (int i = 0; i < nx; ++i) {
      double even = at(place + i);
      double odd = 0.0;
#pragma unroll
      for (int j = 1; j < ny; ++j) (j % 2 == 0 ? even : odd) += tables_.end[j] * at(place + j * nx + i);
      line[i] = upper != 0 ? even + odd : even - odd;
    }
  }
  /// Integrals of the flux on a line: `mine` and `its` are coefficients.
  template <int size>
  __device__ void face_line(const double (&w)[points], double sign, const double (&mine)[size],
                            const double (&its)[size], double leaving, double (&sums)[size]) const {
    double inside[points];
    double outside[points];
    to_points(mine, inside);
    to_points(its, outside);
    from_points([&](int q) { return flux(sign * w[q], inside[q], outside[q], leaving); }, sums);
  }
  /// The face across y at an end of the plane.
  __device__ void y_face(int plane, int values, int upper) const {
    double w[points];
    {
      double normal[n];
      at_end<n, p>(values + L::own(1), upper, normal);
      to_points(normal, w);
    }
    y_face<0>(plane, values, upper, w);
    if constexpr (!L::flat) y_face<2>(plane, values, upper, w);
  }
  template <int c>
  __device__ void y_face(int plane, int values, int upper, const double (&w)[points]) const {
    constexpr int nx = L::size(c, 0);
    double mine[nx];
    double its[nx];
    at_end<nx, n>(values + L::own(c), upper, mine);
#pragma unroll
    for (int i = 0; i < nx; ++i) its[i] = at(values + L::trace(c, 2 + upper) + i);
    if constexpr (c == 0) to_legendre(its);
    double sums[nx];
    face_line(w, upper != 0 ? 1.0 : -1.0, mine, its, leaving(2 + upper), sums);
#pragma unroll
    for (int i = 0; i < nx; ++i) {
      at(L::y_faces_at + (plane * 2 + upper) * L::trace_size + (c == 0 ? 0 : p) + i) = sums[i];
    }
  }

  /// 3b. A row of a product: integrals along y, added up along z.
  template <Product product>
  __device__ void accumulate(int row, int h, bool centre) {
    constexpr int ny = L::size_y(product);
    constexpr int nz = L::size_z(product);
    const auto value = [&](int plane, int q) { return at(L::lines_at + (plane * L::rows + row) * points + q); };
    double lower[ny];
    from_points([&](int q) { return value(0, q); }, lower);
    if constexpr (L::flat) {
#pragma unroll
      for (int j = 0; j < ny; ++j) sums_[j] = lower[j];
    } else {
      double upper[ny]{};
      if (!centre) from_points([&](int q) { return value(1, q); }, upper);
#pragma unroll
      for (int j = 0; j < ny; ++j) add_along_z<nz>(j * nz, lower[j], upper[j], h);
    }
  }
  template <int nz>
  __device__ void add_along_z(int place, double lower, double upper, int h) {
    if constexpr (L::flat) {
      sums_[place] = lower;
    } else {
#pragma unroll
      for (int l = 0; l < nz; ++l)
        sums_[place + l] += tables_.test[h][l] * (l % 2 == 0 ? lower + upper : lower - upper);
    }
  }
  /// Faces across y that a row takes along, behind its own.
  template <int behind, int nz>
  __device__ void accumulate_y_faces(int function, int h, bool centre) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int place = L::y_faces_at + side * L::trace_size + function;
      const double upper = L::flat || centre ? 0.0 : at(place + 2 * L::trace_size);
      add_along_z<nz>(behind + side * nz, at(place), upper, h);
    }
  }
  /// visit(product, first row, rows taken along for component x, for z) for the product of this member's row.
  template <class F>
  __device__ void with_product(const F& visit) const {
    const auto is = [&](Product product) {
      return member_ >= L::row(product) &&
             member_ < L::row(product) + (product == L::xy || product == L::xz ? p + 2 : n);
    };
    if (is(L::xy)) {
      visit(std::integral_constant<Product, L::xy>());
    } else if (!L::flat && is(L::xz)) {
      visit(std::integral_constant<Product, L::xz>());
    } else if (!L::flat && is(L::yz)) {
      visit(std::integral_constant<Product, L::yz>());
    } else if (member_ < L::rows) {
      visit(std::integral_constant<Product, L::xx>());  // all squares are alike
    }
  }
  __device__ void accumulate(int h, bool centre) {
    with_product([&](auto of) {
      constexpr Product product = decltype(of)::value;
      accumulate<product>(member_, h, centre);
      const int function = member_ - L::row(product);
      if constexpr (product == L::with_x) {
        if (function < p) accumulate_y_faces<L::size_of(product), L::o_length>(function, h, centre);
      }
      if constexpr (!L::flat && product == L::xx) {
        if (function < n) accumulate_y_faces<L::size_of(product), p>(p + function, h, centre);
      }
    });
  }

  /// The planes z and 1 - z, or that in the middle.
  __device__ void plane_pair(int h, bool centre) {
    const int count = centre ? 1 : L::planes;
    if (member_ < L::line_jobs) {
      const int plane = member_ / points;
      if (plane < count) line(plane, values_at(plane, h));
    } else if (const int job = member_ - L::line_jobs; job < 2 * count) {
      y_face(job / 2, values_at(job / 2, h), job % 2);
    }
    __syncthreads();
    accumulate(h, centre);
    __syncthreads();
  }

  /// 2. Faces across z: lines, and integrals along y.
  __device__ void z_faces() const {
    if (member_ < L::line_jobs) {
      const int side = member_ / points;
      const int values = L::face_planes_at + side * L::face_columns;
      double w[points];
      {
        double normal[n];
        at_y<n, n>(values + L::own(2), normal);
        to_points(normal, w);
      }
      z_face_line<0>(side, values, w);
      z_face_line<1>(side, values, w);
    }
    __syncthreads();
    for_jobs<2 * L::trace_size>([&](int job) {
      const int side = job / L::trace_size;
      const int row = job % L::trace_size;
      if (row < p) {
        z_face_row<0>(side, row, row);
      } else {
        z_face_row<1>(side, row, row - p);
      }
    });
    __syncthreads();
  }
  template <int c>
  __device__ void z_face_line(int side, int values, const double (&w)[points]) const {
    constexpr int nx = L::size(c, 0);
    constexpr int ny = L::size(c, 1);
    double mine[nx];
    double its[nx];
    at_y<nx, ny>(values + L::own(c), mine);
    at_y<nx, ny>(values + L::beyond(c), its);
    double sums[nx];
    face_line(w, side != 0 ? 1.0 : -1.0, mine, its, leaving(4 + side), sums);
#pragma unroll
    for (int i = 0; i < nx; ++i) {
      at(L::face_lines_at + (side * L::trace_size + (c == 0 ? 0 : p) + i) * points + member_ % points) = sums[i];
    }
  }
  template <int c>
  __device__ void z_face_row(int side, int row, int i) const {
    constexpr int nx = L::size(c, 0);
    constexpr int ny = L::size(c, 1);
    double sums[ny];
    from_points([&](int q) { return at(L::face_lines_at + (side * L::trace_size + row) * points + q); }, sums);
#pragma unroll
    for (int j = 0; j < ny; ++j) at(L::z_faces_at + side * L::z_face + L::own(c) + j * nx + i) = sums[j];
  }

  // --- 4. rows -------------------------------------------------------------------------------------------------------

  /// What is left of rows of products once those along y and z are known.
  __device__ void store_products() const {
    with_product([&](auto of) {
      constexpr Product product = decltype(of)::value;
      constexpr int size = L::size_of(product);
      const int row = member_ - L::row(product);  // squares: of all of them
      if constexpr (product == L::xx) {
#pragma unroll
        for (int i = 0; i < size; ++i) at(L::squares_at + row * size + i) = sums_[i];
        if constexpr (!L::flat) {
          if (row < n) {
#pragma unroll
            for (int l = 0; l < p; ++l) {
              const double lower = sums_[size + l];
              const double upper = sums_[size + p + l];
              at(L::y_faces_of_z_at + row * p + l) = upper + lower;
              at(L::y_faces_of_z_at + (n + row) * p + l) = upper - lower;
            }
          }
        }
      } else if constexpr (product == L::yz) {
        store_rest<product, 1>(L::rest_at(1), row);
        store_rest<product, 2>(L::rest_at(2), row);
      } else {
        if (row < L::tested_rows || row >= p) {
          const int place = L::tested_at(product) + (row < p ? row : row - p + L::tested_rows) * size;
#pragma unroll
          for (int i = 0; i < size; ++i) at(place + i) = sums_[i];
        }
        if (row < p) store_rest<product, 0>(L::rest_at(0) + (product == L::xz ? L::rest_x : 0), row);
      }
    });
  }
  /// Against functions of component c: the derivative along the other direction of the product, and faces.
  template <Product product, int c>
  __device__ void store_rest(int place, int i) const {
    constexpr int ny = L::size(c, 1);
    constexpr int nz = L::size(c, 2);
    constexpr int stride = L::size_z(product);
    constexpr bool along_y = product == L::xy || (product == L::yz && c == 2);
#pragma unroll
    for (int j = 0; j < ny; ++j) {
#pragma unroll
      for (int l = 0; l < nz; ++l) {
        double sum = 0.0;
        if constexpr (along_y) {
          sum -= tables_.scale[1] * derivative(j, [&](int m) { return sums_[m * stride + l]; });
        } else {
          const int face = L::z_faces_at + L::own(c) + j * L::size(c, 0) + i;
          sum += tables_.scale[2] * (faces(l, at(face), at(face + L::z_face)) -
                                     derivative(l, [&](int m) { return sums_[j * stride + m]; }));
        }
        if constexpr (product == L::with_x) {
          constexpr int behind = L::size_of(product);
          sum += tables_.scale[1] * faces(j, sums_[behind + l], sums_[behind + nz + l]);
        }
        at(place + (i * ny + j) * nz + l) = sum;
      }
    }
  }
  /// sum_m D_im f(m): psi_i' = 2 psi_i(1) sum psi_m(1) psi_m over m < i of the other parity.
  template <class F>
  __device__ double derivative(int i, const F& f) const {
    double sum = 0.0;
#pragma unroll
    for (int m = 0; m + 1 < n; ++m) {
      if (m < i && (i - m) % 2 == 1) sum += tables_.end[m] * f(m);
    }
    return 2.0 * tables_.end[i] * sum;
  }
  /// What both faces of a direction give to function i: of outward fluxes.
  __device__ double faces(int i, double lower, double upper) const {
    return tables_.end[i] * (i % 2 == 0 ? upper + lower : upper - lower);
  }

  /// (C(u)u, .) less the derivative in the component's own direction, against function i of x, j of y, l of z.
  template <int c>
  __device__ double tangential(int i, int j, int l) const {
    double sum = 0.0;
    const int place = (i * L::size(c, 1) + j) * L::size(c, 2) + l;
    if constexpr (c == 0) {
      sum = at(L::rest_at(0) + place);
      if constexpr (!L::flat) sum += at(L::rest_at(0) + L::rest_x + place);
    } else {
      constexpr Product product = c == 1 ? L::xy : L::xz;
      const auto tested = [&](int row) {
        return at(L::tested_at(product) + (row * L::size_y(product) + j) * L::size_z(product) + l);
      };
      if constexpr (!L::flat) sum = at(L::rest_at(c) + place);
      sum += tables_.scale[0] * (tables_.end[i] * tested(L::tested_rows + i % 2) - derivative(i, tested));
      if constexpr (c == 2) {
        sum += tables_.scale[1] * (tables_.end[j] * at(L::y_faces_of_z_at + (j % 2 * n + i) * p + l));
      }
    }
    return sum;
  }
  /// A line in direction c of component c, [c + 1][c + 2].
  template <int c>
  __device__ void write_line(int first, int second) const {
    constexpr int a = (c + 1) % dim;
    constexpr int b = (c + 2) % dim;
    int index[3]{};
    index[a] = first;
    if (dim == 3) index[b] = second;
    double rows[p];
#pragma unroll
    for (int i = 0; i < p; ++i) {
      index[c] = i;
      rows[i] = tangential<c>(index[0], index[1], index[2]);
    }
    to_continuous(rows);
    // The derivatives of P's functions: psi_j of bubbles, -+psi_0 of hats.
    double own[n];
#pragma unroll
    for (int i = 0; i < n; ++i) {
      index[c] = i;
      own[i] = tables_.scale[c] *
               at(L::squares_at + c * n * L::size_of(L::xx) + (index[0] * n + index[1]) * L::o_length + index[2]);
    }
    rows[0] += own[0];
    rows[n] -= own[0];
#pragma unroll
    for (int i = 1; i < n; ++i) rows[i] -= own[i];
    if (cell_ == arguments_.topology.null) return;
    const int column = first + (dim == 3 ? n * second : 0);
    double* const y = arguments_.y + Shape<dim, order>::offset(cell_) + (c * power(n, dim) + column) * interleave;
#pragma unroll
    for (int i = 0; i < n; ++i) y[i * columns_of_component * interleave] = rows[i];
    double* const upper = arguments_.upper + record_offset(cell_, dim * columns_of_component);
    upper[(c * columns_of_component + column) * interleave] = rows[n];
  }
  __device__ void write() const {
    for_jobs<dim * columns_of_component>([&](int job) {
      const int column = job % columns_of_component;
      with_constant<dim>(job / columns_of_component,
                         [&](auto of) { write_line<decltype(of)::value>(column % n, column / n); });
    });
    if (cell_ != arguments_.topology.null) {
      double* const pressure = arguments_.y + Shape<dim, order>::offset(cell_) + dim * power(n, dim) * interleave;
      for_jobs<power(n, dim)>([&](int job) { pressure[job * interleave] = 0.0; });
    }
    write_rate();
  }
  /// Most find that another has written as much.
  __device__ void write_rate() const {
    const auto high = static_cast<unsigned>(rate_ >> 32);
    const unsigned highest = __reduce_max_sync(~0U, high);
    const unsigned lowest = __reduce_max_sync(~0U, high == highest ? static_cast<unsigned>(rate_) : 0U);
    const unsigned long long rate = static_cast<unsigned long long>(highest) << 32 | lowest;
    auto* const most = reinterpret_cast<unsigned long long*>(arguments_.rate);
    const unsigned thread = threadIdx.x + L::lanes * threadIdx.y;
    if (thread % 32 == 0 && rate > *static_cast<volatile unsigned long long*>(most)) atomicMax(most, rate);
  }

  // Sums of a member's row, [y][z], and of faces that it takes along.
  static constexpr int most_sums =
      L::most(L::most(L::size_of(L::xy), L::size_of(L::yz)),
              L::most(L::size_of(L::with_x) + 2 * L::o_length, L::size_of(L::xx) + (L::flat ? 0 : 2 * p)));

  const ConvectionArguments& arguments_;
  const ConvectionTables& tables_;
  double* const shared_;
  std::int32_t* const records_;
  const int member_;
  std::int32_t cell_;
  unsigned inner_ = 0;  // faces behind which there is a cell, one bit each
  double at_y_[p];      // psi_j
  double own_at_y_[p];  // b_j
  double sums_[most_sums]{};
  std::uint64_t rate_ = 0;
};

template <int dim, int order>
__global__ void __launch_bounds__(ConvectionLayout<dim, order>::threads, ConvectionLayout<dim, order>::resident)
    convection_kernel(const __grid_constant__ ConvectionArguments arguments) {
  extern __shared__ __align__(16) unsigned char memory[];
  ConvectionBlock<dim, order> block(arguments, reinterpret_cast<double*>(memory));
  wait_for_earlier_kernels();
  block.run();
}

template <int dim, int order>
void convect(const ConvectionArguments& arguments, Stream stream) {
  using L = ConvectionLayout<dim, order>;
  const auto blocks = static_cast<unsigned>(arguments.blocks.count * (interleave / L::lanes));
  launch("convection", convection_kernel<dim, order>, blocks, dim3(L::lanes, L::team), L::shared_bytes, stream,
         arguments);
}

}  // namespace solenoid::cuda
