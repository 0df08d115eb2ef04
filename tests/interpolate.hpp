#pragma once
/// \file
/// The canonical interpolation of smooth fields into RT_k x Q_k, for tests that need a solution without a solve.

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "base/host_vector.hpp"
#include "element/basis.hpp"
#include "mesh/grid.hpp"
#include "mesh/record.hpp"
#include "solenoid/solution.hpp"

namespace solenoid::test {

using Function = std::function<double(const Point&)>;
using Functions = std::array<Function, 3>;

/// Hats: moments of u.n on faces against Q_k; bubbles: (d u_c / d x_c, psi_j) = [u_c psi_j] - (u_c, psi_j').
/// So div I u is the L2 projection of div u, and fields in the space are reproduced. Pressure: L2 projection.
inline Solution interpolate(const Problem& problem, const Functions& velocity, const Function& pressure,
                            int points = 0) {
  const auto grid = std::make_shared<const Grid>(problem.mesh, problem.boundary, true);
  const int dim = grid->dim();
  const int order = problem.order;
  const int n = order + 1;
  const int record = record_size(dim, order);
  const Point h = grid->metric().uniform_width();
  const Quadrature rule = gauss(points > 0 ? points : order + 3);
  const int count = static_cast<int>(rule.points.size());
  HostVector x = zeros(std::int64_t{grid->layout().storage()} * record);

  double scale = 1.0;  // a mode's coefficient is its reference moment times sqrt(h) per direction
  for (int a = 0; a < dim; ++a) scale *= std::sqrt(h[a]);
  std::vector<std::vector<double>> psi;
  std::vector<std::vector<double>> slope;
  for (const double point : rule.points) {
    psi.push_back(legendre(order, point));
    slope.push_back(legendre(order, point, 1));
  }

  // Adds factor * (f, psi_a psi_b) over the section xi_c = s of the cell at x[at + i_a stride_a + i_b stride_b].
  const auto add_section = [&](const Function& f, const Point& corner, int c, double s, double factor, double* target) {
    const int a = (c + 1) % dim;
    const int b = dim == 3 ? (c + 2) % dim : -1;
    for (int qb = 0; qb < (dim == 3 ? count : 1); ++qb) {
      for (int qa = 0; qa < count; ++qa) {
        Point point = corner;
        point[c] += h[c] * s;
        point[a] += h[a] * rule.points[qa];
        double weight = rule.weights[qa];
        if (b >= 0) point[b] += h[b] * rule.points[qb], weight *= rule.weights[qb];
        const double value = factor * scale * weight * f(point);
        for (int ib = 0; ib < (dim == 3 ? n : 1); ++ib) {
          for (int ia = 0; ia < n; ++ia) {
            target[interleave * (ia + n * ib)] += value * psi[qa][ia] * (b >= 0 ? psi[qb][ib] : 1.0);
          }
        }
      }
    }
  };

  const int slice = power(n, dim - 1);
  for (const Record cell : grid->layout().cells()) {
    const Point corner = grid->corner(cell);
    double* own = &x[record_offset(cell, record)];
    for (int c = 0; c < dim; ++c) {
      double* block = own + interleave * c * power(n, dim);
      add_section(velocity[c], corner, c, 0.0, 1.0, block);
      const Record upper = grid->neighbour(cell, 2 * c + 1);
      if (!grid->layout().is_cell(upper)) {
        add_section(velocity[c], corner, c, 1.0, 1.0,
                    &x[record_offset(upper, record) + std::int64_t{interleave} * c * power(n, dim)]);
      }
      for (int j = 1; j <= order; ++j) {
        add_section(velocity[c], corner, c, 1.0, legendre(order, 1.0)[j], block + interleave * slice * j);
        add_section(velocity[c], corner, c, 0.0, -legendre(order, 0.0)[j], block + interleave * slice * j);
        for (int q = 0; q < count; ++q) {
          add_section(velocity[c], corner, c, rule.points[q], -rule.weights[q] * slope[q][j],
                      block + interleave * slice * j);
        }
      }
    }
    // Pressure: direction 0 is fastest, so sections across the last direction fill whole slices.
    const int last = dim - 1;
    for (int q = 0; q < count; ++q) {
      for (int j = 0; j < n; ++j) {
        add_section(pressure, corner, last, rule.points[q], rule.weights[q] * psi[q][j],
                    own + interleave * (dim * power(n, dim) + slice * j));
      }
    }
  }
  return {problem, grid, std::move(x)};
}

}  // namespace solenoid::test
