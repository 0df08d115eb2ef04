#pragma once
/// \file
/// What a viscosity at points adds to the operator of the means (point_viscosity.cuh) on parallelepipeds. Vectors hold
/// the velocity u of boxes, in space F u / J (problem/affine_map.hpp); with g = F^T F, G = g^-1 and Q_c = sum_{c' != e}
/// g_cc' [u_c'] on a face across e
///
///     y += 1 / J { sum_K (w Y(u), grad v) + sum_F sum_{c != e} <w gamma G_ee Q_c - w S_c, [v_c]>
///                                         - sum_F sum_cb <w Q_c, G_eb {d_b v_c}> },
///     Y = g grad u G,    S_c = sum_{c'b} g_cc' G_eb {d_b u_c'};   in the stress form
///     d_c u_b more in Y_cb, d_c u_e in S_c, and  - <w [u_c], d_c v_e>  for c != e
///
/// by the same points. Component e does not jump across e, but its slopes do: those of all functions of either cell,
/// and the upper hats of the cell beyond may lie one record further. Every face is computed by both of its cells, from
/// the same numbers; the rows of its hats, derivatives along the face, by half from either.
///
/// In the steps of cell_teams.cuh. Entries on faces, of traces: jumps, what conormal derivatives have of slopes across
/// the face and of derivatives in the second direction, means; of hats: values, in 3D their derivatives in the second
/// direction, slopes of component e across the face. A line of points leaves in their place what is tested with the
/// same, that of means among that of jumps. Directions and components of a line count from the normal one.
///
/// Traffic per unknown: DRAM x once, y twice, 4 bytes for each point (k = 2: 6), hats once more.

#include "engine/cuda/kernels/point_viscosity_teams.cuh"

namespace solenoid::cuda {

template <int dim, int order>
struct ShearedPointViscosityLayout : CellTeams<CellTeamLayout<dim, order, viscosity_points(order), 3, dim, true>, true,
                                               registers_of_wide_teams(order)> {
  using Lines = LinesOfPoints<dim, order, viscosity_points(order)>;
  static constexpr int conormal_at = Lines::traces;
  static constexpr int mean_at = 2 * Lines::traces;
  static constexpr int hat_slopes_at = 3 * Lines::traces + (dim - 1) * Lines::n;
};

template <int dim, int order>
struct ShearedViscosityTablesOf : ViscosityTablesOf<order> {
  /// Directions and components count from one of them.
  struct Counted {
    double inverse_h[dim];
    double metric[dim][dim];   ///< g
    double inverse[dim][dim];  ///< G / J
  };
  Counted from[dim];
  double turned;                            ///< 1 / J
  double parallel_end_slope[2][order + 2];  ///< of P, [end][function]

  explicit ShearedViscosityTablesOf(const ViscosityTables& tables)
      : ViscosityTablesOf<order>(tables), turned(tables.turned) {
    for (int e = 0; e < dim; ++e) {
      for (int a = 0; a < dim; ++a) {
        from[e].inverse_h[a] = tables.inverse_h[(e + a) % dim];
        for (int b = 0; b < dim; ++b) {
          from[e].metric[a][b] = tables.metric[(e + a) % dim][(e + b) % dim];
          from[e].inverse[a][b] = tables.inverse[(e + a) % dim][(e + b) % dim];
        }
      }
    }
    for (int end = 0; end < 2; ++end) {
      std::copy_n(tables.functions.parallel_end_slope[end], order + 2, parallel_end_slope[end]);
    }
  }
};

template <int dim, int order, bool stress>
class ShearedPointViscosityCells
    : public PointViscosityTeam<ShearedPointViscosityCells<dim, order, stress>, ShearedPointViscosityLayout<dim, order>,
                                ShearedViscosityTablesOf<dim, order>> {
  using Team = PointViscosityTeam<ShearedPointViscosityCells, ShearedPointViscosityLayout<dim, order>,
                                  ShearedViscosityTablesOf<dim, order>>;
  using Team::buffer, Team::tables_;
  using Team::n, Team::points, Team::second_points;
  using typename Team::L, typename Team::Component;
  using Counted = typename ShearedViscosityTablesOf<dim, order>::Counted;

 public:
  __device__ ShearedPointViscosityCells(const ShearedViscosityTablesOf<dim, order>& tables,
                                        const ViscosityFields& fields, double* shared)
      : Team(tables, fields, shared) {}

  __device__ void line_inside(int line) const {
    double sum[dim][L::functions];  // [direction][function of x]
    unrolled<dim, L::functions>([&](int a, int f) { sum[a][f] = 0.0; });
    const double of_line = tables_.weight[line % points] * (dim == 3 ? tables_.weight[line / points] : 1.0);
    double next = this->weight(points * line);
#pragma unroll 1
    for (int q = 0; q < points; ++q) {
      const double difference = next;
      if (q + 1 < points) next = this->weight(q + 1 + points * line);
      double gradient[dim][dim];
      unrolled<dim, dim>([&](int c, int a) {
        gradient[c][a] = 0.0;
#pragma unroll
        for (int i = 0; i < L::size(c, 0); ++i) {
          gradient[c][a] += this->in_x(c, a, q, i) * buffer(L::place(a, L::first(c) + i, line));
        }
        gradient[c][a] *= tables_.inverse_h[a];
      });
      double flux[dim][dim];
      fluxes(gradient, flux);
      const double w = of_line * tables_.weight[q] * difference;
      unrolled<dim, dim>([&](int c, int a) {
        flux[c][a] *= w * tables_.inverse_h[a];
#pragma unroll
        for (int i = 0; i < L::size(c, 0); ++i) sum[a][L::first(c) + i] += this->in_x(c, a, q, i) * flux[c][a];
      });
    }
    unrolled<dim, L::functions>([&](int a, int f) { buffer(L::place(a, f, line)) = sum[a][f]; });
  }

  template <int e, int t>
  __device__ void trace_to_points(int side, int i) const {
    constexpr int c = Team::tangent(e, t);
    const bool upper = side % 2 == 1;
    const Component mine = this->template component<c>(this->cell_);
    const Component its = this->template component<c>(this->beyond(side));
    const double of_mean = this->mean(side);
    const double of_slope = (upper ? of_mean : -of_mean) * across(e);
    double jump[second_points]{};
    double conormal[second_points]{};
    double mean[second_points]{};
    Team::template for_second<c, e>(i, [&](int j, int(&index)[3]) {
      const auto my_end = this->template end<c, e>(mine, index, upper);
      const auto its_end = this->template end<c, e>(its, index, !upper);
      const double difference = my_end.value - its_end.value;
      const double both = of_mean * (my_end.value + its_end.value);
      const double slope = of_slope * (my_end.slope - its_end.slope);
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        const double psi = this->template in_second<c, e>(q, j);
        jump[q] += psi * difference;
        mean[q] += psi * both;
        conormal[q] += psi * slope;
        if constexpr (dim == 3) {
          conormal[q] += along<2>(e) * this->template slope_in_second<c, e>(q, j) * both;
        }
      }
    });
    this->put_on_face(side, L::trace(t) + i, jump);
    this->put_on_face(side, L::conormal_at + L::trace(t) + i, conormal);
    this->put_on_face(side, L::mean_at + L::trace(t) + i, mean);
  }
  template <int e>
  __device__ void hats_to_points(int side, int i) const {
    Team::template hats_to_points<e>(side, i);
    const int upper = side % 2;
    const Component mine = this->template component<e>(this->cell_);
    const Component its = this->template component<e>(this->beyond(side));
    const double of_slope = this->mean(side) * across(e);
    double conormal[second_points]{};
    Team::template for_second<e, e>(i, [&](int j, int(&index)[3]) {
      double slopes = 0.0;
#pragma unroll
      for (int m = 0; m <= n; ++m) {
        index[e] = m;
        slopes += tables_.parallel_end_slope[upper][m] * this->template coefficient<e>(mine, index) +
                  tables_.parallel_end_slope[1 - upper][m] * this->template coefficient<e>(its, index);
      }
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        conormal[q] += this->template in_second<e, e>(q, j) * of_slope * slopes;
      }
    });
    this->put_on_face(side, L::hat_slopes_at + i, conormal);
  }

  __device__ void line_on_face(int side, int q2) const {
    const Counted& from = tables_.from[side / 2];
    const double out = side % 2 == 1 ? 1.0 : -1.0;
    const double of_mean = this->mean(side);
    const double gamma = 2.0 * tables_.penalty * of_mean * across(side / 2);
    const double of_line = from.inverse_h[0] * (dim == 3 ? tables_.weight[q2] : 1.0);
    const auto value = [&](int entry) { return this->on_face(side, entry, q2); };
    double of_trace[L::traces];
    double of_conormal[L::traces];
    double of_hats[L::tangential][n];
    double of_slope[n];
    unrolled<L::traces>([&](int i) { of_trace[i] = of_conormal[i] = 0.0; });
    unrolled<n>([&](int i) { of_slope[i] = 0.0; });
    unrolled<L::tangential, n>([&](int t, int i) { of_hats[t][i] = 0.0; });
    const int first_weight = Team::first_weight(side, q2);
    double next = this->weight(first_weight);
#pragma unroll 1
    for (int q = 0; q < points; ++q) {
      const double w = of_line * tables_.weight[q] * next;
      if (q + 1 < points) next = this->weight(first_weight + q + 1);
      double jump[dim]{};
      double conormal[dim]{};
      double tilt[dim]{};  // derivatives of the normal component along the face
      unrolled<n>([&](int i) {
        conormal[0] += tables_.value[0][q][i] * value(L::hat_slopes_at + i);
        unrolled<L::tangential>(
            [&](int t) { tilt[1 + t] += in_first_of_hats(t, q, i) * value(L::hats_at + t * n + i); });
      });
      unrolled<L::tangential>([&](int t) {
        tilt[1 + t] *= from.inverse_h[1 + t];
        conormal[0] += from.inverse[0][1 + t] * tilt[1 + t];
        const int p = t == 0 ? 1 : 0;  // the first component has its P along the first direction
        double slope = 0.0;
#pragma unroll
        for (int i = L::trace(t); i < L::trace(t) + n + p; ++i) {
          const int f = i - L::trace(t);
          jump[1 + t] += tables_.value[p][q][f] * value(i);
          conormal[1 + t] += tables_.value[p][q][f] * value(L::conormal_at + i);
          slope += tables_.slope[p][q][f] * value(L::mean_at + i);
        }
        conormal[1 + t] += along<1>(side / 2) * slope;
      });
      double back[dim];
      double flux[dim];  // of the normal component none
      unrolled<dim>([&](int c) {
        double jumps = 0.0;
        double shear = stress ? tables_.turned * tilt[c] : 0.0;
#pragma unroll
        for (int b = 0; b < dim; ++b) {
          if (b > 0) jumps += from.metric[c][b] * jump[b];
          shear += from.metric[c][b] * conormal[b];
        }
        back[c] = -out * w * jumps;
        flux[c] = w * (gamma * jumps - out * shear);
      });
      unrolled<L::tangential>([&](int t) {
        const int p = t == 0 ? 1 : 0;
        const double along_line = of_mean * along<1>(side / 2) * back[1 + t];
#pragma unroll
        for (int i = 0; i < n + p; ++i) {
          of_trace[L::trace(t) + i] += tables_.value[p][q][i] * flux[1 + t] + tables_.slope[p][q][i] * along_line;
          of_conormal[L::trace(t) + i] += tables_.value[p][q][i] * back[1 + t];
        }
        double tilting = from.inverse[0][1 + t] * back[0];
        if constexpr (stress) tilting -= out * w * tables_.turned * jump[1 + t];
        tilting *= of_mean * from.inverse_h[1 + t];
#pragma unroll
        for (int i = 0; i < n; ++i) of_hats[t][i] += in_first_of_hats(t, q, i) * tilting;
      });
      unrolled<n>([&](int i) { of_slope[i] += tables_.value[0][q][i] * back[0]; });
    }
    unrolled<L::traces>([&](int i) {
      this->on_face(side, i, q2) = of_trace[i];
      this->on_face(side, L::conormal_at + i, q2) = of_conormal[i];
    });
    unrolled<n>([&](int i) { this->on_face(side, L::hat_slopes_at + i, q2) = of_slope[i]; });
    unrolled<L::tangential, n>([&](int t, int i) { this->on_face(side, L::hats_at + t * n + i, q2) = of_hats[t][i]; });
  }

  template <int e, int t>
  __device__ void trace_from_points(int i) const {
    constexpr int c = Team::tangent(e, t);
#pragma unroll 1
    for (int side = 2 * e; side < 2 * e + 2; ++side) {
      const bool upper = side % 2 == 1;
      const double of_mean = this->mean(side);
      const double of_slope = (upper ? of_mean : -of_mean) * across(e);
      Team::template for_second<c, e>(i, [&](int j, int(&index)[3]) {
        double value = 0.0;
        double slope = 0.0;
#pragma unroll
        for (int q = 0; q < second_points; ++q) {
          const double psi = this->template in_second<c, e>(q, j);
          const double of_conormal = this->on_face(side, L::conormal_at + L::trace(t) + i, q);
          value += psi * this->on_face(side, L::trace(t) + i, q);
          slope += psi * of_conormal;
          if constexpr (dim == 3) {
            value += of_mean * along<2>(e) * this->template slope_in_second<c, e>(q, j) * of_conormal;
          }
        }
        this->template add_to_line<c, e>(index, upper, value, of_slope * slope);
      });
    }
  }
  template <int e>
  __device__ void hats_from_points(int i) const {
    Team::template hats_from_points<e>(i);
#pragma unroll 1
    for (int side = 2 * e; side < 2 * e + 2; ++side) {
      const double of_slope = this->mean(side) * across(e);
      Team::template for_second<e, e>(i, [&](int j, int(&index)[3]) {
        double slope = 0.0;
#pragma unroll
        for (int q = 0; q < second_points; ++q) {
          slope += this->template in_second<e, e>(q, j) * this->on_face(side, L::hat_slopes_at + i, q);
        }
        slope *= of_slope;
#pragma unroll
        for (int m = 0; m <= n; ++m) {
          index[e] = m;
          this->row(e, L::template place_in_component<e>(index)) += tables_.parallel_end_slope[side % 2][m] * slope;
        }
      });
    }
  }

 private:
  /// Y, both [component][direction].
  __device__ void fluxes(const double (&gradient)[dim][dim], double (&flux)[dim][dim]) const {
    const Counted& box = tables_.from[0];
    double lifted[dim][dim];  // grad u G / J
    unrolled<dim, dim>([&](int c, int a) {
      lifted[c][a] = 0.0;
#pragma unroll
      for (int b = 0; b < dim; ++b) lifted[c][a] += gradient[c][b] * box.inverse[b][a];
    });
    unrolled<dim, dim>([&](int c, int a) {
      flux[c][a] = stress ? tables_.turned * gradient[a][c] : 0.0;
#pragma unroll
      for (int b = 0; b < dim; ++b) flux[c][a] += box.metric[c][b] * lifted[b][a];
    });
  }

  // What conormal derivatives across e take of derivatives across a face, and along it.
  template <int a>
  __device__ double along(int e) const {
    return tables_.from[e].inverse_h[a] * tables_.from[e].inverse[0][a];
  }
  __device__ double across(int e) const { return along<0>(e); }

  /// Of hats along the first direction, what a derivative in tangential direction t takes.
  __device__ double in_first_of_hats(int t, int q, int i) const {
    return t == 0 ? tables_.slope[0][q][i] : tables_.value[0][q][i];
  }
};

template <int dim, int order>
void add_sheared_point_viscosity(const PointViscosityArguments& arguments, Stream stream) {
  // There is no order 0 on such cells.
  if constexpr (order > 0) {
    const ShearedViscosityTablesOf<dim, order> tables(*arguments.tables);
    const ViscosityFields fields(arguments);
    const auto start = [&]<bool stress>() {
      launch_cell_team<ShearedPointViscosityCells<dim, order, stress>>("viscosity at points, sheared cells", tables,
                                                                       fields, stream);
    };
    if (arguments.stress) {
      start.template operator()<true>();
    } else {
      start.template operator()<false>();
    }
  }
}

}  // namespace solenoid::cuda
