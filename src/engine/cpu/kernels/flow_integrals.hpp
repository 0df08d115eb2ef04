#pragma once
/// \file
/// Energy, enstrophy and the like of a flow: sums over cells of products of the velocity and its gradient at points,
/// and the largest speed and divergence there. Lanes are cells. Traffic per unknown: 6 bytes (2D: 5.3; nothing of
/// pressures), and 8 for each number of the viscosity.

#include "engine/cpu/kernels/flow_at_points.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <int dim, int order>
struct FlowIntegralsOfCells : FlowAtPoints<dim, order> {
  using Base = FlowAtPoints<dim, order>;
  using Base::in_plane, Base::planes, Base::points;
  using typename Base::Cells, typename Base::Coefficients, typename Base::Plane, typename Base::R, typename Base::V;

  /// As FlowPartial, of each lane.
  struct Sums {
    R velocity[dim];
    R velocity_square;
    R gradient_square;
    R vorticity_square;
    R dissipation;
    R speed_square;
    R divergence;
  };

  [[gnu::always_inline]] static R larger_or_nan(const R& a, const R& b) { return (b > a) | (b != b) ? b : a; }
  [[gnu::always_inline]] static R absolute(const R& x) { return x > 0.0 ? x : -x; }

  static void add_points(const FlowIntegralsArguments& arguments, const Cells& cells, const Coefficients& flow,
                         int part, Sums& sums) {
    const FlowData& data = *arguments.data;
    for (int plane = 0; plane < planes; ++plane) {
      Plane at;
      at.evaluate(data.functions, flow, flow, part, plane);
      for (int q = 0; q < in_plane; ++q) {
        R u[dim];
        R g[dim][dim];
        at.read(data, q, u, g);
        R square{};
        R divergence{};
        R gradient{};
        R vorticity{};
        const double weight = data.functions.weight[q % points] * data.functions.weight[q / points] *
                              (dim == 3 ? data.functions.weight[plane] : 1.0);
        for (int c = 0; c < dim; ++c) {
          sums.velocity[c] += weight * u[c];
          square += u[c] * u[c];
          divergence += g[c][c];
          for (int a = 0; a < dim; ++a) {
            gradient += g[c][a] * g[c][a];
            const R rotation = g[c][a] - g[a][c];
            if (a > c) vorticity += rotation * rotation;
          }
        }
        sums.velocity_square += weight * square;
        sums.gradient_square += weight * gradient;
        sums.vorticity_square += weight * vorticity;
        sums.speed_square = larger_or_nan(sums.speed_square, square);
        sums.divergence = larger_or_nan(sums.divergence, absolute(divergence));
        sums.dissipation += weight *
                            Base::viscosity_at(arguments.viscosity, arguments.topology, cells.number + part * V::lanes,
                                               plane * in_plane + q) *
                            Base::dissipation_of(data.stress, g);
      }
    }
  }

  static double sum_of(const R& lanes) {
    double sum = 0.0;
    for (int l = 0; l < V::lanes; ++l) sum += lanes[l];
    return sum;
  }
  static double largest_of(const R& lanes) {
    R largest{};
    for (int l = 0; l < V::lanes; ++l) largest = larger_or_nan(largest, lanes[l] + R{});
    return largest[0];
  }

  static FlowPartial integrate(const FlowIntegralsArguments& arguments) {
    Sums sums{};
    for (std::int32_t first = arguments.begin; first < arguments.end; first += width) {
      const Cells cells(arguments.topology, first, arguments.end);
      Coefficients flow;
      cells.load(arguments.x, flow);
      for (int part = 0; part < V::parts; ++part) add_points(arguments, cells, flow, part, sums);
    }
    const double root = arguments.data->root_volume;
    FlowPartial all{};
    for (int c = 0; c < dim; ++c) all.velocity[c] = root * sum_of(sums.velocity[c]);
    all.velocity_square = sum_of(sums.velocity_square);
    all.gradient_square = sum_of(sums.gradient_square);
    all.vorticity_square = sum_of(sums.vorticity_square);
    all.dissipation = sum_of(sums.dissipation);
    all.speed_square = largest_of(sums.speed_square) / (root * root);
    all.divergence = largest_of(sums.divergence) / root;
    return all;
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
