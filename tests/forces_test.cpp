/// \file
/// Forces and torques on sides and holes: known flows, the balance with what drives the flow, orders of convergence;
/// mean velocity and permeability.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include "coarse_boxes.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "problem/names.hpp"
#include "problem/regions.hpp"
#include "problem/vectors.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

using test::Boxes;
using test::exact_forces;
using test::Polynomial;
using test::PolynomialFlow;
using Function = std::function<double(const Point&)>;

Solution solved(const Problem& problem, double rtol = 1e-13) {
  SolverOptions options;
  options.precision = Precision::full_double;
  options.rtol = rtol;
  options.threads = 1;
  auto [solution, report] = solve(problem, options);
  EXPECT_LE(report.residual_history.back(), 10 * rtol) << report.reason;
  return solution;
}

std::map<std::string, BoundaryForce> by_name(const std::vector<BoundaryForce>& forces) {
  std::map<std::string, BoundaryForce> result;
  for (const BoundaryForce& force : forces) EXPECT_TRUE(result.emplace(force.name, force).second) << force.name;
  return result;
}

/// To a tolerance that is relative where values are large.
void expect_near(const Point& a, const Point& b, double tolerance, const std::string& what) {
  for (int c = 0; c < 3; ++c)
    EXPECT_NEAR(a[c], b[c], tolerance * std::max(1.0, std::abs(b[c]))) << what << " "
                                                                       << "xyz"[c];
}

// Known flows --------------------------------------------------------------------------------------------------------

/// Flow in a channel of height 2 and length 3, periodic in x: u = f y (2 - y) / (2 nu), shear stress f at the walls.
TEST(Forces, OfPoiseuilleFlow) {
  for (const int dim : available_orders(3).empty() ? std::vector{2} : std::vector{2, 3}) {
    if (!test::has_order(dim, 2)) continue;
    Problem problem{.mesh = Mesh::unit(dim, 1), .order = 2, .viscosity = 0.4, .force = {0.6, 0.0, 0.0}};
    problem.mesh.cells = {3, 2, 1};
    problem.mesh.upper = {3.0, 2.0, 0.5};
    problem.boundary = test::periodic(dim == 2 ? std::vector{0} : std::vector{0, 2});
    const Solution s = solved(problem);
    const double depth = dim == 3 ? 0.5 : 1.0;
    const Point about{1.0, 0.5, 0.0};
    const auto forces = s.forces(about);
    ASSERT_EQ(forces.size(), 2U);  // periodic sides are none
    EXPECT_EQ(forces[0].name, "ymin");
    EXPECT_EQ(forces[1].name, "ymax");
    for (const BoundaryForce& wall : forces) {
      const double y = wall.name == "ymin" ? 0.0 : 2.0;
      expect_near(wall.force, {0.6 * 3.0 * depth, 0.0, 0.0}, 1e-11, wall.name);
      // The pressure is zero, so that z x (the friction) is the torque, and y x it in 3D.
      expect_near(wall.torque, {0.0, dim == 3 ? 0.25 * 1.8 * depth : 0.0, -(y - 0.5) * 1.8 * depth}, 1e-11, wall.name);
      expect_near(wall.sampled_viscous, wall.force, 1e-10, wall.name);
      expect_near(wall.sampled_pressure, {}, 1e-10, wall.name);
    }
    expect_near(s.mean_velocity(), {0.6 * 4.0 / (12.0 * 0.4), 0.0, 0.0}, 1e-11, "mean velocity");
    expect_near(s.permeability(), {4.0 / 12.0, 0.0, 0.0}, 1e-11, "permeability");
  }
}

/// A lid of velocity 3 above a channel of height 2: the fluid pulls at the lid by nu 3/2 per area, and pushes the
/// floor.
TEST(Forces, OfCouetteFlow) {
  for (const int order : available_orders(2)) {
    if (order < 1) continue;
    Problem problem{.mesh = Mesh::unit(2, 2), .order = order, .viscosity = 0.4};
    problem.mesh.upper = {5.0, 2.0, 0.0};
    problem.boundary = test::periodic({0});
    problem.boundary.sides[3].data = {3.0, 0.0, 0.0};
    const auto forces = by_name(solved(problem).forces());
    expect_near(forces.at("ymax").force, {-0.4 * 1.5 * 5.0, 0.0, 0.0}, 1e-9, "lid");
    expect_near(forces.at("ymin").force, {0.4 * 1.5 * 5.0, 0.0, 0.0}, 1e-9, "floor");
    expect_near(forces.at("ymax").torque, {0.0, 0.0, 2.0 * 0.4 * 1.5 * 5.0}, 1e-9, "lid");
    expect_near(forces.at("ymin").torque, {}, 1e-9, "floor");
  }
}

/// Fluid at rest under gravity: the pressure is p = -3 y + constant, and a hole is as light as what it displaces.
TEST(Forces, OfFluidAtRestAreArchimedes) {
  for (const int dim : available_orders(3).empty() ? std::vector{2} : std::vector{2, 3}) {
    for (const int order : available_orders(dim)) {
      if (order < 1 || order > 3) continue;
      Problem problem{.mesh = Mesh::unit(dim, 1), .order = order, .force = {0.0, -3.0, 0.0}};
      problem.mesh.cells = {4, 4, 4};
      problem.mesh.holes = {{{1, 1, 1}, {2, 3, 2}}};
      const Solution s = solved(problem);
      const double volume = (dim == 3 ? 0.25 : 1.0) * 0.25 * 0.5;
      const Point middle{0.375, 0.5, dim == 3 ? 0.375 : 0.0};
      const auto about_origin = by_name(s.forces());
      expect_near(about_origin.at("holes[0]").force, {0.0, 3.0 * volume, 0.0}, 1e-11, "hole");
      expect_near(about_origin.at("holes[0]").torque, cross_product(middle, {0.0, 3.0 * volume, 0.0}), 1e-11, "hole");
      expect_near(by_name(s.forces(middle)).at("holes[0]").torque, {}, 1e-11, "hole about its middle");
      expect_near(about_origin.at("holes[0]").sampled_pressure, {0.0, 3.0 * volume, 0.0}, 1e-10, "hole");
      expect_near(about_origin.at("holes[0]").sampled_viscous, {}, 1e-10, "hole");
      EXPECT_NEAR(about_origin.at("ymin").force[1] + about_origin.at("ymax").force[1],
                  -3.0 * (dim == 3 ? 1.0 - volume + volume : 1.0), 1e-11);
    }
  }
}

/// Of high orders in 3D a few cells have to do.
int refinement(int dim, int order) { return dim == 3 && order > 1 ? 0 : 1; }

/// Polynomials of the space, with velocities or tractions on sides and holes: forces and torques are those of the
/// exact stress.
class ForcesInTheSpace : public testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Orders, ForcesInTheSpace, testing::Combine(testing::Values(2, 3), testing::Range(0, 4)));

TEST_P(ForcesInTheSpace, AreThoseOfTheExactStress) {
  const auto [dim, order] = GetParam();
  if (!test::has_order(dim, order)) GTEST_SKIP() << "the order is not in this build";
  int cases = 0;
  for (auto mesh : test::mesh_cases(dim)) {
    Problem problem{.mesh = mesh.mesh, .order = order, .viscosity = 0.7, .mass = mesh.mass, .boundary = mesh.boundary};
    if (mesh.name == "long_box" || !test::takes_a_flow(problem)) continue;
    SCOPED_TRACE(mesh.name);
    ++cases;
    problem.mesh.refine = refinement(dim, order);
    const auto flow = PolynomialFlow::of_order(dim, order);
    problem = test::with_flow(std::move(problem), flow);
    const Solution s = solved(problem);
    const Boxes boxes(problem);
    const Point about{0.3, -0.2, 0.6};
    const auto exact = exact_forces(problem, about, [&](const std::array<int, 3>& box, int side) {
      // The pressure may differ by a constant on each part of the domain.
      const Point inside = boxes.at(box, {0.5, 0.5, 0.5});
      const double shift = s.pressure({&inside, 1})[0] - flow.pressure(inside);
      std::array<Function, 3> traction;
      const VectorField t = flow.traction(problem.viscosity, side);
      for (int c = 0; c < dim; ++c) {
        const double normal = c != side / 2 ? 0.0 : side % 2 == 0 ? -1.0 : 1.0;
        traction[c] = [=, t = t[c]](const Point& x) { return t(x) - shift * normal; };
      }
      return traction;
    });
    const auto forces = by_name(s.forces(about));
    ASSERT_EQ(forces.size(), exact.size());
    for (const auto& [name, force] : exact) {
      expect_near(forces.at(name).force, force.force, 1e-9, name + " force");
      expect_near(forces.at(name).torque, force.torque, 1e-9, name + " torque");
      Point sampled{};
      for (int c = 0; c < dim; ++c) {
        sampled[c] = forces.at(name).sampled_pressure[c] + forces.at(name).sampled_viscous[c];
      }
      expect_near(sampled, force.force, 1e-8, name + " sampled");
    }
  }
  EXPECT_GE(cases, 5);
}

// Balances -----------------------------------------------------------------------------------------------------------

/// All forces together are the integral of f - alpha u, whatever the sides are.
class ForcesBalance : public testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Orders, ForcesBalance, testing::Combine(testing::Values(2, 3), testing::Range(0, 4)));

TEST_P(ForcesBalance, WithWhatDrivesTheFlow) {
  const auto [dim, order] = GetParam();
  if (!test::has_order(dim, order)) GTEST_SKIP() << "the order is not in this build";
  int cases = 0;
  for (auto mesh : test::mesh_cases(dim)) {
    // No boundary at all, or nothing but slip, where the mean of the force is no load.
    if (mesh.name == "long_box" || mesh.name == "two_free_parts") continue;
    SCOPED_TRACE(mesh.name);
    Problem problem{.mesh = mesh.mesh, .order = order, .viscosity = 0.7, .mass = mesh.mass, .boundary = mesh.boundary};
    problem.mesh.refine = refinement(dim, order);
    const bool everything_periodic = std::all_of(mesh.boundary.sides.begin(), mesh.boundary.sides.begin() + 2 * dim,
                                                 [](const Side& side) { return side.kind == SideKind::periodic; });
    if (everything_periodic && mesh.mesh.holes.empty()) continue;
    ++cases;
    // Of such a degree that any quadrature in use integrates it; not a gradient.
    const Polynomial x{{3.0, {0, 1, 0}}, {1.0, {1, 0, 0}}, {0.7, {0, 0, 0}}, {-2.0, {0, 0, 1}}};
    const Polynomial y{{-2.0, {1, 0, 0}}, {1.5, {0, 0, 0}}, {1.0, {1, 0, 1}}};
    const Polynomial z{{1.0, {1, 0, 0}}, {-1.0, {0, 1, 1}}};
    problem.force = {x.field(), y.field()};
    if (dim == 3) problem.force[2] = z.field();
    // Walls that move, by velocities that are no polynomials and have no flux through the hole's surface.
    const Function wave = [](const Point& p) { return std::sin(5 * p[0] + 3 * p[1]); };
    for (int side = 0; side < 2 * dim; ++side) {
      Side& s = problem.boundary.sides[side];
      if (s.kind == SideKind::velocity) s.data[side < 2 ? 1 : 0] = ScalarField(wave);
      if (s.kind == SideKind::outflow) s.data = {ScalarField(wave), 0.3};
    }
    if (problem.boundary.holes.kind == SideKind::velocity && mesh.name.find("channel") == std::string::npos &&
        mesh.name != "l_shape" && mesh.name != "two_parts") {
      problem.boundary.holes.data = {0.5, -0.3, 0.0};
    }
    const Solution s = solved(problem, 1e-12);
    Point driving{};
    Point turning{};
    const Boxes boxes(problem);
    boxes.for_each([&](const std::array<int, 3>& box) {
      boxes.integrate(box, -1, [&](const Point& p, double weight) {
        Point f{};
        for (int c = 0; c < dim; ++c) f[c] = problem.force[c](p);
        const Point torque = cross_product(p, f);
        for (int c = 0; c < 3; ++c) {
          driving[c] += weight * f[c];
          turning[c] += weight * torque[c];
        }
      });
    });
    const Point u = s.mean_velocity();
    double volume = 1.0;
    for (int a = 0; a < dim; ++a) volume *= mesh.mesh.upper[a] - mesh.mesh.lower[a];
    Point sum{};
    Point torque{};
    double largest = 0.0;
    for (const BoundaryForce& force : s.forces()) {
      for (int c = 0; c < 3; ++c) {
        sum[c] += force.force[c];
        torque[c] += force.torque[c];
        largest = std::max(largest, std::abs(force.force[c]));
      }
    }
    EXPECT_GT(largest, 0.1);
    for (int c = 0; c < dim; ++c) {
      EXPECT_NEAR(sum[c], driving[c] - problem.mass * volume * u[c], 1e-9 * (1 + largest)) << "xyz"[c];
    }
  }
  EXPECT_GE(cases, 8);
}

/// With walls at rest torques balance too, from k = 1 on: then rotations are functions of the space.
TEST_P(ForcesBalance, TorquesToo) {
  const auto [dim, order] = GetParam();
  if (order == 0 || !test::has_order(dim, order)) GTEST_SKIP() << "no such order";
  int cases = 0;
  for (auto mesh : test::mesh_cases(dim)) {
    const auto& sides = mesh.boundary.sides;
    const auto wall = [](const Side& side) { return side.kind == SideKind::velocity; };
    if (!std::all_of(sides.begin(), sides.end(), wall) || !wall(mesh.boundary.holes)) continue;
    if (!mesh.boundary.regions.empty() || !mesh.boundary.single_holes.empty()) continue;
    SCOPED_TRACE(mesh.name);
    ++cases;
    Problem problem{.mesh = mesh.mesh, .order = order, .viscosity = 0.7, .boundary = mesh.boundary};
    problem.mesh.refine = refinement(dim, order);
    const Polynomial x{{3.0, {0, 1, 0}}, {0.7, {0, 0, 0}}, {-2.0, {0, 0, 1}}};
    const Polynomial y{{-2.0, {1, 0, 0}}, {1.5, {0, 0, 0}}};
    const Polynomial z{{1.0, {1, 0, 0}}, {-1.0, {0, 1, 0}}};
    problem.force = {x.field(), y.field()};
    if (dim == 3) problem.force[2] = z.field();
    const Solution s = solved(problem, 1e-12);
    Point turning{};
    const Boxes boxes(problem);
    boxes.for_each([&](const std::array<int, 3>& box) {
      boxes.integrate(box, -1, [&](const Point& p, double weight) {
        Point f{};
        for (int c = 0; c < dim; ++c) f[c] = problem.force[c](p);
        const Point torque = cross_product(p, f);
        for (int c = 0; c < 3; ++c) turning[c] += weight * torque[c];
      });
    });
    Point sum{};
    for (const BoundaryForce& force : s.forces()) {
      for (int c = 0; c < 3; ++c) sum[c] += force.torque[c];
    }
    expect_near(sum, turning, 1e-9, "torque");
    EXPECT_GT(std::abs(turning[2]), 0.1);
  }
  EXPECT_GE(cases, 3);
}

// Convergence --------------------------------------------------------------------------------------------------------

/// u = curl of sin(2x) sin(3y), p = cos(x + 2 y), in a box with a hole. Forces are more accurate than samples.
TEST(Forces, ConvergeWithOrderKPlus1AndFasterThanSamples) {
  constexpr double nu = 0.7;
  const std::array<Function, 3> u{[](const Point& x) { return 3 * std::sin(2 * x[0]) * std::cos(3 * x[1]); },
                                  [](const Point& x) { return -2 * std::cos(2 * x[0]) * std::sin(3 * x[1]); }};
  const Function p = [](const Point& x) { return std::cos(x[0] + 2 * x[1]); };
  const auto slope = [](const Point& x, int c, int a) {
    const double diagonal = 6 * std::cos(2 * x[0]) * std::cos(3 * x[1]);
    if (c == a) return c == 0 ? diagonal : -diagonal;
    return std::sin(2 * x[0]) * std::sin(3 * x[1]) * (c == 0 ? -9 : 4);
  };
  const auto traction = [&](const std::array<int, 3>&, int side) {
    const double sign = side % 2 == 0 ? -1.0 : 1.0;
    std::array<Function, 3> t;
    for (int c = 0; c < 2; ++c) {
      t[c] = [=](const Point& x) { return sign * (nu * slope(x, c, side / 2) - (c == side / 2 ? p(x) : 0.0)); };
    }
    return t;
  };
  Problem problem{.mesh = Mesh::unit(2, 0), .viscosity = nu};
  problem.mesh.cells = {4, 3, 1};
  problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
  // -nu Laplace u = 13 nu u
  problem.force = {Function([=](const Point& x) { return 13 * nu * u[0](x) - std::sin(x[0] + 2 * x[1]); }),
                   Function([=](const Point& x) { return 13 * nu * u[1](x) - 2 * std::sin(x[0] + 2 * x[1]); })};
  for (Side& side : problem.boundary.sides) side.data = {u[0], u[1]};
  problem.boundary.holes.data = {u[0], u[1]};
  // The constant of the pressure is fixed by an outflow side.
  problem.boundary.sides[1] = {SideKind::outflow, {traction({}, 1)[0], traction({}, 1)[1]}};
  const Point about{0.2, 0.1, 0.0};
  const auto exact = exact_forces(problem, about, traction);
  for (const int order : available_orders(2)) {
    if (order < 1 || order > 3) continue;
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
    std::printf("k = %d: force %.1e, torque %.1e, sampled %.1e; orders %.1f %.1f %.1f\n", order, error[1][0],
                error[1][1], error[1][2], std::log2(error[0][0] / error[1][0]), std::log2(error[0][1] / error[1][1]),
                std::log2(error[0][2] / error[1][2]));
    EXPECT_GT(std::log2(error[0][0] / error[1][0]), order + 0.8) << order;
    EXPECT_GT(std::log2(error[0][1] / error[1][1]), order + 0.8) << order;
    EXPECT_LT(10 * error[1][0], error[1][2]) << order;
  }
}

// Which body a face belongs to ---------------------------------------------------------------------------------------

/// A hole that is cut by a periodic side is one body, wherever the cut is, and moves with all its faces.
TEST(Forces, OfAHoleAtAPeriodicSideAreThoseOfOneInside) {
  const auto forces = [](int shift) {
    Problem problem{.mesh = Mesh::unit(2, 2), .order = available_orders(2).back()};
    problem.mesh.cells = {4, 3, 1};
    problem.mesh.upper = {4.0, 3.0, 0.0};
    problem.mesh.holes = {{{shift, 1, 0}, {shift + 1, 2, 1}}};
    problem.boundary = test::periodic({0});
    problem.boundary.holes.data = {0.5, 0.0, 0.0};
    return by_name(solved(problem).forces({shift + 0.5, 1.5, 0.0}));
  };
  const auto inside = forces(1);
  EXPECT_LT(inside.at("holes[0]").force[0], -1.0);
  for (const int shift : {0, 3}) {
    const auto cut = forces(shift);
    expect_near(cut.at("holes[0]").force, inside.at("holes[0]").force, 1e-9, "hole");
    expect_near(cut.at("ymin").force, inside.at("ymin").force, 1e-9, "ymin");
  }
}

TEST(Forces, OfHolesThatTouchOrOverlapAddUp) {
  const auto forces = [](std::vector<IndexBox> holes) {
    Problem problem{.mesh = Mesh::unit(2, 2), .order = available_orders(2).back(), .force = {1.0, 0.5, 0.0}};
    problem.mesh.cells = {5, 4, 1};
    problem.mesh.holes = std::move(holes);
    problem.boundary = test::periodic({0});
    return by_name(solved(problem).forces());
  };
  const auto whole = forces({{{1, 1, 0}, {4, 2, 1}}}).at("holes[0]");
  for (const auto& holes :
       {std::vector<IndexBox>{{{1, 1, 0}, {2, 2, 1}}, {{2, 1, 0}, {4, 2, 1}}},
        std::vector<IndexBox>{{{1, 1, 0}, {3, 2, 1}}, {{2, 1, 0}, {4, 2, 1}}, {{1, 1, 0}, {2, 2, 1}}}}) {
    const auto parts = forces(holes);
    BoundaryForce sum;
    for (std::size_t i = 0; i < holes.size(); ++i) {
      const BoundaryForce& part = parts.at("holes[" + std::to_string(i) + "]");
      for (int c = 0; c < 3; ++c) {
        sum.force[c] += part.force[c];
        sum.torque[c] += part.torque[c];
      }
    }
    expect_near(sum.force, whole.force, 1e-10, "force");
    expect_near(sum.torque, whole.torque, 1e-10, "torque");
    EXPECT_NE(parts.at("holes[1]").force[0], 0.0);
  }
}

TEST(Forces, OfPoissonsEquationThereAreNone) {
  Problem problem{.mesh = Mesh::unit(2, 2), .order = available_orders(2, EquationKind::poisson).back(), .force = {1.0}};
  problem.equation = EquationKind::poisson;
  const Solution s = solved(problem);
  EXPECT_THROW((void)s.forces(), InputError);
  EXPECT_THROW((void)s.mean_velocity(), InputError);
  EXPECT_THROW((void)s.permeability(), InputError);
}

// Permeability -------------------------------------------------------------------------------------------------------

/// A sample without mirror symmetry: its permeability is a symmetric positive tensor, whatever the viscosity is.
TEST(Permeability, IsASymmetricTensorOfTheSampleAlone) {
  for (const int dim : available_orders(3).empty() ? std::vector{2} : std::vector{2, 3}) {
    Problem problem{.mesh = Mesh::unit(dim, 1),
                    .order = available_orders(dim).front() == 0 ? 1 : available_orders(dim).front()};
    if (!test::has_order(dim, problem.order)) continue;
    problem.mesh.cells = {4, 4, 4};
    problem.mesh.holes = {{{0, 0, 0}, {2, 1, 2}}, {{2, 1, 1}, {3, 2, 3}}};
    for (Side& side : problem.boundary.sides) side.kind = SideKind::periodic;
    std::array<Point, 3> column{};
    for (int j = 0; j < dim; ++j) {
      problem.viscosity = 0.3 + j;
      problem.force = {};
      problem.force[j] = 1.0 + 0.5 * j;
      column[j] = solved(problem).permeability();
    }
    for (int i = 0; i < dim; ++i) {
      EXPECT_GT(column[i][i], 1e-3);
      for (int j = 0; j < i; ++j) {
        EXPECT_NEAR(column[i][j], column[j][i], 1e-12);
        EXPECT_GT(std::abs(column[i][j]), 1e-6);
      }
    }
    // Of a force across the axes: K f / |f|.
    problem.force = {3.0, -4.0, 0.0};
    const Point slanted = solved(problem).permeability();
    for (int i = 0; i < dim; ++i) EXPECT_NEAR(slanted[i], 0.6 * column[0][i] - 0.8 * column[1][i], 1e-12);
  }
}

TEST(Permeability, IsThatOfASampleAtRestInPeriodicDirections) {
  Problem good{.mesh = Mesh::unit(2, 2), .order = available_orders(2).back(), .force = {1.0, 0.0, 0.0}};
  good.boundary = test::periodic({0});
  EXPECT_GT(solved(good).permeability()[0], 0.0);
  const auto message = [&](const std::function<void(Problem&)>& change) -> std::string {
    Problem bad = good;
    change(bad);
    const Solution s = solved(bad, 1e-8);
    try {
      (void)s.permeability();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(message([](Problem& p) { p.mass = 1.0; }), "mass: a permeability is that of a flow without mass term, got 1");
  expect(message([](Problem& p) { p.force = {}; }), "force: ");
  expect(message([](Problem& p) { p.force[1] = 1.0; }), "force[1]: ");
  expect(message([](Problem& p) { p.force[0] = Function([](const Point&) { return 1.0; }); }), "give a number");
  expect(message([](Problem& p) { p.boundary.sides[3].data = {1.0}; }), "boundary.ymax: ");
  expect(message([](Problem& p) { p.boundary.sides[2].kind = SideKind::outflow; }), "boundary.ymin: ");
}

}  // namespace
}  // namespace solenoid
