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
  using Team::fields_, Team::tables_;
  using Team::n, Team::points, Team::second_points;
  using typename Team::L, typename Team::Component;

 public:
  __device__ PointViscosityCells(const ViscosityTablesOf<order>& tables, const ViscosityFields& fields, double* shared)
      : Team(tables, fields, shared) {}

  __device__ static void fluxes(const double (&gradient)[dim][dim], double (&flux)[dim][dim]) {
    unrolled<dim, dim>([&](int c, int a) { flux[c][a] = stress ? gradient[c][a] + gradient[a][c] : gradient[c][a]; });
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
      double my_value = 0.0;
      double its_value = 0.0;
      double my_slope = 0.0;
      double its_slope = 0.0;
      this->template ends<c, a>(mine, index, upper, my_value, my_slope);
      this->template ends<c, a>(its, index, !upper, its_value, its_slope);
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        const double psi = this->template in_second<c, a>(q, j);
        jump[q] += psi * (my_value - its_value);
        slope[q] += psi * scale * (my_slope - its_slope);
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
  template <int a>
  __device__ void line_across(int side, int q2) const {
    const double out = side % 2 == 1 ? 1.0 : -1.0;
    const double of_mean = this->mean(side);
    const double gamma = 2.0 * tables_.penalty * tables_.inverse_h[a] * of_mean;
    const double of_line = tables_.inverse_h[a] * (dim == 3 ? tables_.weight[q2] : 1.0);
    double sum[L::entries];
#pragma unroll
    for (double& entry : sum) entry = 0.0;
    const int first_weight = Team::first_weight(side, q2);
    double next = this->weight(first_weight);
#pragma unroll 1
    for (int q = 0; q < points; ++q) {
      const double w = of_line * tables_.weight[q] * next;
      if (q + 1 < points) next = this->weight(first_weight + q + 1);
#pragma unroll
      for (int t = 0; t < L::tangential; ++t) {
        const int c = Team::tangent(a, t);
        const int p = t == 0 ? 1 : 0;  // the first component has its P along the first direction
        double jump = 0.0;
        double shear = 0.0;
#pragma unroll
        for (int i = 0; i < n + p; ++i) {
          jump += tables_.value[p][q][i] * this->on_face(side, L::trace(t) + i, q2);
          shear += tables_.value[p][q][i] * this->on_face(side, L::traces + L::trace(t) + i, q2);
        }
        if constexpr (stress) {
          double tilt = 0.0;
#pragma unroll
          for (int i = 0; i < n; ++i) {
            const double psi = t == 0 ? tables_.slope[0][q][i] : tables_.value[0][q][i];
            tilt += psi * this->on_face(side, L::hats_at + t * n + i, q2);
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
      this->on_face(side, entry, q2) = sum[entry];
    }
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
