/// \file
/// A viscosity at Gauss points in whole solves: known flows, forces, files, values that change, flows in time. (Its
/// kernels: varying_test and tests/ranks; its orders: varying_orders_test.)

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "flows.hpp"
#include "level/viscosity_in_cells.hpp"
#include "levels.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/error.hpp"
#include "solenoid/linear_system.hpp"
#include "solenoid/solver.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

using test::difference_of_unknowns;
SolverOptions options(double rtol = 1e-12) {
  SolverOptions options = test::on_cpu(rtol);
  options.max_iterations = 200;
  return options;
}

ScalarField expression(const std::string& text, int dim = 2) { return ScalarField::expression(text, dim); }

/// Between sides of all kinds, around a hole.
Problem some_flow(int dim, int order, ViscousForm form) {
  Problem problem{.mesh = test::box(dim == 2 ? std::vector{4, 3} : std::vector{3, 2, 2}), .order = order};
  problem.mesh.refine = dim == 2 ? 1 : 0;
  if (dim == 2) problem.mesh.holes.push_back({{1, 1, 0}, {2, 2, 1}});
  problem.varying_viscosity = expression(dim == 2 ? "exp(2*x - y)" : "exp(x - 0.5*y + 0.3*z)", dim);
  problem.viscosity_points = ViscosityPlaces::gauss;
  problem.form = form;
  problem.force = {ScalarField(0.7), ScalarField(-0.3), ScalarField(dim == 3 ? 0.2 : 0.0)};
  problem.boundary.sides[0].data = {expression("y*(1-y)", dim), expression("y", dim)};
  problem.boundary.sides[1].kind = SideKind::outflow;
  problem.boundary.sides[3].kind = SideKind::slip;
  return problem;
}

/// Nothing is sheared, whatever the viscosity.
TEST(ViscosityPoints, LeaveARigidRotationAlone) {
  for (const int dim : {2, 3}) {
    for (const int order : {1, 2, 3}) {
      if (!test::has_order(dim, order)) continue;
      Problem problem{.mesh = Mesh::unit(dim, dim == 2 ? 3 : 2), .order = order};
      problem.varying_viscosity = expression(dim == 2 ? "exp(3*x*y)" : "exp(3*x*y - z)", dim);
      problem.viscosity_points = ViscosityPlaces::gauss;
      VectorField velocity{expression(dim == 2 ? "-y" : "z - y", dim), expression(dim == 2 ? "x" : "x - 2*z", dim)};
      if (dim == 3) velocity[2] = expression("2*y - x", dim);
      for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].data = velocity;
      SolverOptions precise = options();
      precise.precision = Precision::full_double;
      precise.exact.velocity = velocity;
      precise.exact.pressure = ScalarField(0.0);
      const Report report = solve(problem, precise).report;
      EXPECT_TRUE(report.converged) << report.reason;
      EXPECT_LE(report.errors.velocity.value() + report.errors.pressure.value(), 1e-9) << dim << "D, k = " << order;
    }
  }
}

/// All forces together are the integral of f; in the stress form all torques its torque.
TEST(ViscosityPoints, BalanceForces) {
  for (const int dim : {2, 3}) {
    for (const int order : {0, 1, 2}) {
      for (const ViscousForm form : {ViscousForm::gradient, ViscousForm::stress}) {
        if (!test::has_order(dim, order) || (order == 0 && form == ViscousForm::stress)) continue;
        SCOPED_TRACE(fmt::format("{}D, k = {}, {}", dim, order, form == ViscousForm::stress ? "stress" : "gradient"));
        const Problem problem = some_flow(dim, order, form);
        const auto [solution, report] = solve(problem, options());
        EXPECT_TRUE(report.converged) << report.reason;
        Point sum{};
        for (const BoundaryForce& force : solution.forces()) {
          for (int a = 0; a < dim; ++a) sum[a] += force.force[a];
        }
        double volume = 0.0;
        for (const Record cell : solution.grid().layout().owned_cells()) {
          const Point widths = solution.grid().widths(cell);
          volume += widths[0] * widths[1] * (dim == 3 ? widths[2] : 1.0);
        }
        const std::array<double, 3> f{0.7, -0.3, dim == 3 ? 0.2 : 0.0};
        for (int a = 0; a < dim; ++a) EXPECT_NEAR(sum[a], f[a] * volume, 3e-7) << a;
      }
    }
  }
}

/// Where it is constant in cells they have the means.
TEST(ViscosityPoints, ThatAreConstantInCellsAreMeans) {
  Problem problem = some_flow(2, 2, ViscousForm::stress);
  problem.varying_viscosity = expression("x < 0.5 ? 1 : 50");
  const Result at_points = solve(problem, options());
  problem.viscosity_points = ViscosityPlaces::cell;
  const Result means = solve(problem, options());
  EXPECT_EQ(at_points.report.iterations, means.report.iterations);
  EXPECT_LE(difference_of_unknowns(at_points.solution, means.solution), 1e-10);
  EXPECT_NEAR(at_points.solution.dissipation(), means.solution.dissipation(), 1e-9 * means.solution.dissipation());
}

/// In either precision, with cycles alone, from an expression or from values at points, the flow is the same.
TEST(ViscosityPoints, MayBeSolvedInAllWays) {
  const Problem problem = some_flow(2, 2, ViscousForm::stress);
  const Result expected = solve(problem, options());
  EXPECT_TRUE(expected.report.converged);
  for (const bool cycles : {false, true}) {
    for (const Precision precision : {Precision::mixed, Precision::full_double}) {
      SolverOptions other = options();
      other.precision = precision;
      other.method = cycles ? Method::vcycle : Method::gmres;
      const Result actual = solve(problem, other);
      EXPECT_TRUE(actual.report.converged) << actual.report.reason;
      EXPECT_LE(difference_of_unknowns(actual.solution, expected.solution), 1e-9);
      EXPECT_LE(actual.solution.divergence_max(), precision == Precision::mixed ? 1e-7 : 1e-12);
    }
  }
  const ArrayPoints at{problem.mesh, 4};
  std::vector<double> values;
  for (const Point& x : points_of(at)) values.push_back((*problem.varying_viscosity)(x));
  Problem from_values = problem;
  from_values.varying_viscosity = scalar_field_of(at, values, "viscosity");
  EXPECT_LE(difference_of_unknowns(solve(from_values, options()).solution, expected.solution), 1e-9);
  Problem means = problem;
  means.viscosity_points = ViscosityPlaces::cell;
  EXPECT_GE(difference_of_unknowns(solve(means, options()).solution, expected.solution), 1e-4);
}

TEST(ViscosityPoints, AreInFilesOfSolutions) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  for (const int dim : {2, 3}) {
    const Problem problem = some_flow(dim, 1, ViscousForm::stress);
    const Solution saved = solve(problem, options(1e-8)).solution;
    const auto file = std::filesystem::temp_directory_path() / fmt::format("viscosity_points_{}.h5", dim);
    saved.save(file);
    const Solution loaded = load_solution(file);
    std::filesystem::remove(file);
    EXPECT_EQ(loaded.unknowns(), saved.unknowns());
    EXPECT_EQ(loaded.problem().viscosity_points, ViscosityPlaces::gauss);
    EXPECT_EQ(loaded.dissipation(), saved.dissipation());
    const std::vector<Point> places{{0.13, 0.21, 0.3}, {0.05, 0.11, 0.07}};
    const auto viscosity = saved.flow_field(FlowField::viscosity, places);
    EXPECT_EQ(loaded.flow_field(FlowField::viscosity, places), viscosity);
    // An exponential is one between points, too.
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_NEAR(viscosity[i][0], (*problem.varying_viscosity)(places[i]), 1e-12);
    }
    // The problem of the file has that viscosity.
    Problem again = problem;
    again.varying_viscosity = loaded.problem().varying_viscosity;
    EXPECT_LE(difference_of_unknowns(solve(again, options(1e-8)).solution, saved), 1e-6);
  }
}

/// A system that is given another one is one that was set up with it, to the last bit.
TEST(ViscosityPoints, MayChange) {
  for (const Precision precision : {Precision::mixed, Precision::full_double}) {
    SolverOptions some = options(1e-8);
    some.precision = precision;
    Problem problem = some_flow(2, 2, ViscousForm::stress);
    const auto solved = [](LinearSystem& system) {
      const auto b = system.make_vector();
      const auto x = system.make_vector();
      system.load(b.get());
      EXPECT_TRUE(system.solve(b.get(), x.get()).converged);
      return system.solution(x.get()).unknowns();
    };
    LinearSystem system(problem, some);
    const auto first = solved(system);
    const ScalarField other = expression("exp(3*y)");
    system.set_viscosity(other);
    problem.varying_viscosity = other;
    LinearSystem anew(problem, some);
    const auto second = solved(system);
    EXPECT_EQ(second, solved(anew));
    EXPECT_NE(second, first);
    system.set_reaction(ScalarField(3.0));
    problem.mass = 3.0;
    LinearSystem with_mass(problem, some);
    EXPECT_EQ(solved(system), solved(with_mass));
  }
}

/// A step of implicit Euler is a steady flow with more of a mass term.
TEST(ViscosityPoints, ServeFlowsInTime) {
  Problem problem = some_flow(2, 2, ViscousForm::stress);
  const double dt = 0.05;
  TimeOptions time;
  time.step = dt;
  time.scheme = TimeScheme::sbdf1;
  SolverOptions precise = options();
  precise.precision = Precision::full_double;
  TimeStepper flow(problem, time, precise);
  const VectorField before = flow.solution().velocity_field();
  flow.step();
  Problem step = problem;
  step.mass = 1.0 / dt;
  for (int c = 0; c < 2; ++c) {
    step.force[c] = ScalarField(std::function<double(const Point&)>(
        [f = problem.force[c], u = before[c], dt](const Point& x) { return f(x) + u(x) / dt; }));
  }
  EXPECT_LE(difference_of_unknowns(flow.solution(), solve(step, precise).solution), 1e-3);
  step.viscosity_points = ViscosityPlaces::cell;
  EXPECT_GE(difference_of_unknowns(flow.solution(), solve(step, precise).solution), 3e-3);
}

TEST(ViscosityPoints, AreRefusedOfANumber) {
  Problem problem{.mesh = Mesh::unit(2, 2), .order = 1};
  problem.viscosity_points = ViscosityPlaces::gauss;
  EXPECT_THROW(validate(problem), InputError);
  problem.form = ViscousForm::stress;
  EXPECT_THROW(validate(problem), InputError);
}

/// A viscosity that jumps inside of a cell goes no further beyond its values than half their range, of logarithms.
TEST(ViscosityPoints, StayNearTheirValues) {
  const ViscosityPoints points(1, 1, {1.0, 1.0, 1e6, 2.0, 2.0, 2.0});
  double value = 0.0;
  points.trace(0, 1, &value);
  EXPECT_GT(value, 1e6);
  EXPECT_LE(value, 1e9 * (1 + 1e-12));
  points.trace(0, 0, &value);
  EXPECT_GE(value, 1e-3 * (1 - 1e-12));
  points.trace(1, 1, &value);
  EXPECT_EQ(value, std::exp(std::log(2.0)));
  // And what the operator has of it is positive.
  for (const double nu : {1e-12, 1e-7, 0.3, 0.9999999, 1.0, 1e9}) {
    EXPECT_GT(1.0 + static_cast<double>(viscosity_difference(nu, 1.0)), 0.0) << nu;
    EXPECT_NEAR(1.0 + static_cast<double>(viscosity_difference(nu, 1.0)), nu, 1e-7 * std::max(nu, 1.0));
  }
}

}  // namespace
}  // namespace solenoid
