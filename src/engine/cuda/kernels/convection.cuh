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
/// In 2D there is one plane and nothing across it. A cell has the rows of its bubbles and a share of either hat; that
/// of the upper hat is left for the cell above (add_upper_hats).
///
/// Traffic per unknown for k = 2: DRAM 18 bytes (u and y are 16). Limits: docs/notebook.md.

#include "engine/cuda/kernels/convection.hpp"
#include "engine/cuda/kernels/shape.cuh"

namespace solenoid::cuda {

/// Products of velocities in a plane that one member has, with all that is integrated against the same functions.
enum PlaneShare : unsigned {
  in_x = 1,     ///< xx, xy; faces of component x across y
  in_y = 2,     ///< yy; faces of y across x
  in_z = 4,     ///< zz
  in_mixed = 8  ///< xz, yz; faces of z across x and y; the rate
};

/// Sizes, and what lies where in shared memory, in numbers of a lane.
template <int dim, int order>
struct ConvectionLayout {
  static constexpr int n = order + 1;  // functions of O
  static constexpr int p = order + 2;  // of P
  static constexpr int points = convection_points(order);
  static constexpr int half_points = (points + 1) / 2;
  static constexpr bool has_centre = points % 2 == 1;
  static constexpr bool flat = dim == 2;
  static constexpr int planes = flat ? 1 : points;
  static constexpr int most(int a, int b) { return a > b ? a : b; }

  /// Functions of component c in direction a.
  static constexpr int size(int c, int a) { return a >= dim ? 1 : a == c ? p : n; }

  // Columns of a plane: components x, y, z, [y][x]; traces of what lies beyond the lower and upper face across x of y
  // and z, and across y of x and z.
  static constexpr int own(int c) { return c * n * p; }
  static constexpr int own_columns = 2 * n * p + (flat ? 0 : n * n);
  static constexpr int trace_size = p + (flat ? 0 : n);
  static constexpr int trace(int c, int side) { return own_columns + side * trace_size + (c == 2 ? p : 0); }
  // In the end: what is integrated against the functions of z in place of the components, and behind that what is
  // against their derivatives.
  static constexpr int derived(int c) { return own_columns + own(c); }
  /// An odd number, so that members that have planes meet different banks.
  static constexpr int columns = most(own_columns + 4 * trace_size, flat ? 0 : 2 * own_columns) | 1;
  // Those of a face across z: x and y from inside and in the end fluxes, x and y from beyond, z.
  static constexpr int beyond(int c) { return 2 * n * p + own(c); }
  static constexpr int normal = 4 * n * p;
  static constexpr int face_columns = (normal + n * n) | 1;

  static constexpr int plane_at(int q) { return q * columns; }
  static constexpr int face_at(int upper) { return planes * columns + upper * face_columns; }
  static constexpr int memory = planes * columns + (flat ? 0 : 2 * face_columns);
  /// Records around the cell, as 32-bit numbers behind all that: beyond its sides, then above these, [side][turn].
  static constexpr int records = 2 * dim * dim;
  static constexpr int bytes_of_lane = memory * static_cast<int>(sizeof(double)) + records * 4;

  // Shares: as many as it takes to have their sums in registers, as long as no more warps than eight share these.
  static constexpr int shares = flat ? (order < 4 ? 1 : 2) : order < 2 ? 1 : order < 4 || order == 5 ? 2 : 3;
  static constexpr unsigned share(int i) {
    if constexpr (flat) return shares == 1 ? in_x | in_y : i == 0 ? in_x : in_y;
    if constexpr (shares == 1) return in_x | in_y | in_z | in_mixed;
    if constexpr (shares == 2) return i == 0 ? in_x | in_y : in_z | in_mixed;
    return i == 0 ? in_x : i == 1 ? in_y | in_z : in_mixed;
  }
  /// Whether members add to what others have stored.
  static constexpr bool adds = flat ? shares > 1 : shares > 2;

  /// As many as shared memory and the registers of one thread block have room for.
  static constexpr int lanes = flat || order < 3 ? 32 : order == 3 ? 16 : order < 6 ? 8 : order < 8 ? 4 : 2;
  static constexpr int in_warp = 32 / lanes;
  static constexpr int whole_warps(int members) { return (members + in_warp - 1) / in_warp * in_warp; }
  /// Members with planes of one share: whole warps, so that these take one way.
  static constexpr int plane_team = whole_warps(planes);
  static constexpr int team = shares * plane_team + (flat ? 0 : whole_warps(2));
  static constexpr int threads = lanes * team;
  static constexpr int shared_bytes = lanes * bytes_of_lane;
  /// Pairs of lines at a time. The whole kernel has to fit the cache of instructions, 8192 of them: with two more pairs
  /// of k = 4, or a second copy of load() for k = 3, it would take a quarter to a half longer.
  static constexpr int unrolled = order < 4 ? half_points : 1;
  /// Thread blocks for a multiprocessor, for which registers are kept few.
  static constexpr int resident = flat ? (order < 4 ? 16 : 4) : order < 2 ? 4 : 1;
};

/// Of all threads of a block, wherever in the code they are.
__device__ inline void barrier() { asm volatile("barrier.sync 0;" ::: "memory"); }

/// What a member sees of tables and of shared memory.
template <int dim, int order, ConvectiveFlux flux_>
class ConvectionMember {
 protected:
  using L = ConvectionLayout<dim, order>;
  static constexpr int n = L::n;
  static constexpr int p = L::p;
  static constexpr int points = L::points;
  static constexpr int half_points = L::half_points;
  using Space = ConvectionTables::Space;
  static constexpr Space O = ConvectionTables::O;
  static constexpr Space P = ConvectionTables::P;
  static constexpr Space space_of(int c, int a) { return c == a ? P : O; }

  /// `central`: faces that do not have the upwind flux, a bit for each side.
  __device__ ConvectionMember(const ConvectionArguments& arguments, double* shared, unsigned central)
      : arguments_(arguments), tables_(arguments.tables), shared_(shared), central_(central) {}

  __device__ double& at(int place) const { return shared_[place * L::lanes]; }

  /// Values at the points of a line.
  template <Space space, int size>
  __device__ void to_points(const double (&a)[size], double (&values)[points]) const {
#pragma unroll
    for (int h = 0; h < half_points; ++h) {
      double even = tables_.value[space][h][0] * a[0];
      double odd = 0.0;
#pragma unroll
      for (int i = 1; i < size; ++i) {
        if (i % 2 == 1 && h == points - 1 - h) continue;
        (i % 2 == 0 ? even : odd) += tables_.value[space][h][i] * a[i];
      }
      values[h] = even + odd;
      if (h != points - 1 - h) values[points - 1 - h] = even - odd;
    }
  }
  /// Integrals over a line.
  template <Space space, int size>
  __device__ void from_points(const double (&values)[points], double (&sums)[size]) const {
#pragma unroll
    for (int i = 0; i < size; ++i) sums[i] = 0.0;
#pragma unroll
    for (int h = 0; h < half_points; ++h) {
      const bool centre = h == points - 1 - h;
      const double even = centre ? values[h] : values[h] + values[points - 1 - h];
      const double odd = centre ? 0.0 : values[h] - values[points - 1 - h];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        if (i % 2 == 1 && centre) continue;
        sums[i] += tables_.test[space][h][i] * (i % 2 == 0 ? even : odd);
      }
    }
  }
  /// A column of coefficients in y, at the points y and 1 - y.
  template <Space space, int size>
  __device__ void at_y(int h, bool centre, int place, int stride, double& lower, double& upper) const {
    double even = tables_.value[space][h][0] * at(place);
    double odd = 0.0;
#pragma unroll
    for (int j = 1; j < size; ++j) {
      if (j % 2 == 1 && centre) continue;
      (j % 2 == 0 ? even : odd) += tables_.value[space][h][j] * at(place + j * stride);
    }
    lower = centre ? even : even + odd;
    upper = even - odd;
  }
  /// Values at both ends of a line of functions of O.
  template <class F>
  __device__ void ends(const F& a, double& lower, double& upper) const {
    double even = a(0);
    double odd = 0.0;
#pragma unroll
    for (int i = 1; i < n; ++i) (i % 2 == 0 ? even : odd) += tables_.end[i] * a(i);
    lower = even - odd;
    upper = even + odd;
  }
  /// Adds integrals along y of what is at the points y and 1 - y.
  template <Space space, int size, int room>
  __device__ void add_along_y(int h, bool centre, double lower, double upper, double (&sums)[room]) const {
    const double even = centre ? lower : lower + upper;
    const double odd = lower - upper;
#pragma unroll
    for (int j = 0; j < size; ++j) {
      if (j % 2 == 1 && centre) continue;
      sums[j] += tables_.test[space][h][j] * (j % 2 == 0 ? even : odd);
    }
  }
  /// The flux w u, in the direction of the axis, through a face of the cell.
  __device__ double flux(int side, double w, double inside, double beyond) const {
    if constexpr (flux_ == ConvectiveFlux::central) {
      if ((central_ >> side & 1U) != 0) return 0.5 * w * (inside + beyond);
    }
    const bool backwards = __double2hiint(w) < 0;  // either will do where w = 0
    return w * (backwards == (side % 2 == 0) ? inside : beyond);
  }
  template <Space space, int size>
  __device__ void fluxes(int side, const double (&w)[points], const double (&inside)[size],
                         const double (&beyond)[size], double (&sums)[size]) const {
    double a[points];
    double b[points];
    to_points<space>(inside, a);
    to_points<space>(beyond, b);
#pragma unroll
    for (int q = 0; q < points; ++q) a[q] = flux(side, w[q], a[q], b[q]);
    from_points<space>(a, sums);
  }
  /// What fluxes through the faces of a direction give to psi_i, from their sum and what the upper one has more.
  __device__ double faces(int i, double sum, double difference) const {
    return tables_.end[i] * (i % 2 == 0 ? difference : sum);
  }
  /// sum_l D_il f(l).
  template <class F>
  __device__ double derivative(int i, const F& f) const {
    double sum = 0.0;
#pragma unroll
    for (int l = 0; l < order; ++l) {
      if (l < i && (i - l) % 2 == 1) sum += tables_.derivative[i][l] * f(l);
    }
    return sum;
  }
  /// Rows of phi become those of the lower hat, the upper hat, bubbles.
  __device__ static void to_hats(double (&rows)[p]) {
    const double half = 0.5 * rows[0];
    const double odd = rows[1];
    rows[0] = half - odd;
    rows[1] = half + odd;
  }

  const ConvectionArguments& arguments_;
  const ConvectionTables& tables_;
  double* const shared_;
  unsigned central_;
};

/// 2. A share of a plane.
template <int dim, int order, ConvectiveFlux flux_, unsigned share>
class ConvectionPlane : ConvectionMember<dim, order, flux_> {
  using Member = ConvectionMember<dim, order, flux_>;
  using L = ConvectionLayout<dim, order>;
  using Member::at;
  using Member::n;
  using Member::O;
  using Member::P;
  using Member::p;
  using Member::points;
  using Member::tables_;
  using typename Member::Space;
  static constexpr bool has_x = (share & in_x) != 0;
  static constexpr bool has_y = (share & in_y) != 0;
  static constexpr bool has_z = (share & in_z) != 0;
  static constexpr bool has_mixed = (share & in_mixed) != 0;
  static constexpr bool has_rate = L::flat ? has_x : has_mixed;
  static constexpr bool needs_ux = has_x || has_mixed;
  static constexpr bool needs_uy = has_x || has_y || has_mixed;
  static constexpr bool needs_uz = has_z || has_mixed;

 public:
  __device__ ConvectionPlane(const ConvectionArguments& arguments, double* shared, unsigned central)
      : Member(arguments, shared, central) {}

  __device__ void integrate() {
    y_faces();
#pragma unroll L::unrolled
    for (int h = 0; h < points / 2; ++h) lines<false>(h);
    if constexpr (L::has_centre) lines<true>(points / 2);
    fetch_y_faces();
  }
  /// Over all that members with other shares of the plane have read before.
  __device__ void store() const {
    if constexpr (has_x) store_x();
    if constexpr (has_y) store_y();
    if constexpr (has_z) {
#pragma unroll
      for (int j = 0; j < n; ++j) {
#pragma unroll
        for (int i = 0; i < n; ++i) at(L::derived(2) + j * n + i) = zz_[i][j];
      }
    }
    if constexpr (has_mixed) store_mixed();
  }
  /// To what another member has stored.
  __device__ void add() const {
    if constexpr (has_x && !has_y) add_xy();
  }
  /// The bits of the largest |u_a| / h_a.
  [[nodiscard]] __device__ std::uint64_t rate() const { return rate_; }

 private:
  /// Integrals over the faces across y, in place of the traces from beyond.
  __device__ void y_faces() const {
    if constexpr (has_x || has_mixed) {
#pragma unroll 1
      for (int upper = 0; upper < 2; ++upper) {
        double w[points];
        {
          double normal[n];
#pragma unroll
          for (int i = 0; i < n; ++i) {
            const double middle = at(L::own(1) + i);
            const double half = 0.5 * at(L::own(1) + n + i);
            normal[i] = upper != 0 ? middle + half : middle - half;
          }
          this->template to_points<O>(normal, w);
        }
        if constexpr (has_x) y_face<0>(upper, w);
        if constexpr (has_mixed) y_face<2>(upper, w);
      }
    }
  }
  template <int c>
  __device__ void y_face(int upper, const double (&w)[points]) const {
    constexpr int nx = L::size(c, 0);
    double inside[nx];
    double beyond[nx];
    const int place = L::trace(c, 2) + upper * L::trace_size;
#pragma unroll
    for (int i = 0; i < nx; ++i) {
      double lower_end;
      double upper_end;
      this->ends([&](int j) { return at(L::own(c) + j * nx + i); }, lower_end, upper_end);
      inside[i] = upper != 0 ? upper_end : lower_end;
      beyond[i] = at(place + i);
    }
    double sums[nx];
    this->template fluxes<Member::space_of(c, 0)>(2 + upper, w, inside, beyond, sums);
#pragma unroll
    for (int i = 0; i < nx; ++i) at(place + i) = sums[i];
  }
  __device__ void fetch_y_faces() {
    if constexpr (has_x) fetch_y_faces<0>(y_faces_of_x_);
    if constexpr (has_mixed) fetch_y_faces<2>(y_faces_of_z_);
  }
  template <int c, int size>
  __device__ void fetch_y_faces(double (&sums)[2][size]) const {
#pragma unroll
    for (int i = 0; i < size; ++i) {
      const double lower = at(L::trace(c, 2) + i);
      const double upper = at(L::trace(c, 3) + i);
      sums[0][i] = upper + lower;
      sums[1][i] = upper - lower;
    }
  }

  /// The lines of points at y and 1 - y, or that in the middle.
  template <bool centre>
  __device__ void lines(int h) {
    constexpr int count = centre ? 1 : 2;
    double x[2][p];
    double y[2][n];
    double z[2][n];
    // Where faces across x are all that is wanted of u_x, phi_0 and phi_1 are.
#pragma unroll
    for (int i = 0; i < (needs_ux ? p : has_y ? 2 : 0); ++i) {
      this->template at_y<O, n>(h, centre, L::own(0) + i, p, x[0][i], x[1][i]);
    }
    if constexpr (needs_uy) {
#pragma unroll
      for (int i = 0; i < n; ++i) this->template at_y<P, p>(h, centre, L::own(1) + i, n, y[0][i], y[1][i]);
    }
    if constexpr (needs_uz) {
#pragma unroll
      for (int i = 0; i < n; ++i) this->template at_y<O, n>(h, centre, L::own(2) + i, n, z[0][i], z[1][i]);
    }
    if constexpr (has_y) x_faces<1, P, p>(h, centre, x, y, x_faces_of_y_);
    if constexpr (has_mixed) x_faces<2, O, n>(h, centre, x, z, x_faces_of_z_);

    double ux[2][points];
    double uy[2][points];
    double uz[2][points];
#pragma unroll
    for (int r = 0; r < count; ++r) {
      if constexpr (needs_ux) this->template to_points<P>(x[r], ux[r]);
      if constexpr (needs_uy) this->template to_points<O>(y[r], uy[r]);
      if constexpr (needs_uz) this->template to_points<O>(z[r], uz[r]);
    }
    if constexpr (has_rate) {
#pragma unroll
      for (int r = 0; r < count; ++r) {
#pragma unroll
        for (int q = 0; q < points; ++q) crossing(ux[r][q], uy[r][q], L::flat ? 0.0 : uz[r][q]);
      }
    }
    if constexpr (has_x) {
      product<centre, O, O, n, n, n, n>(h, ux, ux, xx_);
      // Of phi_i(x) phi_j(y) those that a derivative in one of them needs.
      product<centre, P, P, p, order, p, order>(h, ux, uy, xy_);
    }
    if constexpr (has_y) product<centre, O, O, n, n, n, n>(h, uy, uy, yy_);
    if constexpr (has_mixed) {
      product<centre, P, O, p, p, n, n>(h, ux, uz, xz_);
      product<centre, O, P, n, n, p, p>(h, uy, uz, yz_);
    }
    if constexpr (has_z) product<centre, O, O, n, n, n, n>(h, uz, uz, zz_);
  }
  __device__ void crossing(double x, double y, double z) {
    const double crossing = fabs(tables_.scale[0] * x) + fabs(tables_.scale[1] * y) + fabs(tables_.scale[2] * z);
    // As bits, so that no NaN is lost.
    const auto bits = static_cast<std::uint64_t>(__double_as_longlong(crossing));
    rate_ = bits > rate_ ? bits : rate_;
  }
  /// Adds integrals of u v against nx functions of x, and of y ny with the first `whole` of these and `less` with
  /// others.
  template <bool centre, Space of_x, Space of_y, int nx, int whole, int ny, int less, int room>
  __device__ void product(int h, const double (&u)[2][points], const double (&v)[2][points],
                          double (&sums)[nx][room]) const {
    double rows[2][nx];
#pragma unroll
    for (int r = 0; r < (centre ? 1 : 2); ++r) {
      double values[points];
#pragma unroll
      for (int q = 0; q < points; ++q) values[q] = u[r][q] * v[r][q];
      this->template from_points<of_x>(values, rows[r]);
    }
#pragma unroll
    for (int i = 0; i < nx; ++i) {
      const double upper = centre ? 0.0 : rows[1][i];
      if (i < whole) {
        this->template add_along_y<of_y, ny>(h, centre, rows[0][i], upper, sums[i]);
      } else {
        this->template add_along_y<of_y, less>(h, centre, rows[0][i], upper, sums[i]);
      }
    }
  }
  /// Faces across x, which the lines meet at both ends: of component c, the sum and the difference of both fluxes.
  template <int c, Space of_y, int ny>
  __device__ void x_faces(int h, bool centre, const double (&x)[2][p], const double (&u)[2][n],
                          double (&sums)[2][ny]) const {
    double beyond[2][2];  // [side][line]
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      this->template at_y<of_y, ny>(h, centre, L::trace(c, side), 1, beyond[side][0], beyond[side][1]);
    }
    double sum[2]{};
    double difference[2]{};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (r == 1 && centre) continue;
      double lower;
      double upper;
      this->ends([&](int i) { return u[r][i]; }, lower, upper);
      const double below = this->flux(0, x[r][0] - 0.5 * x[r][1], lower, beyond[0][r]);
      const double above = this->flux(1, x[r][0] + 0.5 * x[r][1], upper, beyond[1][r]);
      sum[r] = above + below;
      difference[r] = above - below;
    }
    this->template add_along_y<of_y, ny>(h, centre, sum[0], sum[1], sums[0]);
    this->template add_along_y<of_y, ny>(h, centre, difference[0], difference[1], sums[1]);
  }

  /// Component x: psi_j(y) with the lower hat, the upper one and bubbles of x.
  __device__ void store_x() const {
#pragma unroll
    for (int j = 0; j < n; ++j) {
      double rows[p];
#pragma unroll
      for (int i = 0; i < p; ++i) {
        rows[i] = tables_.scale[1] * (this->faces(j, y_faces_of_x_[0][i], y_faces_of_x_[1][i]) -
                                      this->derivative(j, [&](int l) { return xy_[i][l]; }));
        if (i > 0) rows[i] -= tables_.scale[0] * xx_[i - 1][j];
      }
      Member::to_hats(rows);
#pragma unroll
      for (int i = 0; i < p; ++i) at(L::own(0) + j * p + i) = rows[i];
    }
  }
  __device__ void store_y() const {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      double rows[p];
#pragma unroll
      for (int j = 0; j < p; ++j) {
        rows[j] = tables_.scale[0] * this->faces(i, x_faces_of_y_[0][j], x_faces_of_y_[1][j]);
        if constexpr (has_x) rows[j] -= tables_.scale[0] * this->derivative(i, [&](int l) { return xy_[l][j]; });
        if (j > 0) rows[j] -= tables_.scale[1] * yy_[i][j - 1];
      }
      Member::to_hats(rows);
#pragma unroll
      for (int j = 0; j < p; ++j) at(L::own(1) + j * n + i) = rows[j];
    }
  }
  __device__ void add_xy() const {
#pragma unroll
    for (int i = 1; i < n; ++i) {
      double rows[p];
#pragma unroll
      for (int j = 0; j < p; ++j) rows[j] = -tables_.scale[0] * this->derivative(i, [&](int l) { return xy_[l][j]; });
      Member::to_hats(rows);
#pragma unroll
      for (int j = 0; j < p; ++j) at(L::own(1) + j * n + i) += rows[j];
    }
  }
  /// Component z, then what components x and y have along z.
  __device__ void store_mixed() const {
#pragma unroll
    for (int j = 0; j < n; ++j) {
#pragma unroll
      for (int i = 0; i < n; ++i) {
        at(L::own(2) + j * n + i) = tables_.scale[0] * (this->faces(i, x_faces_of_z_[0][j], x_faces_of_z_[1][j]) -
                                                        this->derivative(i, [&](int l) { return xz_[l][j]; })) +
                                    tables_.scale[1] * (this->faces(j, y_faces_of_z_[0][i], y_faces_of_z_[1][i]) -
                                                        this->derivative(j, [&](int l) { return yz_[i][l]; }));
      }
    }
#pragma unroll
    for (int j = 0; j < n; ++j) {
      double x_rows[p];
      double y_rows[p];
#pragma unroll
      for (int i = 0; i < p; ++i) {
        x_rows[i] = xz_[i][j];
        y_rows[i] = yz_[j][i];
      }
      Member::to_hats(x_rows);
      Member::to_hats(y_rows);
#pragma unroll
      for (int i = 0; i < p; ++i) {
        at(L::derived(0) + j * p + i) = x_rows[i];
        at(L::derived(1) + i * n + j) = y_rows[i];
      }
    }
  }

  // Sums over the points of the plane, [function of x][function of y]; of faces first the sum, then the difference.
  // What a share does not have is never used, and takes no registers.
  double xx_[n][n]{};
  double xy_[p][p]{};
  double yy_[n][n]{};
  double zz_[n][n]{};
  double xz_[p][n]{};
  double yz_[n][p]{};
  double x_faces_of_y_[2][p]{};
  double x_faces_of_z_[2][n]{};
  double y_faces_of_x_[2][p]{};
  double y_faces_of_z_[2][n]{};
  std::uint64_t rate_ = 0;
};

/// 2. A face across z: integrals of the fluxes, with hats, in place of what is inside.
template <int dim, int order, ConvectiveFlux flux_>
class ConvectionZFace : ConvectionMember<dim, order, flux_> {
  using Member = ConvectionMember<dim, order, flux_>;
  using L = ConvectionLayout<dim, order>;
  using Member::at;
  using Member::n;
  using Member::O;
  using Member::P;
  using Member::p;
  using Member::points;
  using typename Member::Space;

 public:
  __device__ ConvectionZFace(const ConvectionArguments& arguments, double* shared, unsigned central, int side)
      : Member(arguments, shared, central), side_(side) {}

  __device__ void integrate() const {
    double x[p][n]{};  // [function of x][of y]
    double y[n][p]{};
#pragma unroll L::unrolled
    for (int h = 0; h < points / 2; ++h) lines<false>(h, x, y);
    if constexpr (L::has_centre) lines<true>(points / 2, x, y);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      double rows[p];
#pragma unroll
      for (int i = 0; i < p; ++i) rows[i] = x[i][j];
      Member::to_hats(rows);
#pragma unroll
      for (int i = 0; i < p; ++i) at(L::own(0) + j * p + i) = rows[i];
    }
#pragma unroll
    for (int i = 0; i < n; ++i) {
      Member::to_hats(y[i]);
#pragma unroll
      for (int j = 0; j < p; ++j) at(L::own(1) + j * n + i) = y[i][j];
    }
  }

 private:
  template <bool centre>
  __device__ void lines(int h, double (&x)[p][n], double (&y)[n][p]) const {
    double w[2][points];
    {
      double normal[2][n];
#pragma unroll
      for (int i = 0; i < n; ++i) {
        this->template at_y<O, n>(h, centre, L::normal + i, n, normal[0][i], normal[1][i]);
      }
#pragma unroll
      for (int r = 0; r < (centre ? 1 : 2); ++r) this->template to_points<O>(normal[r], w[r]);
    }
    lines<centre, 0, P, O>(h, w, x);
    lines<centre, 1, O, P>(h, w, y);
  }
  template <bool centre, int c, Space of_x, Space of_y, int nx, int ny>
  __device__ void lines(int h, const double (&w)[2][points], double (&sums)[nx][ny]) const {
    double inside[2][nx];
    double beyond[2][nx];
#pragma unroll
    for (int i = 0; i < nx; ++i) {
      this->template at_y<of_y, ny>(h, centre, L::own(c) + i, nx, inside[0][i], inside[1][i]);
      this->template at_y<of_y, ny>(h, centre, L::beyond(c) + i, nx, beyond[0][i], beyond[1][i]);
    }
    double rows[2][nx];
#pragma unroll
    for (int r = 0; r < (centre ? 1 : 2); ++r) {
      this->template fluxes<of_x>(side_, w[r], inside[r], beyond[r], rows[r]);
    }
#pragma unroll
    for (int i = 0; i < nx; ++i) {
      this->template add_along_y<of_y, ny>(h, centre, rows[0][i], centre ? 0.0 : rows[1][i], sums[i]);
    }
  }

  const int side_;
};

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
  using Member::shared_;
  using Member::tables_;
  using typename Member::Space;
  static constexpr int columns_of_component = power(n, dim - 1);

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
    prefetch_cell();
    find_records();
    prefetch_neighbours();
    load();
    __syncthreads();
    integrate();
    __syncthreads();
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
    for_jobs<above + 2 * dim>([&](int job) {
      if (job < above) {
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

  // Asks for most of what load() reads, so that many requests are under way at once.
  __device__ void prefetch_cell() const {
    for_jobs<power(n, dim)>([&](int i) {
#pragma unroll
      for (int c = 0; c < dim; ++c) prefetch(component(cell_, c) + i * interleave);
    });
  }
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

  /// Columns of components x and y, then of z.
  __device__ void write() const {
    for_jobs<L::own_columns>([&](int column) {
      const int c = column / (n * p);
      if (c < 2) {
        write_tangential(c, column - L::own(c));
      } else if constexpr (!L::flat) {
        write_normal(column - L::own(2));
      }
    });
    if (cell_ != arguments_.topology.null) {
      double* const pressure = arguments_.y + Shape<dim, order>::offset(cell_) + dim * power(n, dim) * interleave;
      for_jobs<power(n, dim)>([&](int job) { pressure[job * interleave] = 0.0; });
    }
    write_rate();
  }
  __device__ double* own(int c) const {
    return arguments_.y + Shape<dim, order>::offset(cell_) + c * power(n, dim) * interleave;
  }
  __device__ double* upper(int c) const {
    return arguments_.upper + record_offset(cell_, dim * columns_of_component) + c * columns_of_component * interleave;
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
  /// Component x, [y][x], or y, [y][x]: a hat or bubble in its own direction.
  __device__ void write_tangential(int c, int column) const {
    const int first = c == 0 ? column % p : column / n;
    const int other = c == 0 ? column / p : column % n;
    double rows[along_z];
    if constexpr (L::flat) {
      rows[0] = at(L::own(c) + column);
    } else {
      double even[half_points];
      double odd[half_points];
      double derived_even[half_points];
      double derived_odd[half_points];
      halves(L::own(c) + column, even, odd);
      halves(L::derived(c) + column, derived_even, derived_odd);
      const double lower = at(L::face_at(0) + L::own(c) + column);
      const double upper = at(L::face_at(1) + L::own(c) + column);
#pragma unroll
      for (int l = 0; l < n; ++l) {
        rows[l] = against(tables_.test[O], l, even, odd, l % 2 == 0);
        double over = this->faces(l, upper + lower, upper - lower);
        if (l > 0) over -= against(tables_.test_derivative, l, derived_even, derived_odd, l % 2 == 1);
        rows[l] += tables_.scale[2] * over;
      }
    }
    if (cell_ == arguments_.topology.null) return;
    const int along = (c == 0 ? stride(0, 2) : stride(1, 2)) * interleave;
    double* const y = (first == 1 ? upper(c) : own(c) + (first == 0 ? 0 : first - 1) * stride(0, 0) * interleave) +
                      other * (c == 0 ? stride(0, 1) : stride(1, 0)) * interleave;
#pragma unroll
    for (int l = 0; l < along_z; ++l) y[l * along] = rows[l];
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
    double* const y = own(2) + offset;
    y[0] = rows[0];
    upper(2)[offset] = rows[1];
#pragma unroll
    for (int l = 1; l < n; ++l) y[l * stride(2, 2) * interleave] = rows[l + 1];
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
  wait_for_earlier_kernels();
  block.run();
}

template <int dim, int order>
void convect(const ConvectionArguments& arguments, Stream stream) {
  using L = ConvectionLayout<dim, order>;
  const auto blocks = static_cast<unsigned>((arguments.blocks.count * interleave + L::lanes - 1) / L::lanes);
  const auto start = [&](auto kernel) {
    launch("convection", kernel, blocks, dim3(L::lanes, L::team), L::shared_bytes, stream, arguments);
  };
  if (arguments.flux == ConvectiveFlux::upwind) {
    start(convection_kernel<dim, order, ConvectiveFlux::upwind>);
  } else {
    start(convection_kernel<dim, order, ConvectiveFlux::central>);
  }
}

}  // namespace solenoid::cuda
