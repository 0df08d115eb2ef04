/// \file
/// What is measured of flows on cells that are parallelepipeds: forces, fluxes, stresses, arrays, permeabilities.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "coarse_boxes.hpp"
#include "element/basis.hpp"
#include "flows.hpp"
#include "mesh/grid.hpp"
#include "sheared_flows.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

using test::Boxes;
using test::LinearFlow;
using test::on_cpu;
using test::some_edges;
using Function = std::function<double(const Point&)>;

Solution solved(const Problem& problem, double rtol = 1e-13) {
  auto [solution, report] = solve(problem, on_cpu(rtol));
  EXPECT_LE(report.residual_history.back(), 10 * rtol) << report.reason;
  return solution;
}

std::map<std::string, BoundaryForce> by_name(const std::vector<BoundaryForce>& forces) {
  std::map<std::string, BoundaryForce> result;
  for (const BoundaryForce& force : forces) result[force.name] = force;
  return result;
}

void expect_near(const Point& a, const Point& b, double tolerance, const std::string& what) {
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(a[c], b[c], tolerance * std::max(1.0, std::abs(b[c]))) << what << ", "
                                                                       << "xyz"[c];
  }
}

/// Two by three boxes, one of which is a hole; in 3D two layers.
Mesh mesh_with_hole(int dim, int refine) {
  Mesh mesh = Mesh::sheared(dim, some_edges(dim), refine);
  mesh.lower = {0.2, -0.1, dim == 3 ? 0.3 : 0.0};
  mesh.cells = {3, 2, dim == 3 ? 2 : 1};
  mesh.holes = {{{1, 0, 0}, {2, 1, 1}}};
  return mesh;
}

/// With velocities prescribed everywhere, on one side the traction.
Problem with_linear_flow(int dim, int order, int open) {
  const LinearFlow flow(dim);
  Problem problem{.mesh = mesh_with_hole(dim, dim == 2 ? 1 : 0), .order = order, .viscosity = 0.6};
  problem.force = LinearFlow::force();
  problem.boundary.holes.data = flow.velocity();
  for (int side = 0; side < 2 * dim; ++side) {
    Side& condition = problem.boundary.sides[side];
    condition.data = flow.velocity();
    if (side != open) continue;
    condition.kind = SideKind::outflow;
    condition.data = flow.traction(Boxes(problem).normal(side), 0.6);
  }
  return problem;
}

/// visit(dimension, order)
template <class Visit>
void for_orders(int most_in_2d, int most_in_3d, const Visit& visit) {
  for (const int dim : {2, 3}) {
    for (int order = 1; order <= (dim == 2 ? most_in_2d : most_in_3d); ++order) {
      if (test::has_order(dim, order)) visit(dim, order);
    }
  }
}

// Forces -------------------------------------------------------------------------------------------------------------

TEST(ShearedForces, AreThoseOfTheExactStress) {
  for_orders(3, 2, [](int dim, int order) {
    for (int open = 0; open < 2 * dim; ++open) {
      const std::string what = fmt::format("{}D, k = {}, open side {}, ", dim, order, open);
      const LinearFlow flow(dim);
      const Problem problem = with_linear_flow(dim, order, open);
      const Solution s = solved(problem);
      const Point about{0.3, -0.2, 0.6};
      const Boxes boxes(problem);
      const auto exact = test::exact_forces(problem, about, [&](const std::array<int, 3>&, int side) {
        return flow.traction(boxes.normal(side), problem.viscosity);
      });
      const auto forces = by_name(s.forces(about));
      ASSERT_EQ(forces.size(), exact.size()) << what;
      for (const auto& [name, force] : exact) {
        expect_near(forces.at(name).force, force.force, 1e-9, what + name + " force");
        expect_near(forces.at(name).torque, force.torque, 1e-9, what + name + " torque");
        Point sampled{};
        for (int c = 0; c < dim; ++c) {
          sampled[c] = forces.at(name).sampled_pressure[c] + forces.at(name).sampled_viscous[c];
        }
        expect_near(sampled, force.force, 1e-8, what + name + " sampled");
      }
    }
  });
}

/// All forces together are the integral of f - alpha u, whatever the sides are.
TEST(ShearedForces, BalanceWhatDrivesTheFlow) {
  for_orders(3, 2, [](int dim, int order) {
    for (const SideKind kind : {SideKind::velocity, SideKind::slip, SideKind::outflow, SideKind::periodic}) {
      const std::string what = fmt::format("{}D, k = {}, kind {}", dim, order, static_cast<int>(kind));
      Problem problem{.mesh = mesh_with_hole(dim, 1), .order = order, .viscosity = 0.7, .mass = 3.0};
      problem.force = {Function([](const Point& x) { return 3.0 * x[1] + x[0] - 2.0 * x[2] + 0.7; }),
                       Function([](const Point& x) { return 1.5 - 2.0 * x[0] + x[0] * x[2]; }),
                       Function([](const Point& x) { return x[0] - x[1] * x[2]; })};
      if (dim == 2) problem.force[2] = 0.0;
      // A wall slides along an edge.
      const Point edge = (*problem.mesh.edges)[0];
      for (int c = 0; c < dim; ++c) {
        problem.boundary.sides[3].data[c] =
            Function([=](const Point& x) { return edge[c] * std::sin(5.0 * x[0] + 3.0 * x[1]); });
      }
      for (const int side : {0, 1}) problem.boundary.sides[side].kind = kind;
      if (kind == SideKind::outflow) {
        problem.boundary.sides[1].data = {Function([](const Point& x) { return std::sin(4.0 * x[1]); }), 0.3};
      }
      const Solution s = solved(problem, 1e-12);
      Point driving{};
      double volume = 0.0;
      const Boxes boxes(problem);
      boxes.for_each([&](const std::array<int, 3>& box) {
        boxes.integrate(box, -1, [&](const Point& x, double weight) {
          volume += weight;
          for (int c = 0; c < dim; ++c) driving[c] += weight * problem.force[c](x);
        });
      });
      const double cells = dim == 2 ? 6.0 : 12.0;
      volume *= cells / (cells - 1.0);
      const Point u = s.mean_velocity();
      Point sum{};
      double largest = 0.0;
      for (const BoundaryForce& force : s.forces()) {
        for (int c = 0; c < dim; ++c) {
          sum[c] += force.force[c];
          largest = std::max(largest, std::abs(force.force[c]));
        }
      }
      EXPECT_GT(largest, 0.1) << what;
      for (int c = 0; c < dim; ++c) {
        EXPECT_NEAR(sum[c], driving[c] - problem.mass * volume * u[c], 1e-9 * (1.0 + largest)) << what;
      }
    }
  });
}

/// Between walls at rest torques balance, too.
TEST(ShearedForces, BalanceTorques) {
  for_orders(3, 2, [](int dim, int order) {
    Problem problem{.mesh = mesh_with_hole(dim, 1), .order = order, .viscosity = 0.7};
    problem.force = {Function([](const Point& x) { return 3.0 * x[1] - 2.0 * x[2] + 0.7; }),
                     Function([](const Point& x) { return 1.5 - 2.0 * x[0]; })};
    if (dim == 3) problem.force[2] = Function([](const Point& x) { return x[0] - x[1]; });
    const Point about{0.4, 0.1, 0.0};
    const Solution s = solved(problem, 1e-12);
    Point turning{};
    const Boxes boxes(problem);
    boxes.for_each([&](const std::array<int, 3>& box) {
      boxes.integrate(box, -1, [&](const Point& x, double weight) {
        Point f{};
        Point lever{};
        for (int c = 0; c < dim; ++c) {
          f[c] = problem.force[c](x);
          lever[c] = x[c] - about[c];
        }
        add_times(turning, weight, cross_product(lever, f));
      });
    });
    Point sum{};
    for (const BoundaryForce& force : s.forces(about)) add_times(sum, 1.0, force.torque);
    expect_near(sum, turning, 1e-9, fmt::format("{}D, k = {}", dim, order));
    EXPECT_GT(std::abs(turning[2]), 0.05);
  });
}

/// u = curl of sin(2x) sin(3y), p = cos(x + 2 y) around a hole.
TEST(ShearedForces, ConvergeFasterThanSamples) {
  constexpr double nu = 0.7;
  const std::array<Function, 2> u{[](const Point& x) { return 3 * std::sin(2 * x[0]) * std::cos(3 * x[1]); },
                                  [](const Point& x) { return -2 * std::cos(2 * x[0]) * std::sin(3 * x[1]); }};
  const Function p = [](const Point& x) { return std::cos(x[0] + 2 * x[1]); };
  const auto slope = [](const Point& x, int c, int a) {
    const double diagonal = 6 * std::cos(2 * x[0]) * std::cos(3 * x[1]);
    if (c == a) return c == 0 ? diagonal : -diagonal;
    return std::sin(2 * x[0]) * std::sin(3 * x[1]) * (c == 0 ? -9 : 4);
  };
  Problem problem{.mesh = mesh_with_hole(2, 0), .viscosity = nu};
  const Boxes boxes(problem);
  const auto traction = [&](const std::array<int, 3>&, int side) {
    const Point n = boxes.normal(side);
    std::array<Function, 3> t;
    for (int c = 0; c < 2; ++c) {
      t[c] = [=](const Point& x) { return nu * (slope(x, c, 0) * n[0] + slope(x, c, 1) * n[1]) - p(x) * n[c]; };
    }
    return t;
  };
  problem.force = {Function([=](const Point& x) { return 13 * nu * u[0](x) - std::sin(x[0] + 2 * x[1]); }),
                   Function([=](const Point& x) { return 13 * nu * u[1](x) - 2 * std::sin(x[0] + 2 * x[1]); })};
  for (Side& side : problem.boundary.sides) side.data = {u[0], u[1]};
  problem.boundary.holes.data = {u[0], u[1]};
  problem.boundary.sides[1] = {SideKind::outflow, {traction({}, 1)[0], traction({}, 1)[1]}};
  const Point about{0.2, 0.1, 0.0};
  const auto exact = test::exact_forces(problem, about, traction);
  for (int order = 1; order <= 3; ++order) {
    if (!test::has_order(2, order)) continue;
    std::array<std::array<double, 3>, 2> error{};  // of force, torque, samples
    for (int level = 0; level < 2; ++level) {
      problem.order = order;
      problem.mesh.refine = 3 + level - (order == 3 ? 1 : 0);
      for (const BoundaryForce& force : solved(problem, 1e-12).forces(about)) {
        const BoundaryForce& e = exact.at(force.name);
        for (int c = 0; c < 2; ++c) {
          const double sampled = force.sampled_pressure[c] + force.sampled_viscous[c];
          error[level][0] = std::max(error[level][0], std::abs(force.force[c] - e.force[c]));
          error[level][2] = std::max(error[level][2], std::abs(sampled - e.force[c]));
        }
        error[level][1] = std::max(error[level][1], std::abs(force.torque[2] - e.torque[2]));
      }
    }
    const auto rate = [&](int i) { return std::log2(error[0][i] / error[1][i]); };
    fmt::print("k = {}: force {:.1e}, torque {:.1e}, sampled {:.1e}; orders {:.1f} {:.1f} {:.1f}\n", order, error[1][0],
               error[1][1], error[1][2], rate(0), rate(1), rate(2));
    EXPECT_GT(rate(0), order + 0.7) << order;
    EXPECT_GT(rate(1), order + 0.7) << order;
    EXPECT_LT(error[1][0], error[1][2]) << order;
  }
}

// Fluxes -------------------------------------------------------------------------------------------------------------

/// Through planes along the edges, wherever they lie: those of the exact velocity.
TEST(ShearedFluxes, AreThoseOfTheExactFlow) {
  for_orders(2, 1, [](int dim, int order) {
    const LinearFlow flow(dim);
    const Problem problem = with_linear_flow(dim, order, -1);
    const Solution s = solved(problem);
    const Boxes boxes(problem);
    const VectorField u = flow.velocity();
    for (int axis = 0; axis < dim; ++axis) {
      const double length = length_along(problem.mesh, axis);
      const int cells = problem.mesh.cells[axis];
      for (const double part : {0.0, 0.1, 0.37, 0.5, 0.81, 1.0}) {
        // The faces of boxes moved to the plane.
        double expected = 0.0;
        const Point normal = boxes.normal(2 * axis + 1);
        const int layer = std::min(static_cast<int>(part * cells), cells - 1);
        boxes.for_each([&](const std::array<int, 3>& box) {
          if (box[axis] != layer) return;
          const Point edge = (*problem.mesh.edges)[axis];
          boxes.integrate(box, 2 * axis, [&](Point x, double weight) {
            add_times(x, part - static_cast<double>(layer) / cells, edge);
            for (int c = 0; c < dim; ++c) expected += weight * normal[c] * u[c](x);
          });
        });
        // On a lattice plane the faces of holes count, too.
        if (std::abs(part * cells - std::round(part * cells)) < 1e-9 && part > 0.0 && part < 1.0) continue;
        EXPECT_NEAR(s.flux(axis, part * length), expected, 1e-10) << dim << "D, axis " << axis << " at " << part;
      }
      EXPECT_EQ(s.flux(axis, -0.1), 0.0);
    }
  });
}

/// What flows through the faces of a cell adds up to nothing, what flows through those of a plane to its flux.
TEST(ShearedFluxes, AddUp) {
  for_orders(2, 1, [](int dim, int order) {
    Problem problem = with_linear_flow(dim, order, -1);
    problem.force[0] = Function([](const Point& x) { return std::sin(5.0 * x[1]); });
    const Solution s = solved(problem, 1e-12);
    const std::array<int, 3> n = s.grid().extent();
    const auto fluxes = face_fluxes(s);
    const auto at = [&](int a, std::array<int, 3> place) {
      std::array<int, 3> count = n;
      ++count[a];
      return fluxes[a][(static_cast<std::size_t>(place[0]) * count[1] + place[1]) * count[2] + place[2]];
    };
    for (const Record cell : s.grid().layout().owned_cells()) {
      std::array<int, 3> place{};
      std::copy_n(s.grid().position(cell).begin(), 3, place.begin());
      double out = 0.0;
      for (int a = 0; a < dim; ++a) {
        std::array<int, 3> next = place;
        ++next[a];
        out += at(a, next) - at(a, place);
      }
      EXPECT_NEAR(out, 0.0, 1e-13);
    }
    for (int a = 0; a < dim; ++a) {
      const auto of_planes = plane_fluxes(s, a);
      for (int i = 0; i <= n[a]; ++i) {
        EXPECT_NEAR(s.flux(a, length_along(problem.mesh, a) * i / n[a]), of_planes[i], 1e-13) << a << ", " << i;
      }
    }
  });
}

// Arrays -------------------------------------------------------------------------------------------------------------

TEST(ShearedArrays, AreValuesAtPointsInSpace) {
  for_orders(2, 1, [](int dim, int order) {
    Problem problem = with_linear_flow(dim, order, -1);
    problem.force[0] = Function([](const Point& x) { return std::sin(5.0 * x[1]); });
    const Solution s = solved(problem, 1e-10);
    const ArrayPoints at{problem.mesh, 2};
    const std::vector<Point> points = points_of(at);
    const auto u = velocity_at(s, 2);
    const auto p = pressure_at(s, 2);
    const auto slopes = gradient_at(s, 2);
    const auto stress = field_at(s, FlowField::stress, 2);
    const auto expected_u = s.velocity(points);
    const auto expected_p = s.pressure(points);
    const auto expected_slopes = s.velocity_gradient(points);
    const auto expected_stress = s.flow_field(FlowField::stress, points);
    int holes = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      holes += std::isnan(p[i]) ? 1 : 0;
      ASSERT_EQ(std::isnan(p[i]), std::isnan(expected_p[i]));
      if (std::isnan(p[i])) continue;
      EXPECT_NEAR(p[i], expected_p[i], 1e-9);
      for (int c = 0; c < dim; ++c) {
        EXPECT_NEAR(u[dim * i + c], expected_u[i][c], 1e-10);
        EXPECT_NEAR(stress[dim * dim * i + (dim + 1) * c], expected_stress[i][c], 1e-9);
        for (int a = 0; a < dim; ++a) {
          EXPECT_NEAR(slopes[dim * (dim * i + c) + a], expected_slopes[i][c][a], 1e-9);
        }
      }
    }
    EXPECT_GT(holes, 0);
  });
}

/// The polynomials through an array are what it was made of: as data they give the same flow.
TEST(ShearedArrays, AreData) {
  if (!test::has_order(2, 2)) GTEST_SKIP();
  Problem problem{.mesh = mesh_with_hole(2, 1), .order = 2};
  problem.force = {Function([](const Point& x) { return x[1] * x[1] - x[0]; }),
                   Function([](const Point& x) { return x[0] * x[1]; })};
  const Point edge = (*problem.mesh.edges)[0];
  for (int c = 0; c < 2; ++c) {
    problem.boundary.sides[3].data[c] = Function([=](const Point& x) { return edge[c] * x[0] * x[1]; });
  }
  const Solution expected = solved(problem, 1e-12);
  const auto values = [](const ArrayPoints& at, const VectorField& field) {
    std::vector<double> result;
    for (const Point& x : points_of(at)) {
      for (int c = 0; c < 2; ++c) result.push_back(field[c](x));
    }
    return result;
  };
  const ArrayPoints inside{problem.mesh, 3};
  const ArrayPoints on_side{problem.mesh, 3, 3};
  problem.force = field_of(inside, values(inside, problem.force), "force");
  problem.boundary.sides[3].data = field_of(on_side, values(on_side, problem.boundary.sides[3].data), "ymax");
  EXPECT_LE(test::relative_difference(expected, solved(problem, 1e-12)), 1e-9);
  // A number for each cell.
  const auto cells = expected.grid().extent();
  std::vector<double> numbers;
  for (int i = 0; i < cells[0] * cells[1]; ++i) numbers.push_back(i);
  const ScalarField by_cell = cellwise(problem.mesh, {std::int64_t{cells[0]}, std::int64_t{cells[1]}, 1}, numbers);
  const auto middles = points_of({problem.mesh, 1});
  for (int i = 0; i < cells[0]; ++i) {
    for (int j = 0; j < cells[1]; ++j) EXPECT_EQ(by_cell(middles[i * cells[1] + j]), i + j * cells[0]);
  }
}

/// n . (2 nu eps(u) - p I) n
TEST(ShearedArrays, HaveNormalStresses) {
  for_orders(2, 1, [](int dim, int order) {
    const LinearFlow flow(dim);
    const Problem problem = with_linear_flow(dim, order, 0);
    const Solution s = solved(problem);
    const Boxes boxes(problem);
    for (int side = 0; side < 2 * dim; ++side) {
      const Point n = boxes.normal(side);
      double pull = 0.0;
      for (int c = 0; c < dim; ++c) {
        for (int a = 0; a < dim; ++a) pull += 2.0 * problem.viscosity * n[c] * n[a] * flow.gradient()[c][a];
      }
      const auto stress = normal_stress_at(s, side, 2);
      const auto points = points_of({problem.mesh, 2, side});
      ASSERT_EQ(stress.size(), points.size());
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (std::isnan(stress[i])) continue;
        EXPECT_NEAR(stress[i], pull - LinearFlow::pressure()(points[i]), 1e-8) << dim << "D, side " << side;
      }
    }
  });
}

TEST(ShearedArrays, InterpolateFields) {
  for_orders(2, 1, [](int dim, int order) {
    const LinearFlow flow(dim);
    const Problem problem = with_linear_flow(dim, order, -1);
    const Solution s = interpolate(problem, flow.velocity(), LinearFlow::pressure());
    EXPECT_LE(s.velocity_error(flow.velocity()), 1e-13);
    EXPECT_LE(s.pressure_error(LinearFlow::pressure()), 1e-13);
  });
}

// Boxes --------------------------------------------------------------------------------------------------------------

/// With edges along the axes everything is as on boxes.
TEST(ShearedResults, AreThoseOfBoxesAtRightAngles) {
  for_orders(2, 1, [](int dim, int order) {
    Problem box{.mesh = Mesh::unit(dim, 1), .order = order, .viscosity = 0.7, .mass = 2.0};
    box.mesh.lower = {0.2, -0.1, dim == 3 ? 0.3 : 0.0};
    box.mesh.upper = {1.4, 0.9, dim == 3 ? 1.0 : 0.0};
    box.mesh.cells = {3, 2, dim == 3 ? 2 : 1};
    box.mesh.holes = {{{1, 0, 0}, {2, 1, 1}}};
    box.force[0] = Function([](const Point& x) { return std::sin(5.0 * x[1]); });
    box.boundary.sides[3].data[0] = 1.0;
    box.boundary.sides[1].kind = SideKind::outflow;
    Problem sheared = box;
    sheared.mesh.edges.emplace();
    for (int a = 0; a < dim; ++a) (*sheared.mesh.edges)[a][a] = box.mesh.upper[a] - box.mesh.lower[a];
    sheared.mesh.upper = {};
    const Solution expected = solved(box, 1e-12);
    const Solution actual = solved(sheared, 1e-12);
    const Point about{0.1, 0.5, 0.2};
    const auto forces = actual.forces(about);
    const auto expected_forces = expected.forces(about);
    ASSERT_EQ(forces.size(), expected_forces.size());
    for (std::size_t i = 0; i < forces.size(); ++i) {
      EXPECT_EQ(forces[i].name, expected_forces[i].name);
      expect_near(forces[i].force, expected_forces[i].force, 1e-9, forces[i].name);
      expect_near(forces[i].torque, expected_forces[i].torque, 1e-9, forces[i].name);
      expect_near(forces[i].sampled_viscous, expected_forces[i].sampled_viscous, 1e-8, forces[i].name);
      expect_near(forces[i].sampled_pressure, expected_forces[i].sampled_pressure, 1e-8, forces[i].name);
    }
    for (int a = 0; a < dim; ++a) {
      for (const double part : {0.0, 0.4, 0.5}) {
        const double along = part * (box.mesh.upper[a] - box.mesh.lower[a]);
        EXPECT_NEAR(actual.flux(a, along), expected.flux(a, box.mesh.lower[a] + along), 1e-10);
      }
    }
    const auto compare = [](const std::vector<double>& one, const std::vector<double>& other) {
      ASSERT_EQ(one.size(), other.size());
      for (std::size_t i = 0; i < one.size(); ++i) {
        EXPECT_TRUE(std::abs(one[i] - other[i]) <= 1e-8 || std::isnan(other[i])) << one[i] << ", " << other[i];
      }
    };
    compare(velocity_at(actual, 2), velocity_at(expected, 2));
    compare(field_at(actual, FlowField::vorticity, 2), field_at(expected, FlowField::vorticity, 2));
    for (int side = 0; side < 2 * dim; ++side) {
      compare(normal_stress_at(actual, side, 2), normal_stress_at(expected, side, 2));
    }
  });
}

// Permeability -------------------------------------------------------------------------------------------------------

/// A channel between slabs, on cells that lean: h^3 / (12 H) along it.
TEST(ShearedPermeability, OfAChannelIsExact) {
  if (!test::has_order(2, 2)) GTEST_SKIP();
  Problem problem{.mesh = Mesh::sheared(2, {Point{1, 0, 0}, Point{0.5, 0.9, 0}, Point{}}, 1), .order = 2};
  problem.mesh.cells = {2, 3, 1};
  problem.mesh.holes = {{{0, 1, 0}, {2, 2, 1}}};
  problem.viscosity = 0.3;
  problem.force = {2.0, 0.0, 0.0};
  for (Side& side : problem.boundary.sides) side.kind = SideKind::periodic;
  expect_near(solved(problem).permeability(), {std::pow(0.6, 3) / (12.0 * 0.9), 0.0, 0.0}, 1e-11, "periodic");
  // Between walls in place of slabs; a force across them is none that drives.
  problem.mesh.holes.clear();
  for (const int side : {2, 3}) problem.boundary.sides[side].kind = SideKind::velocity;
  expect_near(solved(problem).permeability(), {0.9 * 0.9 / 12.0, 0.0, 0.0}, 1e-11, "walls");
  problem.force[1] = 0.1;
  EXPECT_THROW(static_cast<void>(solved(problem, 1e-8).permeability()), InputError);
}

TEST(ShearedPermeability, IsASymmetricTensor) {
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, 1)) continue;
    Problem problem{.mesh = mesh_with_hole(dim, 1), .order = 1};
    problem.mesh.holes.push_back({{0, 1, 0}, {1, 2, dim == 3 ? 2 : 1}});
    for (Side& side : problem.boundary.sides) side.kind = SideKind::periodic;
    std::array<Point, 3> column{};
    for (int j = 0; j < dim; ++j) {
      problem.viscosity = 0.3 + j;
      problem.force = {};
      problem.force[j] = 1.0 + 0.5 * j;
      column[j] = solved(problem).permeability();
    }
    for (int i = 0; i < dim; ++i) {
      EXPECT_GT(column[i][i], 1e-4);
      for (int j = 0; j < i; ++j) EXPECT_NEAR(column[i][j], column[j][i], 1e-12);
    }
  }
}

}  // namespace
}  // namespace solenoid
