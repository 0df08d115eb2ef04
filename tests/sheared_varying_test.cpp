/// \file
/// Coefficients that vary by cell where cells are parallelepipeds, in whole solves: against boxes, flows that are
/// known, balances; iterations, values that change, flows in time. (Its kernels: sheared_test.)

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>
#include <vector>

#include "flows.hpp"
#include "levels.hpp"
#include "mesh/grid.hpp"
#include "sheared_flows.hpp"
#include "solenoid/linear_system.hpp"
#include "solenoid/solver.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

using test::difference_of_unknowns;
using test::rhombus;
using test::some_edges;

SolverOptions options(double rtol = 1e-12) {
  SolverOptions options = test::on_cpu(rtol);
  options.max_iterations = 200;
  options.precision = Precision::full_double;
  return options;
}

ScalarField expression(const std::string& text, int dim = 2) { return ScalarField::expression(text, dim); }

constexpr std::array forms{ViscousForm::gradient, ViscousForm::stress};
constexpr std::array all_places{ViscosityPlaces::cell, ViscosityPlaces::gauss};

/// With holes, a wall that moves, an open side; a viscosity that jumps on coarse boxes, or one at points, and a porous
/// zone.
Problem some_flow(int dim, int order, ViscousForm form = ViscousForm::gradient,
                  ViscosityPlaces places = ViscosityPlaces::cell) {
  Problem problem{.mesh = Mesh::unit(dim, 1), .order = order};
  problem.mesh.lower = {0.2, -0.1, dim == 3 ? 0.3 : 0.0};
  problem.mesh.upper = {1.4, 0.9, dim == 3 ? 1.0 : 0.0};
  problem.mesh.cells = {3, 2, dim == 3 ? 2 : 1};
  problem.mesh.holes = {{{1, 0, 0}, {2, 1, 1}}};
  problem.form = form;
  std::mt19937_64 generator(5);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  problem.varying_viscosity = test::each_cell(problem.mesh, [&] { return 0.1 + uniform(generator); });
  problem.varying_mass = test::each_cell(problem.mesh, [&] { return uniform(generator) < 0.5 ? 0.0 : 20.0; });
  if (places == ViscosityPlaces::gauss) problem.varying_viscosity = expression("exp(2*x - y)", dim);
  problem.viscosity_points = places;
  problem.force[0] = ScalarField([](const Point& x) { return std::sin(5.0 * x[1]) + 1.0; });
  problem.boundary.sides[3].data[0] = 1.0;
  problem.boundary.sides[1].kind = SideKind::outflow;
  return problem;
}

/// Edges at right angles: the kernels of parallelepipeds give what those of boxes do.
TEST(ShearedVarying, IsThatOfBoxesAtRightAngles) {
  for (const int dim : {2, 3}) {
    for (const int order : {1, 2}) {
      if (!test::has_order(dim, order)) continue;
      for (const ViscosityPlaces places : all_places) {
        const bool at_points = places == ViscosityPlaces::gauss;
        const Problem box = some_flow(dim, order, forms[(dim + order) % 2], places);
        Problem sheared = box;
        sheared.mesh.edges.emplace();
        for (int a = 0; a < dim; ++a) (*sheared.mesh.edges)[a][a] = box.mesh.upper[a] - box.mesh.lower[a];
        sheared.mesh.upper = {};
        const Result expected = solve(box, options());
        const Result actual = solve(sheared, options());
        EXPECT_TRUE(expected.report.converged && actual.report.converged);
        EXPECT_EQ(actual.report.iterations, expected.report.iterations);
        // Weights of points are in single precision.
        const double rounding = at_points ? 1e-6 : 1e-9;
        EXPECT_LE(difference_of_unknowns(actual.solution, expected.solution), rounding) << dim << "D, k = " << order;
        EXPECT_NEAR(actual.solution.dissipation(), expected.solution.dissipation(), rounding);
        const auto forces = actual.solution.forces();
        const auto expected_forces = expected.solution.forces();
        ASSERT_EQ(forces.size(), expected_forces.size());
        for (std::size_t i = 0; i < forces.size(); ++i) {
          for (int a = 0; a < dim; ++a) {
            EXPECT_NEAR(forces[i].force[a], expected_forces[i].force[a], 10.0 * rounding);
          }
        }
      }
    }
  }
}

/// Layers that slide on each other: found to rounding, whatever their viscosities and angles.
TEST(ShearedVarying, HasLayeredCouetteFlowExactly) {
  for (const double angle : {90.0, 60.0, 45.0}) {
    for (const int order : {1, 2, 3}) {
      if (!test::has_order(2, order)) continue;
      const ViscousForm form = forms[order % 2];
      Problem problem{.mesh = Mesh::sheared(2, rhombus(angle), 3), .order = order};
      const double height = (*problem.mesh.edges)[1][1];
      problem.form = form;
      const double middle = 0.5 * height;
      problem.varying_viscosity = ScalarField([=](const Point& x) { return x[1] < middle ? 1.0 : 1000.0; });
      // One stress: slopes 1 and 1/1000.
      const ScalarField u([=](const Point& x) { return x[1] < middle ? x[1] : middle + 1e-3 * (x[1] - middle); });
      for (Side& side : problem.boundary.sides) side.data[0] = u;
      SolverOptions precise = options();
      precise.exact.velocity = VectorField{u};
      precise.exact.pressure = ScalarField(0.0);
      const Report report = solve(problem, precise).report;
      EXPECT_TRUE(report.converged) << report.reason;
      EXPECT_LE(report.errors.velocity.value(), 1e-9) << angle << " degrees, k = " << order;
      EXPECT_LE(report.errors.pressure.value(), 1e-6) << angle << " degrees, k = " << order;
    }
  }
}

/// A rigid body turns without stress, whatever its viscosity: nothing is left of it in the stress form.
TEST(ShearedVarying, LeavesARigidRotationAlone) {
  for (const int dim : {2, 3}) {
    for (const int order : {1, 2}) {
      if (!test::has_order(dim, order)) continue;
      Problem problem{.mesh = Mesh::sheared(dim, some_edges(dim), 2), .order = order};
      SolverOptions precise = options();
      precise.exact.velocity = VectorField{expression("-y", dim), expression(dim == 3 ? "x - z" : "x", dim)};
      if (dim == 3) precise.exact.velocity->at(2) = expression("y", dim);
      precise.exact.pressure = ScalarField(0.0);
      for (Side& side : problem.boundary.sides) side.data = *precise.exact.velocity;
      for (const ViscosityPlaces places : all_places) {
        int cells = 0;
        problem.varying_viscosity = test::each_cell(problem.mesh, [&] { return cells++ % 3 == 0 ? 1.0 : 100.0; });
        if (places == ViscosityPlaces::gauss) problem.varying_viscosity = expression("exp(3*x*y)", dim);
        problem.viscosity_points = places;
        const Result result = solve(problem, precise);
        EXPECT_TRUE(result.report.converged) << result.report.reason;
        EXPECT_LE(result.report.errors.velocity.value(), 1e-9) << dim << "D, k = " << order;
        EXPECT_LE(result.solution.dissipation(), 1e-12);
        for (const BoundaryForce& force : result.solution.forces()) {
          for (int a = 0; a < dim; ++a) EXPECT_NEAR(force.force[a], 0.0, 1e-8);
        }
      }
    }
  }
}

/// The same numbers in all cells are one number.
TEST(ShearedVarying, IsTheConstantWhereItIsTheSame) {
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, 1)) continue;
    Problem constant{.mesh = Mesh::sheared(dim, some_edges(dim), 2), .order = 1, .viscosity = 0.3, .mass = 2.0};
    constant.force[0] = expression("sin(5*y)", dim);
    constant.boundary.sides[1].kind = SideKind::outflow;
    constant.boundary.sides[3].data[0] = expression("x", dim);
    Problem varying = constant;
    varying.form = ViscousForm::gradient;
    varying.varying_viscosity = ScalarField([](const Point&) { return 0.3; });
    varying.varying_mass = ScalarField([](const Point&) { return 2.0; });
    EXPECT_LE(difference_of_unknowns(solve(varying, options()).solution, solve(constant, options()).solution), 1e-9);
  }
}

/// All forces together are the integral of f - alpha u, which cells have from their own mean velocities.
TEST(ShearedVarying, BalancesForces) {
  for (const int dim : {2, 3}) {
    for (const ViscosityPlaces places : all_places) {
      if (!test::has_order(dim, 2)) continue;
      Problem problem = some_flow(dim, 2, forms[dim % 2], places);
      problem.mesh.edges = some_edges(dim);
      problem.mesh.upper = {};
      problem.varying_mass.reset();
      problem.mass = 3.0;
      problem.force = {ScalarField(0.7), ScalarField(-0.4), ScalarField(dim == 3 ? 0.3 : 0.0)};
      const auto [solution, report] = solve(problem, options());
      EXPECT_TRUE(report.converged) << report.reason;
      double volume = solution.grid().metric().map()->jacobian();
      double area = 0.0;
      for (const Record cell : solution.grid().layout().owned_cells()) {
        const Point widths = solution.grid().widths(cell);
        area += widths[0] * widths[1] * (dim == 3 ? widths[2] : 1.0);
      }
      volume *= area;
      const Point u = solution.mean_velocity();
      Point sum{};
      for (const BoundaryForce& force : solution.forces()) {
        for (int a = 0; a < dim; ++a) sum[a] += force.force[a];
      }
      const Point f{0.7, -0.4, 0.3};
      // The mean is over the whole cell of the mesh: 0 in the hole.
      const double boxes = dim == 2 ? 6.0 : 12.0;
      // Weights of points are in single precision, what forces are made of is not.
      const double rounding = places == ViscosityPlaces::gauss ? 3e-7 : 1e-9;
      for (int a = 0; a < dim; ++a) {
        EXPECT_NEAR(sum[a], f[a] * volume - 3.0 * u[a] * volume * boxes / (boxes - 1.0), rounding) << dim << "D " << a;
      }
    }
  }
}

/// Viscosities that are smooth, or jump on lines of faces, cost a few iterations more than one.
TEST(ShearedVarying, TakesFewIterations) {
  for (const int dim : {2, 3}) {
    for (const int order : {1, 2}) {
      if (!test::has_order(dim, order)) continue;
      const std::array<Point, 3> edges =
          dim == 2 ? rhombus(60) : std::array{Point{1, 0, 0}, Point{0.5, std::sqrt(0.75), 0}, Point{0, 0, 1}};
      Problem problem{.mesh = Mesh::sheared(dim, edges, dim == 2 ? 5 : order == 1 ? 3 : 2), .order = order};
      problem.force[1] = expression("sin(3*x)", dim);
      SolverOptions usual = options(1e-8);
      const int one = solve(problem, usual).report.iterations;
      for (const char* const viscosity : {"exp(4*x)", "y < 0.4330127 ? 1 : 1000"}) {
        problem.varying_viscosity = expression(viscosity, dim);
        problem.form = forms[order % 2];
        const Report report = solve(problem, usual).report;
        EXPECT_TRUE(report.converged) << report.reason;
        EXPECT_LE(report.iterations, 2 * one + 2) << dim << "D, k = " << order << ", " << viscosity;
        EXPECT_GE(report.iterations, one / 2);
        usual.precision = Precision::mixed;
        EXPECT_LE(solve(problem, usual).report.iterations, report.iterations + 3);
        usual.precision = Precision::full_double;
      }
    }
  }
}

TEST(ShearedVarying, MayChange) {
  if (!test::has_order(2, 2)) GTEST_SKIP();
  const auto solved = [](LinearSystem& system) {
    const auto b = system.make_vector();
    const auto x = system.make_vector();
    system.load(b.get());
    EXPECT_TRUE(system.solve(b.get(), x.get()).converged);
    return system.solution(x.get()).unknowns();
  };
  for (const ViscosityPlaces places : all_places) {
    Problem problem = some_flow(2, 2, ViscousForm::gradient, places);
    problem.mesh.edges = some_edges(2);
    problem.mesh.upper = {};
    LinearSystem system(problem, options(1e-8));
    const auto first = solved(system);
    problem.varying_viscosity = expression("exp(3*y)");
    problem.varying_mass = expression("x < 0.5 ? 0 : 7");
    system.set_coefficients(*problem.varying_viscosity, *problem.varying_mass);
    LinearSystem anew(problem, options(1e-8));
    const auto second = solved(system);
    EXPECT_EQ(second, solved(anew));
    EXPECT_NE(second, first);
  }
}

TEST(ShearedVarying, IsInFilesOfSolutions) {
  if (!solution_files_unavailable().empty() || !test::has_order(2, 1)) GTEST_SKIP();
  for (const ViscosityPlaces places : all_places) {
    Problem problem = some_flow(2, 1, ViscousForm::stress, places);
    problem.mesh.edges = some_edges(2);
    problem.mesh.upper = {};
    const Solution saved = solve(problem, options(1e-8)).solution;
    const auto file = std::filesystem::temp_directory_path() / "sheared_varying.h5";
    saved.save(file);
    const Solution loaded = load_solution(file);
    std::filesystem::remove(file);
    EXPECT_EQ(loaded.unknowns(), saved.unknowns());
    EXPECT_EQ(loaded.dissipation(), saved.dissipation());
    // The problem of the file has that viscosity.
    Problem again = problem;
    again.varying_viscosity = loaded.problem().varying_viscosity;
    EXPECT_LE(difference_of_unknowns(solve(again, options(1e-8)).solution, saved), 1e-6);
  }
}

/// A step of implicit Euler is a steady flow with more of a mass term.
TEST(ShearedVarying, ServesFlowsInTime) {
  if (!test::has_order(2, 2)) GTEST_SKIP();
  for (const ViscosityPlaces places : all_places) {
    Problem problem = some_flow(2, 2, ViscousForm::stress, places);
    problem.mesh.edges = some_edges(2);
    problem.mesh.upper = {};
    const double dt = 0.05;
    TimeOptions time;
    time.step = dt;
    time.scheme = TimeScheme::sbdf1;
    TimeStepper flow(problem, time, options());
    const VectorField before = flow.solution().velocity_field();
    flow.step();
    Problem step = problem;
    step.varying_mass = ScalarField(std::function<double(const Point&)>(
        [mass = *problem.varying_mass, dt](const Point& x) { return mass(x) + 1.0 / dt; }));
    for (int c = 0; c < 2; ++c) {
      step.force[c] = ScalarField(std::function<double(const Point&)>(
          [f = problem.force[c], u = before[c], dt](const Point& x) { return f(x) + u(x) / dt; }));
    }
    EXPECT_LE(difference_of_unknowns(flow.solution(), solve(step, options()).solution), 1e-3);
  }
}

}  // namespace
}  // namespace solenoid
