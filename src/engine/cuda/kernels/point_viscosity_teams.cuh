#pragma once
/// \file
/// What the kernels of a viscosity at points share (point_viscosity.cuh, sheared_point_viscosity.cuh).

#include "engine/cuda/kernels/cell_teams.cuh"
#include "engine/cuda/kernels/point_viscosity.hpp"

namespace solenoid::cuda {

/// The tables of one order.
template <int order>
struct ViscosityTablesOf : FunctionsAtPoints<order, viscosity_points(order)> {
  static constexpr int n = order + 1;

  double end[n];
  double end_slope[n];
  double penalty;
  double inverse_h[3];

  explicit ViscosityTablesOf(const ViscosityTables& from)
      : FunctionsAtPoints<order, viscosity_points(order)>(from.functions), penalty(from.penalty) {
    std::copy_n(from.functions.end, n, end);
    std::copy_n(from.functions.end_slope, n, end_slope);
    std::copy_n(from.inverse_h, 3, inverse_h);
  }
};

struct ViscosityFields : CellTeamFields {
  const float* weights;
  double sign;
  double* upper;

  explicit ViscosityFields(const PointViscosityArguments& from)
      : CellTeamFields{from.topology, from.cells, from.x, from.y},
        weights(from.weights),
        sign(from.sign),
        upper(from.upper) {}
};

/// A thread.
template <class Kernel, class Layout, class Tables>
class PointViscosityTeam : public CellTeam<Kernel, Layout, Tables, ViscosityFields> {
  using Team = CellTeam<Kernel, Layout, Tables, ViscosityFields>;

 public:
  /// Rows are added to y, those of upper hats left for the cells above (add_upper_hats).
  __device__ void finish() const {
    if (!is_cell_) return;
    double* const y = this->record(cell_);
    double* const upper = fields_.upper + record_offset(cell_, dim * L::columns);
    this->for_rows([&](int c, int i, double row) { y[(c * L::block + i) * interleave] += fields_.sign * row; });
    this->for_upper_rows(
        [&](int c, int i, double row) { upper[(c * L::columns + i) * interleave] = fields_.sign * row; });
  }

 protected:
  using Team::buffer, Team::cell_, Team::fields_, Team::is_cell_, Team::space, Team::tables_;
  using Team::dim, Team::n, Team::points;
  using Team::second_points;
  using typename Team::L, typename Team::Component;

  __device__ PointViscosityTeam(const Tables& tables, const ViscosityFields& fields, double* shared)
      : Team(tables, fields, shared) {
    weights_ = fields.weights + record_offset(is_cell_ ? cell_ : 0, point_weights_of_cell(dim, L::order));
  }

  __device__ double weight(int i) const {
    return is_cell_ ? static_cast<double>(__ldg(weights_ + i * interleave)) : 0.0;
  }
  /// Of a line of points on a face.
  static constexpr int first_weight(int side, int q2) { return power(points, dim) + side * L::lines + points * q2; }

  /// The function i of x of a component at point q, or its derivative: what a derivative in direction a takes.
  __device__ double in_x(int c, int a, int q, int i) const {
    return a == 0 ? tables_.slope[space(c, 0)][q][i] : tables_.value[space(c, 0)][q][i];
  }

  /// 1 on faces with nothing behind, otherwise 1/2: what a mean takes of a slope.
  __device__ double mean(int side) const { return this->face(side) != Face::interior ? 1.0 : 0.5; }

  /// Of a line of component c across a face of a cell, seen from `upper` ends or lower ones; slopes point outwards.
  struct End {
    double value = 0.0;
    double slope = 0.0;
  };
  template <int c, int a>
  __device__ End end(const Component& of, int (&index)[3], bool upper) const {
    End end;
#pragma unroll
    for (int m = 0; m < n; ++m) {
      index[a] = m;
      const double u = this->template coefficient<c>(of, index);
      const double signed_u = upper || m % 2 == 0 ? u : -u;
      end.value += tables_.end[m] * signed_u;
      end.slope += tables_.end_slope[m] * signed_u;
    }
    return end;
  }
  /// The transpose, added to the rows of the line.
  template <int c, int a>
  __device__ void add_to_line(int (&index)[3], bool upper, double value, double slope) const {
#pragma unroll
    for (int m = 0; m < n; ++m) {
      index[a] = m;
      const double sum = tables_.end[m] * value + tables_.end_slope[m] * slope;
      this->row(c, L::template place_in_component<c>(index)) += upper || m % 2 == 0 ? sum : -sum;
    }
  }

 private:
  const float* weights_;
};

}  // namespace solenoid::cuda
