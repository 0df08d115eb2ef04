#pragma once
/// \file
/// Of the convective term (convection.cuh): sizes, shared memory, and what every member of a thread block does with
/// lines of points.

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
  /// Records around the cell, as 32-bit numbers behind all that: beyond its sides, then above these, [side][turn]; and
  /// where its hats are solved for, a bit for each side.
  static constexpr int free_hats = 2 * dim * dim;
  static constexpr int bytes_of_lane = memory * static_cast<int>(sizeof(double)) + (free_hats + 1) * 4;

  // Shares: as many as it takes to have their sums in registers. More than eight warps have fewer of these.
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
  /// Those that load and write besides, so that everyone has a job fewer.
  static constexpr int helpers = flat || order < 3 || order > 4 ? 0 : in_warp;
  static constexpr int team = shares * plane_team + (flat ? 0 : whole_warps(2) + helpers);
  static constexpr int threads = lanes * team;
  static constexpr int shared_bytes = lanes * bytes_of_lane;
  static constexpr bool prefetches_neighbours = order > 2;  // measured
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
  /// The same, which are stored so many places apart.
  __device__ void store_hats(double (&rows)[p], int place, int step) const {
    to_hats(rows);
#pragma unroll
    for (int i = 0; i < p; ++i) at(place + i * step) = rows[i];
  }

  const ConvectionArguments& arguments_;
  const ConvectionTables& tables_;
  double* const shared_;
  unsigned central_;
};

}  // namespace solenoid::cuda
