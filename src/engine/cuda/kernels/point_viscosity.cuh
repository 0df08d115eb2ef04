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
/// In the steps of cell_teams.cuh. Entries on faces are jumps and slopes of traces, then hats, and in 3D hats with a
/// derivative in the second direction.
///
/// Traffic per unknown: DRAM x once, y twice, 4 bytes for each point (k = 2: 6), hats once more.

#include "engine/cuda/kernels/point_viscosity_teams.cuh"

namespace solenoid::cuda {

/// Teams wait for memory and for each other most of the time, so that more of them are worth some spills (measured).
constexpr int registers_of_point_viscosity(int order) { return order <= 1 ? 64 : order == 2 ? 80 : 140; }

template <int dim, int order>
using PointViscosityLayout = CellTeams<CellTeamLayout<dim, order, viscosity_points(order), 2, dim - 1, true>, false,
                                       registers_of_point_viscosity(order)>;

template <int dim, int order, bool stress>
class PointViscosityCells : public PointViscosityTeam<PointViscosityCells<dim, order, stress>,
                                                      PointViscosityLayout<dim, order>, ViscosityTablesOf<order>> {
  using Team = PointViscosityTeam<PointViscosityCells, PointViscosityLayout<dim, order>, ViscosityTablesOf<order>>;
  using Team::buffer, Team::tables_;
  using Team::n, Team::points, Team::second_points;
  using typename Team::L, typename Team::Component;

 public:
  __device__ PointViscosityCells(const ViscosityTablesOf<order>& tables, const ViscosityFields& fields, double* shared)
      : Team(tables, fields, shared) {}

  /// What is in shared memory is read and written once; in between all points are in registers.
  __device__ void line_inside(int line) const {
    double w[points];
    weights(points * line, tables_.weight[line % points] * (dim == 3 ? tables_.weight[line / points] : 1.0), w);
    double at[dim][dim][points];  // gradients, then fluxes: [component][direction][point]
    unrolled<dim, dim>([&](int c, int a) {
      double u[n + 1];
#pragma unroll
      for (int i = 0; i < L::size(c, 0); ++i) u[i] = buffer(L::place(a, L::first(c) + i, line));
#pragma unroll
      for (int q = 0; q < points; ++q) {
        at[c][a][q] = 0.0;
#pragma unroll
        for (int i = 0; i < L::size(c, 0); ++i) at[c][a][q] += this->in_x(c, a, q, i) * u[i];
        at[c][a][q] *= tables_.inverse_h[a];
      }
    });
#pragma unroll
    for (int q = 0; q < points; ++q) {
      double gradient[dim][dim];
      unrolled<dim, dim>([&](int c, int a) { gradient[c][a] = at[c][a][q]; });
      unrolled<dim, dim>([&](int c, int a) {
        at[c][a][q] = w[q] * tables_.inverse_h[a] * (stress ? gradient[c][a] + gradient[a][c] : gradient[c][a]);
      });
    }
    unrolled<dim, dim>([&](int c, int a) {
#pragma unroll
      for (int i = 0; i < L::size(c, 0); ++i) {
        double sum = 0.0;
#pragma unroll
        for (int q = 0; q < points; ++q) sum += this->in_x(c, a, q, i) * at[c][a][q];
        buffer(L::place(a, L::first(c) + i, line)) = sum;
      }
    });
  }

  template <int a, int t>
  __device__ void trace_to_points(int side, int i) const {
    constexpr int c = Team::tangent(a, t);
    const bool upper = side % 2 == 1;
    const Component mine = this->template component<c>(this->cell_);
    const Component its = this->template component<c>(this->beyond(side));
    const double scale = (upper ? 1.0 : -1.0) * tables_.inverse_h[a] * this->mean(side);
    double jump[second_points]{};
    double slope[second_points]{};
    Team::template for_second<c, a>(i, [&](int j, int(&index)[3]) {
      const auto my_end = this->template end<c, a>(mine, index, upper);
      const auto its_end = this->template end<c, a>(its, index, !upper);
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        const double psi = this->template in_second<c, a>(q, j);
        jump[q] += psi * (my_end.value - its_end.value);
        slope[q] += psi * scale * (my_end.slope - its_end.slope);
      }
    });
    this->put_on_face(side, L::trace(t) + i, jump);
    this->put_on_face(side, L::traces + L::trace(t) + i, slope);
  }
  template <int a>
  __device__ void hats_to_points(int side, int i) const {
    if constexpr (stress) Team::template hats_to_points<a>(side, i);
  }

  __device__ void line_on_face(int side, int q2) const {
    with_constant<dim>(side / 2, [&](auto a) { line_across<a>(side, q2); });
  }

  template <int a, int t>
  __device__ void trace_from_points(int i) const {
    constexpr int c = Team::tangent(a, t);
#pragma unroll 1
    for (int side = 2 * a; side < 2 * a + 2; ++side) {
      const bool upper = side % 2 == 1;
      const double of_slope = tables_.inverse_h[a] * this->mean(side);
      Team::template for_second<c, a>(i, [&](int j, int(&index)[3]) {
        double value = 0.0;
        double slope = 0.0;
#pragma unroll
        for (int q = 0; q < second_points; ++q) {
          const double psi = this->template in_second<c, a>(q, j);
          value += psi * this->on_face(side, L::trace(t) + i, q);
          slope += psi * this->on_face(side, L::traces + L::trace(t) + i, q);
        }
        slope *= upper ? of_slope : -of_slope;
        this->template add_to_line<c, a>(index, upper, value, slope);
      });
    }
  }
  template <int a>
  __device__ void hats_from_points(int i) const {
    if constexpr (stress) Team::template hats_from_points<a>(i);
  }

 private:
  /// Those of a line of points from number `first` on, times those of quadrature and a factor.
  __device__ void weights(int first, double factor, double (&w)[points]) const {
#pragma unroll
    for (int q = 0; q < points; ++q) w[q] = factor * tables_.weight[q] * this->weight(first + q);
  }

  using Functions = double[points][n + 1];
  /// So many entries of a face from number `first` on, with these functions, at the points of a line.
  __device__ void evaluate(int side, int first, int q2, const Functions& functions, int count,
                           double (&values)[points]) const {
#pragma unroll
    for (double& value : values) value = 0.0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const double u = this->on_face(side, first + i, q2);
#pragma unroll
      for (int q = 0; q < points; ++q) values[q] += functions[q][i] * u;
    }
  }
  /// The transpose, in their place.
  __device__ void test(int side, int first, int q2, const Functions& functions, int count,
                       const double (&values)[points]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      double sum = 0.0;
#pragma unroll
      for (int q = 0; q < points; ++q) sum += functions[q][i] * values[q];
      this->on_face(side, first + i, q2) = sum;
    }
  }

  template <int a>
  __device__ void line_across(int side, int q2) const {
    const double out = side % 2 == 1 ? 1.0 : -1.0;
    const double of_mean = this->mean(side);
    const double gamma = 2.0 * tables_.penalty * tables_.inverse_h[a] * of_mean;
    double w[points];
    weights(Team::first_weight(side, q2), tables_.inverse_h[a] * (dim == 3 ? tables_.weight[q2] : 1.0), w);
    unrolled<L::tangential>([&](int t) {
      const int c = Team::tangent(a, t);
      const int p = t == 0 ? 1 : 0;  // the first component has its P along the first direction
      double jump[points];
      double shear[points];
      evaluate(side, L::trace(t), q2, tables_.value[p], n + p, jump);
      evaluate(side, L::traces + L::trace(t), q2, tables_.value[p], n + p, shear);
      if constexpr (stress) {
        double tilt[points];
        evaluate(side, L::hats_at + t * n, q2, t == 0 ? tables_.slope[0] : tables_.value[0], n, tilt);
#pragma unroll
        for (int q = 0; q < points; ++q) shear[q] += tables_.inverse_h[c] * tilt[q];
      }
#pragma unroll
      for (int q = 0; q < points; ++q) {
        shear[q] = w[q] * (gamma * jump[q] - out * shear[q]);  // with values of v_c
        jump[q] = -out * w[q] * jump[q];                       // with slopes
      }
      test(side, L::trace(t), q2, tables_.value[p], n + p, shear);
      test(side, L::traces + L::trace(t), q2, tables_.value[p], n + p, jump);
      if constexpr (stress) {
        const double half = 0.5 * tables_.inverse_h[c];
#pragma unroll
        for (int q = 0; q < points; ++q) jump[q] *= half;
        test(side, L::hats_at + t * n, q2, t == 0 ? tables_.slope[0] : tables_.value[0], n, jump);
      }
    });
  }
};

template <int dim, int order>
void add_point_viscosity(const PointViscosityArguments& arguments, Stream stream) {
  const ViscosityTablesOf<order> tables(*arguments.tables);
  const ViscosityFields fields(arguments);
  const auto start = [&]<bool stress>() {
    launch_cell_team<PointViscosityCells<dim, order, stress>>("viscosity at points", tables, fields, stream);
  };
  // Order 0 has the gradient form alone.
  if constexpr (order > 0) {
    if (arguments.stress) return start.template operator()<true>();
  }
  start.template operator()<false>();
}

}  // namespace solenoid::cuda
