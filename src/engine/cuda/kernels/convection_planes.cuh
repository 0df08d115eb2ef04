#pragma once
/// \file
/// Of the convective term (convection.cuh): products and fluxes in planes of points, step 2.

#include "engine/cuda/kernels/convection_member.cuh"

namespace solenoid::cuda {

/// A share of a plane.
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
      this->store_hats(rows, L::own(0) + j * p, 1);
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
      this->store_hats(rows, L::own(1) + i, n);
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
      this->store_hats(x_rows, L::derived(0) + j * p, 1);
      this->store_hats(y_rows, L::derived(1) + j, n);
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

/// A face across z: integrals of the fluxes, with hats, in place of what is inside.
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
      this->store_hats(rows, L::own(0) + j * p, 1);
    }
#pragma unroll
    for (int i = 0; i < n; ++i) this->store_hats(y[i], L::own(1) + i, n);
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

}  // namespace solenoid::cuda
