/// \file
/// Flows in time on cells that are parallelepipeds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "flows.hpp"
#include "problem/names.hpp"
#include "sheared_flows.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

constexpr std::array<Point, 3> edges{Point{1, 0, 0}, Point{0.5, 0.8, 0}, Point{}};

SolverOptions options() {
  SolverOptions options = test::on_cpu(1e-10);
  options.threads = 2;
  return options;
}

ScalarField expression(const std::string& text, double t = 0.0) {
  return ScalarField::expression(text, 2, "", {{"t", t}});
}

/// u = g(t) (y^2, x^2), p = cos(2 t) (x y - 1/3): what cells have exactly, so that errors are those of the scheme.
/// Velocities on sides change in time.
struct Exact {
  static VectorField velocity(double t) {
    return {expression("(1 + sin(3*t))*y^2", t), expression("(1 + sin(3*t))*x^2", t), 0.0};
  }
  static ScalarField pressure(double t) { return expression("cos(2*t)*(x*y - 1/3)", t); }
  static Problem problem() {
    Problem problem{.mesh = Mesh::sheared(2, edges, 1), .order = 2, .viscosity = 0.3, .mass = 2.0};
    const std::string factor = "(3*cos(3*t) + 2*(1 + sin(3*t)))";
    const std::string viscous = " - 0.6*(1 + sin(3*t))";
    problem.force = {expression(factor + "*y^2" + viscous + " + cos(2*t)*y"),
                     expression(factor + "*x^2" + viscous + " + cos(2*t)*x"), 0.0};
    for (int side = 0; side < 4; ++side) problem.boundary.sides[side].data = velocity(0.0);
    return problem;
  }
};

TEST(ShearedTime, HasTheOrderOfTheScheme) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  for (const TimeScheme scheme : {TimeScheme::sbdf1, TimeScheme::sbdf2, TimeScheme::sbdf3, TimeScheme::sbdf4,
                                  TimeScheme::bdf2_ext3, TimeScheme::ars233, TimeScheme::ars443}) {
    std::vector<double> errors;
    for (const int steps : {20, 40}) {
      TimeOptions time;
      time.scheme = scheme;
      time.step = 1.0 / steps;
      time.initial = Exact::velocity(0.0);
      TimeStepper flow(Exact::problem(), time, options());
      flow.advance(1.0);
      const Solution solution = flow.solution(1.0);
      errors.push_back(solution.velocity_error(Exact::velocity(1.0)));
      errors.push_back(solution.pressure_error(Exact::pressure(1.0)));
      EXPECT_LE(solution.divergence_max(), 1e-11) << name_of(scheme);
    }
    const auto what = fmt::format("{}: velocity {:.2e}, {:.2e}, pressure {:.2e}, {:.2e}", name_of(scheme), errors[0],
                                  errors[2], errors[1], errors[3]);
    EXPECT_GE(std::log2(errors[0] / errors[2]), test::least_order(scheme) - 0.15) << what;
    EXPECT_GE(std::log2(errors[1] / errors[3]), test::least_order(scheme) - 0.15) << what;
    EXPECT_LE(errors[2], 2e-3) << what;
  }
}

/// What a flow settles to is the steady flow, which another solver finds.
TEST(ShearedTime, SettlesToTheSteadyFlow) {
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, 1)) continue;
    std::array<Point, 3> of_mesh = edges;
    of_mesh[2] = {0.2, 0.1, 0.9};
    Problem problem{.mesh = Mesh::sheared(dim, of_mesh, dim == 2 ? 3 : 2), .order = 1};
    problem.force[0] = ScalarField([](const Point& x) { return std::sin(5.0 * x[1]); });
    problem.boundary.sides[1].kind = SideKind::outflow;
    problem.boundary.sides[2].kind = SideKind::slip;
    const auto steady = solve(problem, options());
    TimeOptions time;
    time.scheme = TimeScheme::sbdf1;
    time.step = 1.0;
    TimeStepper flow(problem, time, options());
    for (int step = 0; step < 12; ++step) flow.step();
    EXPECT_LE(test::relative_difference(flow.solution(), steady.solution), 1e-6) << dim << "D";
  }
}

/// Without a force and a mass term energy is lost to viscosity alone. What the discrete flow loses has the jumps
/// between cells in it, which vanish with their size.
TEST(ShearedTime, LosesEnergyToViscosity) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  std::vector<double> misses;
  for (const int refine : {3, 4}) {
    Problem problem{.mesh = Mesh::sheared(2, edges, refine), .order = 2};
    TimeOptions time;
    time.scheme = TimeScheme::sbdf3;
    time.step = 1e-4;
    time.initial = {ScalarField([](const Point& x) { return std::sin(4.0 * x[1]); }), 0.0, 0.0};
    TimeStepper flow(problem, time, options());
    for (int step = 0; step < 60; ++step) flow.step();
    const Solution before = flow.solution();
    flow.step();
    const Solution after = flow.solution();
    const double lost = (before.kinetic_energy() - after.kinetic_energy()) / time.step;
    misses.push_back(std::abs(1.0 - lost / (0.5 * (before.dissipation() + after.dissipation()))));
  }
  EXPECT_LE(misses[1], 6e-3);
  EXPECT_LE(misses[1], 0.35 * misses[0]);
}

TEST(ShearedTime, HoldsAFlowRate) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  Problem problem{.mesh = Mesh::sheared(2, edges, 3), .order = 2};
  problem.boundary.sides[0].kind = problem.boundary.sides[1].kind = SideKind::periodic;
  for (const TimeScheme scheme : {TimeScheme::sbdf2, TimeScheme::ars443}) {
    TimeOptions time;
    time.scheme = scheme;
    time.step = 0.05;
    time.flow_rate = Point{0.7, 0.0, 0.0};
    TimeStepper flow(problem, time, options());
    for (int step = 0; step < 3; ++step) {
      flow.step();
      EXPECT_NEAR(flow.solution().flux(0, 0.3), 0.7, 1e-12) << name_of(scheme);
      EXPECT_NEAR(flow.solution().flux(0, 0.8), 0.7, 1e-12) << name_of(scheme);
    }
  }
}

}  // namespace
}  // namespace solenoid
