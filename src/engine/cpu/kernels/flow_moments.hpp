#pragma once
/// \file
/// Second moments of a flow about its mean, and its dissipation, projected to Q_k (engine/flow_moments.hpp). Lanes are
/// cells.
///
/// Plane by plane: u - U and grad u at points, their products, and these projected, along x, y and the last direction.
/// Traffic per unknown in 3D: 40 bytes (6 of u and of the mean, 14 of moments to read and to write; 2D: 42), and 8 for
/// each number of the viscosity.

#include "element/moments.hpp"
#include "engine/cpu/kernels/flow_at_points.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <int dim, int order>
struct FlowMomentsOfCells : FlowAtPoints<dim, order> {
  using Base = FlowAtPoints<dim, order>;
  using Base::block, Base::in_plane, Base::n, Base::planes, Base::points;
  using typename Base::Cells, typename Base::Coefficients, typename Base::Plane, typename Base::R, typename Base::V;
  static constexpr int moments = flow_moments(dim);
  static_assert(points == moment_points(order));

  struct Sums {
    V of[moments][block];
  };

  /// Of values at the points of a plane.
  [[gnu::always_inline]] static void project(const PointTables& functions, const R* values, int part, int plane,
                                             V* sums) {
    R along_x[points * n];
    for (int q = 0; q < points; ++q) {
      Base::template from_points<points, n, false>(functions.test_value[0], values + points * q, 1, along_x + n * q, 1);
    }
    for (int i = 0; i < n; ++i) {
      R flat[n];
      Base::template from_points<points, n, false>(functions.test_value[0], along_x + i, n, flat, 1);
      for (int j = 0; j < n; ++j) {
        V* const to = sums + i + n * j;
        if constexpr (dim == 2) {
          to->part[part] = flat[j];
        } else {
          const double* const test = functions.test_value[0][plane];
          for (int l = 0; l < n; ++l) to[n * n * l].part[part] += test[l] * flat[j];
        }
      }
    }
  }

  /// Of the difference from the mean, and of the flow.
  static void add_products(const FlowMomentsArguments& arguments, const Cells& cells, const Coefficients& difference,
                           const Coefficients& flow, int part, Sums& sums) {
    const FlowData& data = *arguments.data;
    for (int plane = 0; plane < planes; ++plane) {
      Plane at;
      at.evaluate(data.functions, difference, flow, part, plane);
      R products[moments][in_plane];
      for (int q = 0; q < in_plane; ++q) {
        R d[dim];
        R g[dim][dim];
        at.read(data, q, d, g);
        for (int c = 0; c < dim; ++c) {
          for (int e = c; e < dim; ++e) products[stress_index(dim, c, e)][q] = d[c] * d[e];
        }
        products[moments - 1][q] = Base::viscosity_at(arguments.viscosity, arguments.topology,
                                                      cells.number + part * V::lanes, plane * in_plane + q) *
                                   Base::dissipation_of(data.stress, g);
      }
      for (int m = 0; m < moments; ++m) project(data.functions, products[m], part, plane, sums.of[m]);
    }
  }

  static void add(const FlowMomentsArguments& arguments) {
    const double r = arguments.part;
    const double scale = 1.0 / arguments.data->root_volume;
    for (std::int32_t first = arguments.begin; first < arguments.end; first += width) {
      const Cells cells(arguments.topology, first, arguments.end);
      Coefficients flow;
      Coefficients difference;
      cells.load(arguments.flow, flow);
      cells.load(arguments.mean, difference);
      for (int c = 0; c < dim; ++c) {
        for (int i = 0; i < Base::rows; ++i) difference[c][i] = flow[c][i] - difference[c][i];
      }
      Sums sums{};
      for (int part = 0; part < V::parts; ++part) add_products(arguments, cells, difference, flow, part, sums);
      const Lanes<block> own(cells.number, arguments.topology.null);
      for (int m = 0; m < moments; ++m) {
        double* const moment = arguments.moments + m * arguments.size;
        alignas(SOLENOID_SIMD_BYTES) double scratch[block * interleave];
        const double* const before = own.template view<block>(moment, 0, scratch);
        V now[block];
        for (int i = 0; i < block; ++i) {
          const V known = load(before + i * interleave);
          const V found = scale * sums.of[m][i];
          now[i] = m == moments - 1 ? known + r * (found - known) : (1.0 - r) * (known + r * found);
        }
        own.template write<false>(block, moment, 0, now);
      }
    }
  }
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
