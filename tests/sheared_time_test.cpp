/// \file
/// Flows in time on cells that are parallelepipeds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engines.hpp"
#include "flows.hpp"
#include "problem/affine_map.hpp"
#include "problem/names.hpp"
#include "problem/orders.hpp"
#include "problem/vectors.hpp"
#include "sheared_flows.hpp"
#include "solenoid/time_stepper.hpp"
#include "time/scheme.hpp"

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
  static Problem problem(bool convection) {
    Problem problem{
        .mesh = Mesh::sheared(2, edges, 1), .order = 2, .viscosity = 0.3, .mass = 2.0, .convection = convection};
    const std::string factor = "(3*cos(3*t) + 2*(1 + sin(3*t)))";
    const std::string viscous = " - 0.6*(1 + sin(3*t))";
    const std::string carried = convection ? " + 2*x*y*(1 + sin(3*t))^2" : " + 0*x*y";
    problem.force = {expression(factor + "*y^2" + viscous + " + cos(2*t)*y" + carried + "*x"),
                     expression(factor + "*x^2" + viscous + " + cos(2*t)*x" + carried + "*y"), 0.0};
    for (int side = 0; side < 4; ++side) problem.boundary.sides[side].data = velocity(0.0);
    return problem;
  }
};

class ShearedOrders : public testing::TestWithParam<bool> {};

TEST_P(ShearedOrders, AreThoseOfTheScheme) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  for (const TimeScheme scheme : {TimeScheme::sbdf1, TimeScheme::sbdf2, TimeScheme::sbdf3, TimeScheme::sbdf4,
                                  TimeScheme::bdf2_ext3, TimeScheme::ars233, TimeScheme::ars443}) {
    std::vector<double> errors;
    for (const int steps : GetParam() ? std::array{80, 160} : std::array{20, 40}) {
      TimeOptions time;
      time.scheme = scheme;
      time.step = 1.0 / steps;
      time.initial = Exact::velocity(0.0);
      TimeStepper flow(Exact::problem(GetParam()), time, options());
      flow.advance(1.0);
      const Solution solution = flow.solution(1.0);
      errors.push_back(solution.velocity_error(Exact::velocity(1.0)));
      errors.push_back(solution.pressure_error(Exact::pressure(1.0)));
      EXPECT_LE(solution.divergence_max(), 1e-11) << name_of(scheme);
    }
    const auto what = fmt::format("{}: velocity {:.2e}, {:.2e}, pressure {:.2e}, {:.2e}", name_of(scheme), errors[0],
                                  errors[2], errors[1], errors[3]);
    // Stages of Runge-Kutta schemes are of first order, which shows where steps are short.
    const double least = test::least_order(scheme) - (GetParam() && !is_multistep(scheme) ? 0.5 : 0.15);
    EXPECT_GE(std::log2(errors[0] / errors[2]), least) << what;
    EXPECT_GE(std::log2(errors[1] / errors[3]), least) << what;
    EXPECT_LE(errors[2], 2e-3) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Equations, ShearedOrders, testing::Bool(),
                         [](const auto& info) { return info.param ? "NavierStokes" : "Stokes"; });

/// A linear velocity and its convection are in what is integrated exactly: such a flow stays what it is.
TEST(ShearedTime, CarriesALinearFlow) {
  for (const auto& [name, device] : test::engines()) {
    for (const int dim : {2, 3}) {
      const auto orders = orders_for(device, dim, EquationKind::stokes);
      for (int order = 1; order <= 3; ++order) {
        if (std::find(orders.begin(), orders.end(), order) == orders.end()) continue;
        for (const int open : {-1, 1, 2}) {  // a side that the flow leaves through, or turns
          SCOPED_TRACE(fmt::format("{} {}D k={} open {}", name, dim, order, open));
          const test::LinearFlow exact(dim);
          Problem problem{.mesh = Mesh::sheared(dim, test::some_edges(dim), 1), .order = order, .viscosity = 0.2};
          problem.mesh.cells = {2, 1, 1};
          problem.convection = true;
          const VectorField u = exact.velocity();
          problem.force = test::LinearFlow::force();
          for (int c = 0; c < dim; ++c) {
            problem.force[c] = ScalarField([=, row = exact.gradient()[c], f = problem.force[c]](const Point& x) {
              return f(x) + row[0] * u[0](x) + row[1] * u[1](x) + (dim == 3 ? row[2] * u[2](x) : 0.0);
            });
          }
          for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].data = u;
          if (open >= 0) {
            const AffineMap map(dim, {}, test::some_edges(dim));
            Point normal = map.inverse()[open / 2];
            const double size = std::sqrt(dot_product(normal, normal)) * (open % 2 == 1 ? 1.0 : -1.0);
            for (double& entry : normal) entry /= size;
            VectorField traction = exact.traction(normal, problem.viscosity);
            for (int c = 0; c < dim; ++c) {
              traction[c] = ScalarField([=, of_stress = traction[c]](const Point& x) {
                double through = 0.0;
                for (int a = 0; a < dim; ++a) through += u[a](x) * normal[a];
                return of_stress(x) - std::min(through, 0.0) * u[c](x);
              });
            }
            problem.boundary.sides[open] = {SideKind::outflow, traction};
          }
          TimeOptions time;
          time.scheme = TimeScheme::sbdf2;
          time.step = 0.02;
          time.initial = u;
          SolverOptions with = options();
          with.device = device;
          with.precision = Precision::full_double;
          TimeStepper flow(problem, time, with);
          for (int step = 0; step < 4; ++step) flow.step();
          EXPECT_LE(flow.solution().velocity_error(u), 1e-8);
          EXPECT_LE(flow.solution().pressure_error(test::LinearFlow::pressure()), 1e-6);
          EXPECT_LE(flow.summary().divergence_max, 1e-11);
          if (open >= 0) continue;
          // What flows in and out takes with it what the force gives but for the gradient of the pressure.
          const auto& edge = *problem.mesh.edges;
          const double volume = dot_product(edge[0], cross_product(edge[1], dim == 3 ? edge[2] : Point{0, 0, 1}));
          for (int c = 0; c < dim; ++c) {
            double sum = 0.0;
            for (const BoundaryForce& force : flow.forces()) sum += force.force[c];
            EXPECT_NEAR(sum, test::LinearFlow::force()[c].constant().value_or(0.0) * volume, 1e-6);
          }
        }
      }
    }
  }
}

/// Steps follow the flow, whose rate is that of crossing cells: the same in a box, whatever its axes are.
TEST(ShearedTime, StepsAreThoseOfARotatedBox) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "order 2 is not in this build";
  const auto flow = [&](double cosine, double sine) {
    Problem problem{.mesh = Mesh::sheared(2, {Point{cosine, sine, 0}, Point{-sine, cosine, 0}, Point{}}, 3),
                    .order = 2};
    problem.viscosity = 0.01;
    problem.convection = true;
    problem.boundary.sides[3].data = {cosine, sine, 0.0};
    TimeOptions time;
    time.cfl = 0.4;
    return TimeStepper(problem, time, options());
  };
  Problem box;
  box.mesh.dim = 2;
  box.mesh.upper = {1, 1, 0};
  box.mesh.refine = 3;
  box.order = 2;
  box.viscosity = 0.01;
  box.convection = true;
  box.boundary.sides[3].data = {1.0, 0.0, 0.0};
  TimeOptions time;
  time.cfl = 0.4;
  TimeStepper expected(box, time, options());
  TimeStepper rotated = flow(0.6, 0.8);
  for (int step = 0; step < 8; ++step) {
    const StepReport of_box = expected.step();
    const StepReport got = rotated.step();
    EXPECT_NEAR(got.length, of_box.length, 1e-9 * of_box.length);
    EXPECT_NEAR(got.cfl, of_box.cfl, 1e-6 * of_box.cfl);
  }
  EXPECT_NEAR(rotated.summary().kinetic_energy, expected.summary().kinetic_energy,
              1e-8 * expected.summary().kinetic_energy);
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
