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
/// In the steps of cell_teams.cuh. Inside functions go to points as values alone, and come back integrated against what
/// is differentiated in each direction; a line of points has the rate, too. Entries on faces are traces of the cell,
/// then of what lies beyond, and hats.
///
/// Traffic per unknown: DRAM u and y once, 16 bytes, hats once more.

#include "engine/cuda/kernels/cell_teams.cuh"
#include "engine/cuda/kernels/convection.hpp"
#include "engine/cuda/kernels/largest_rate.cuh"

namespace solenoid::cuda {

template <int dim, int order>
using ShearedConvectionLayout =
    CellTeams<CellTeamLayout<dim, order, convection_points(order), 2, 1, false>, true, registers_of_wide_teams(order)>;

/// ShearedConvectionArguments, with what one order needs of their tables in place of these.
template <int order>
struct ShearedConvectionFields : CellTeamFields {
  double upwind;  ///< 1, or 0: central
  ShearedConvectionFactors factors;
  double end[order + 1];  ///< psi_j(1)
  std::uint64_t* rate;

  explicit ShearedConvectionFields(const ShearedConvectionArguments& from)
      : CellTeamFields{from.topology, from.cells, from.u, from.y},
        upwind(from.flux == ConvectiveFlux::upwind ? 1.0 : 0.0),
        factors(from.factors),
        rate(from.rate) {
    std::copy_n(from.tables->end, order + 1, end);
  }
};

template <int dim, int order>
class ShearedConvectionCells
    : public CellTeam<ShearedConvectionCells<dim, order>, ShearedConvectionLayout<dim, order>,
                      FunctionsAtPoints<order, convection_points(order)>, ShearedConvectionFields<order>> {
  using Team = CellTeam<ShearedConvectionCells, ShearedConvectionLayout<dim, order>,
                        FunctionsAtPoints<order, convection_points(order)>, ShearedConvectionFields<order>>;
  using Team::buffer, Team::cell_, Team::fields_, Team::is_cell_, Team::tables_;
  using Team::n, Team::points, Team::second_points, Team::space;
  using typename Team::L, typename Team::Component;

 public:
  __device__ ShearedConvectionCells(const typename Team::Tables& tables, const typename Team::Fields& fields,
                                    double* shared)
      : Team(tables, fields, shared) {}

  __device__ void line_inside(int line) {
    double along[L::functions];
    double sum[dim][L::functions];  // [direction][function of x]
    unrolled<L::functions>([&](int f) { along[f] = buffer(L::place(0, f, line)); });
    unrolled<dim, L::functions>([&](int a, int f) { sum[a][f] = 0.0; });
    const double of_line = tables_.weight[line % points] * (dim == 3 ? tables_.weight[line / points] : 1.0);
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
      rate_ = std::max(rate_, static_cast<std::uint64_t>(__double_as_longlong(crossing)));
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
  }

  template <int a, int t>
  __device__ void trace_to_points(int side, int i) const {
    constexpr int c = Team::tangent(a, t);
    const bool upper = side % 2 == 1;
    const Component mine = this->template component<c>(cell_);
    const Component its = this->template component<c>(this->beyond(side));
    double here[second_points]{};
    double there[second_points]{};
    Team::template for_second<c, a>(i, [&](int j, int(&index)[3]) {
      const double my_end = end<c, a>(mine, index, upper);
      const double its_end = end<c, a>(its, index, !upper);
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        const double psi = this->template in_second<c, a>(q, j);
        here[q] += psi * my_end;
        there[q] += psi * its_end;
      }
    });
    this->put_on_face(side, L::trace(t) + i, here);
    this->put_on_face(side, L::traces + L::trace(t) + i, there);
  }

  /// Components count from the normal one.
  __device__ void line_on_face(int side, int q2) const {
    const int a = side / 2;
    const double out = side % 2 == 1 ? 1.0 : -1.0;
    const Face kind = this->face(side);
    const bool inner = kind == Face::interior;
    const double upwind = inner ? fields_.upwind : 1.0;
    const double of_line = fields_.factors.scale[a] * (dim == 3 ? tables_.weight[q2] : 1.0);
    double along[L::entries];
    double of_traces[L::traces];
    double of_hats[n];
    unrolled<L::entries>([&](int entry) { along[entry] = this->on_face(side, entry, q2); });
    unrolled<L::traces>([&](int i) { of_traces[i] = 0.0; });
    unrolled<n>([&](int i) { of_hats[i] = 0.0; });
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
          its[1 + t] += tables_.value[p][q][i] * along[L::traces + L::trace(t) + i];
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
        for (int i = 0; i < n + p; ++i) of_traces[L::trace(t) + i] += tables_.value[p][q][i] * flux;
      });
      const double leaving = kind == Face::outflow && outward > 0.0 ? weight * outward * transported(a, 0, mine) : 0.0;
#pragma unroll
      for (int i = 0; i < n; ++i) of_hats[i] += tables_.value[0][q][i] * leaving;
    }
    unrolled<L::traces>([&](int i) { this->on_face(side, i, q2) = of_traces[i]; });
    unrolled<n>([&](int i) { this->on_face(side, L::hats_at + i, q2) = of_hats[i]; });
  }

  template <int a, int t>
  __device__ void trace_from_points(int i) const {
    constexpr int c = Team::tangent(a, t);
    Team::template for_second<c, a>(i, [&](int j, int(&index)[3]) {
      double lower = 0.0;
      double upper = 0.0;
#pragma unroll
      for (int q = 0; q < second_points; ++q) {
        const double psi = this->template in_second<c, a>(q, j);
        lower += psi * this->on_face(2 * a, L::trace(t) + i, q);
        upper += psi * this->on_face(2 * a + 1, L::trace(t) + i, q);
      }
#pragma unroll
      for (int m = 0; m < n; ++m) {
        index[a] = m;
        this->row(c, L::template place_in_component<c>(index)) +=
            fields_.end[m] * (m % 2 == 0 ? upper + lower : upper - lower);
      }
    });
  }

  /// Rows of hats are added to what is zero before (clear_hats): the sum of zero and two numbers does not depend on
  /// their order. Pressures are zero.
  __device__ void finish() const {
    if (is_cell_) {
      const auto is_free = [&](int side) { return !normal_fixed(fields_.topology.face[side][cell_]); };
      double* const y = this->record(cell_);
      this->for_rows([&](int c, int i, double row) {
        double* const to = y + (c * L::block + i) * interleave;
        if (i >= L::columns) {
          *to = row;
        } else if (is_free(2 * c)) {
          atomicAdd(to, row);
        }
      });
      this->for_upper_rows([&](int c, int i, double row) {
        const int side = 2 * c + 1;
        if (!is_free(side)) return;
        double* const above = this->record(fields_.topology.neighbour[side][cell_]);
        atomicAdd(above + (c * L::block + i) * interleave, row);
      });
      double* const pressures = y + dim * L::block * interleave;
      this->template for_jobs<L::block>([&](int i) { pressures[i * interleave] = 0.0; });
    }
    write_largest_rate(rate_, threadIdx.x + L::lanes * threadIdx.y, fields_.rate);
  }

 private:
  /// w_a, of velocities that begin with component `first`; a counts from there as well.
  __device__ double transported(int first, int a, const double (&u)[dim]) const {
    double w = 0.0;
#pragma unroll
    for (int b = 0; b < dim; ++b) w += fields_.factors.metric[(first + a) % dim][(first + b) % dim] * u[b];
    return w;
  }

  /// The value of a line of component c across a face of a cell, seen from its upper end or the lower one.
  template <int c, int a>
  __device__ double end(const Component& of, int (&index)[3], bool upper) const {
    double value = 0.0;
#pragma unroll
    for (int m = 0; m < n; ++m) {
      index[a] = m;
      const double u = fields_.end[m] * this->template coefficient<c>(of, index);
      value += upper || m % 2 == 0 ? u : -u;
    }
    return value;
  }

  std::uint64_t rate_ = 0;  ///< the bits of the largest sum_a |u_a| / (J h_a) at its points
};

template <int dim, int order>
void convect_sheared(const ShearedConvectionArguments& arguments, Stream stream) {
  // There is no order 0 on such cells.
  if constexpr (order > 0) {
    using Cells = ShearedConvectionCells<dim, order>;
    launch_cell_team<Cells>("convection, sheared cells", typename Cells::Tables(*arguments.tables),
                            typename Cells::Fields(arguments), stream);
  }
}

}  // namespace solenoid::cuda
