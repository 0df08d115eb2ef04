#pragma once
/// \file
/// Flows at Gauss points of cells: velocities and their gradients in space, plane by plane across the last direction.
/// Lanes are cells. Functions carry 1 / sqrt(volume): what is here is sqrt(volume) times that of the flow.

#include "engine/cpu/kernels/point_functions.hpp"
#include "engine/cpu/kernels/points_table.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <int dim, int order>
struct FlowAtPoints : PointFunctions<dim, order, flow_points(order)> {
  using Base = PointFunctions<dim, order, flow_points(order)>;
  using Base::block, Base::columns, Base::points, Base::record, Base::rows;
  using typename Base::R, typename Base::V;
  static constexpr int in_plane = points * points;
  using Coefficients = V[dim][rows];

  /// The cells from `first` on up to `end`, and nothing in lanes that are left.
  struct Cells {
    std::int32_t number[width];
    Lanes<record> own;
    Lanes<record> above[dim];  // which have the upper hats

    Cells(const CellTopology& topology, std::int32_t first, std::int32_t end) {
      for (int l = 0; l < width; ++l) number[l] = first + l < end ? first + l : topology.null;
      own = Lanes<record>(number, topology.null);
      for (int c = 0; c < dim; ++c) {
        std::int32_t upper[width];
        look_up(topology.neighbour[2 * c + 1], number, upper);
        above[c] = Lanes<record>(upper, topology.null);
      }
    }
    void load(const double* x, Coefficients& coefficients) const {
      for (int c = 0; c < dim; ++c) {
        own.template load_values<block>(x, c * block, coefficients[c]);
        above[c].template load_values<columns>(x, c * block, coefficients[c] + block);
      }
    }
  };

  /// Values of one field and the gradient of another, or of the same, at the points of a plane.
  struct Plane {
    R u[dim][in_plane];
    R g[dim][dim][in_plane];  // [component][direction]

    /// Of boxes, with derivatives on the unit interval.
    void evaluate(const PointTables& functions, const Coefficients& of_values, const Coefficients& of_gradient,
                  int part, int plane) {
      Base::template for_components<0>([&]<int c>() {
        Base::template values_on_plane<c>(functions, of_values[c], part, plane, u[c]);
        Base::template for_components<0>(
            [&]<int a>() { Base::template values_on_plane<c, a>(functions, of_gradient[c], part, plane, g[c][a]); });
      });
    }
    /// In space at a point.
    [[gnu::always_inline]] void read(const FlowData& data, int q, R (&u_q)[dim], R (&g_q)[dim][dim]) const {
      for (int c = 0; c < dim; ++c) {
        u_q[c] = u[c][q];
        for (int a = 0; a < dim; ++a) g_q[c][a] = data.inverse_h[a] * g[c][a][q];
      }
      if (data.map.sheared) take_image(data.map, u_q, g_q);
    }
  };

  [[gnu::always_inline]] static void take_image(const CellMap& map, R (&u)[dim], R (&g)[dim][dim]) {
    R of_u[dim];
    R half[dim][dim];  // image g
    for (int i = 0; i < dim; ++i) {
      of_u[i] = R{};
      for (int c = 0; c < dim; ++c) of_u[i] += map.image[i][c] * u[c];
      for (int a = 0; a < dim; ++a) {
        half[i][a] = R{};
        for (int c = 0; c < dim; ++c) half[i][a] += map.image[i][c] * g[c][a];
      }
    }
    for (int i = 0; i < dim; ++i) {
      u[i] = of_u[i];
      for (int j = 0; j < dim; ++j) {
        g[i][j] = R{};
        for (int a = 0; a < dim; ++a) g[i][j] += map.pulled[a][j] * half[i][a];
      }
    }
  }

  /// |grad u|^2, or 2 |eps(u)|^2: times nu the power per volume that viscosity takes.
  [[gnu::always_inline]] static R dissipation_of(bool stress, const R (&g)[dim][dim]) {
    R sum{};
    for (int c = 0; c < dim; ++c) {
      for (int a = 0; a < dim; ++a) sum += g[c][a] * (stress ? g[c][a] + g[a][c] : g[c][a]);
    }
    return sum;
  }
  /// At a point of the cells of a register; 0 in lanes without one.
  [[gnu::always_inline]] static R viscosity_at(const ViscosityOfCells& nu, const CellTopology& topology,
                                               const std::int32_t* cells, int point) {
    if (nu.of == nullptr) return nu.number + R{};
    R result{};
    for (int l = 0; l < V::lanes; ++l) {
      if (cells[l] != topology.null) result[l] = nu.of[std::int64_t{cells[l]} * nu.of_cell + point * nu.of_point];
    }
    return result;
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
