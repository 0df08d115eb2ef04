/// \file
/// Whole solves: known solutions, boundary data, errors in the input, reproducibility, memory, and what the report
/// says.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>

#include "base/threads.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "solenoid/linear_system.hpp"

namespace solenoid {
namespace {

using test::paper;
using test::PolynomialFlow;

SolverOptions options_with(Precision precision, double rtol = 1e-12) {
  SolverOptions options;
  options.precision = precision;
  options.rtol = rtol;
  options.threads = 1;
  return options;
}

/// An order that the build has, if possible 2.
int some_order(int dim) { return test::has_order(dim, 2) ? 2 : available_orders(dim).back(); }

std::string message(const Problem& problem, const SolverOptions& options = {}) {
  try {
    solve(problem, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}
void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

// Known solutions ----------------------------------------------------------------------------------------------------

class FlowInTheSpace : public testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Orders, FlowInTheSpace, testing::Combine(testing::Values(2, 3), testing::Range(0, 4)));

TEST_P(FlowInTheSpace, IsReproduced) {
  const auto [dim, order] = GetParam();
  if (!test::has_order(dim, order)) GTEST_SKIP() << "the order is not in this build";
  for (auto mesh : test::mesh_cases(dim)) {
    Problem problem{.mesh = mesh.mesh, .order = order, .viscosity = 0.7, .mass = mesh.mass, .boundary = mesh.boundary};
    if (mesh.name == "long_box" || !test::takes_a_flow(problem)) continue;
    SCOPED_TRACE(mesh.name);
    problem.mesh.refine = dim == 3 && order > 1 ? 0 : 1;
    const auto flow = PolynomialFlow::of_order(dim, order);
    for (const auto precision : {Precision::mixed, Precision::full_double}) {
      const auto [solution, report] = solve(test::with_flow(problem, flow), options_with(precision, 1e-13));
      EXPECT_LE(report.residual_history.back(), 1e-12) << report.reason;
      EXPECT_LE(solution.velocity_error(flow.velocity_field()), 1e-9);
      const double size = std::max(1.0, solution.pressure_error(ScalarField(0.0)));
      EXPECT_LE(solution.pressure_error(flow.pressure.field()), 1e-9 * size);
      EXPECT_LE(solution.divergence_max(), 1e-11);
    }
  }
}

/// Half a channel: a wall below, a plane of symmetry above, u = y (2 - y) / 2 under the force 1.
TEST(Solve, SlipSideIsAPlaneOfSymmetry) {
  for (const int dim : available_orders(3).empty() ? std::vector{2} : std::vector{2, 3}) {
    for (const int order : available_orders(dim)) {
      if (order < 2 || order > 3) continue;
      Mesh mesh = Mesh::unit(dim, 2);
      Problem problem{.mesh = mesh, .order = order, .force = {1.0, 0.0, 0.0}, .boundary = test::periodic({0})};
      problem.boundary.sides[3].kind = SideKind::slip;
      problem.boundary.sides[4].kind = problem.boundary.sides[5].kind = SideKind::slip;
      const auto [solution, report] = solve(problem, options_with(Precision::mixed));
      EXPECT_TRUE(report.converged);
      const VectorField exact{
          std::function<double(const Point&)>([](const Point& x) { return x[1] * (1 - x[1] / 2); })};
      EXPECT_LE(solution.velocity_error(exact), 1e-11);
      EXPECT_NEAR(solution.flux(0, 0.3), 1.0 / 3.0, 1e-11);
    }
  }
}

TEST(Solve, PressureDropDrivesAChannel) {
  Problem problem{.mesh = Mesh::unit(2, 3), .order = some_order(2)};
  problem.mesh.upper[0] = 2.0;
  problem.boundary.sides[0] = {SideKind::outflow, {3.0}};
  problem.boundary.sides[1] = {SideKind::outflow, {-1.0}};
  const auto [solution, report] = solve(problem, options_with(Precision::mixed));
  const VectorField exact{std::function<double(const Point&)>([](const Point& x) { return x[1] * (1 - x[1]) / 2; })};
  EXPECT_LE(solution.velocity_error(exact), 1e-11);
  EXPECT_LE(solution.pressure_error(std::function<double(const Point&)>([](const Point& x) { return 3 - x[0]; })),
            1e-10);
}

/// Full multigrid against the converged solution.
class FullMultigrid : public testing::TestWithParam<std::tuple<int, int, Precision>> {};
INSTANTIATE_TEST_SUITE_P(Orders, FullMultigrid,
                         testing::Combine(testing::Values(2, 3), testing::Values(2, 3),
                                          testing::Values(Precision::mixed, Precision::full_double)));

TEST_P(FullMultigrid, ReachesTheDiscretisationError) {
  const auto [dim, order, precision] = GetParam();
  if (!test::has_order(dim, order)) GTEST_SKIP() << "the order is not in this build";
  for (int refine = 2; refine <= (dim == 2 ? 6 : 4) - (order == 3 && dim == 3 ? 1 : 0) - (test::sanitized ? 2 : 0);
       ++refine) {
    SCOPED_TRACE(refine);
    const Problem problem = paper(dim, order, refine);
    const Exact exact = Manufactured(ManufacturedKind::gaussian, dim).exact();
    SolverOptions options = options_with(precision, 1e-10);
    const Solution converged = solve(problem, options).solution;
    options.method = Method::fmg;
    const auto [solution, report] = solve(problem, options);
    EXPECT_LE(solution.velocity_error(*exact.velocity), 1.05 * converged.velocity_error(*exact.velocity));
    EXPECT_LE(solution.pressure_error(*exact.pressure), 1.05 * converged.pressure_error(*exact.pressure));
  }
}

// Wrong input --------------------------------------------------------------------------------------------------------

TEST(Solve, FluxThatDoesNotBalanceIsAnError) {
  Problem problem{.mesh = Mesh::unit(2, 2), .order = some_order(2)};
  problem.boundary.sides[3].data[1] = 0.25;
  expect_contains(message(problem), {"boundary:", "2.500000e-01"});
  problem.boundary.sides[2].data[1] = 0.25;
  EXPECT_EQ(message(problem), "no error");
  problem.boundary.sides[2].data[1] = 0.0;
  problem.boundary.sides[0].kind = SideKind::outflow;
  const auto [solution, report] = solve(problem);
  EXPECT_TRUE(report.converged);
  EXPECT_NEAR(solution.flux(0, 0.0), 0.25, 1e-8);
}

/// Velocities that balance, of which quadrature leaves a little, on meshes as coarse as can be.
TEST(Solve, FluxThatBalancesUpToQuadratureLeavesNoDivergence) {
  const double pi = std::acos(-1.0);
  const auto profile = [pi](const Point& x) { return std::sin(pi * x[1]); };
  for (int refine = 0; refine <= 3; ++refine) {
    Problem problem{.mesh = Mesh::unit(2, refine), .order = some_order(2)};
    problem.boundary.sides[0].data[0] = std::function<double(const Point&)>(profile);
    problem.boundary.sides[1].data[0] = 2.0 / pi;
    const Solution solution = solve(problem, options_with(Precision::full_double, 1e-13)).solution;
    EXPECT_LE(solution.divergence_max(), 1e-11) << refine;
    EXPECT_NEAR(solution.flux(0, 0.0), 2.0 / pi, 1e-6) << refine;
  }
}

TEST(Solve, ValuesThatAreNotFiniteAreErrorsThatNameThePoint) {
  const auto bad = ScalarField::expression("1/(x-x)", 2, "the field");
  Problem problem{.mesh = Mesh::unit(2, 2), .order = some_order(2)};
  problem.force[1] = bad;
  expect_contains(message(problem), {"the field", "point", "("});
  problem.force[1] = 0.0;
  problem.boundary.sides[2].data[0] = bad;
  expect_contains(message(problem), {"the field", "point", "("});
  problem.boundary.sides[2].kind = SideKind::outflow;
  expect_contains(message(problem), {"the field", "point", "("});
}

TEST(Solve, PeriodicDomainNeedsAForceWithoutMean) {
  Problem problem{
      .mesh = Mesh::unit(2, 3), .order = some_order(2), .force = {0.0, 1.0}, .boundary = test::periodic({0, 1})};
  expect_contains(message(problem), {"force:", "mean"});
  problem.mass = 0.5;
  const auto [solution, report] = solve(problem);
  EXPECT_TRUE(report.converged);
  EXPECT_NEAR(solution.velocity({{{0.3, 0.4, 0.0}}})[0][1], 2.0, 1e-7);
}

/// A single layer of cells: nothing to put a vertex patch around, but small patches, where cells are near cubes.
TEST(Solve, MeshWithoutInteriorVertices) {
  Problem problem{.mesh = {.dim = 2, .cells = {400, 1, 1}, .refine = 0, .holes = {}}, .order = some_order(2)};
  expect_contains(message(problem), {"mesh.refine:", "refine = 1"});
  problem.mesh.upper[0] = 400.0;
  problem.force[0] = ScalarField::expression("sin(3*x)*y", 2);
  const Result result = solve(problem);
  EXPECT_TRUE(result.report.converged);
  EXPECT_LE(result.report.iterations, 16);
  EXPECT_LE(result.solution.divergence_max(), 1e-7);
}

// The report ---------------------------------------------------------------------------------------------------------

TEST(Solve, ReportsThatItDidNotConverge) {
  SolverOptions options;
  options.max_iterations = 1;
  for (const auto method : {Method::gmres, Method::vcycle}) {
    for (const auto side : {PreconditionerSide::right, PreconditionerSide::left}) {
      options.method = method;
      options.side = side;
      const Report report = solve(paper(2, some_order(2), 3), options).report;
      EXPECT_FALSE(report.converged);
      EXPECT_EQ(report.iterations, 1);
      EXPECT_EQ(report.residual_history.size(), 2U);
      EXPECT_NE(report.reason.find("max_iterations"), std::string::npos) << report.reason;
    }
  }
}

/// In set-up and in the solve, by each method; the same problem is solved afterwards as if nothing had been.
TEST(Solve, EndsWhenItIsAskedTo) {
  const Problem problem = paper(2, some_order(2), 5);
  for (const auto method : {Method::gmres, Method::vcycle, Method::fmg}) {
    SolverOptions options;
    options.method = method;
    const std::vector<double> history = solve(problem, options).report.residual_history;
    for (const char* stage : {"set-up", "solve"}) {
      std::atomic<bool> stop = false;
      options.progress = [&](const Progress& progress) {
        if (progress.stage != stage) return;
        stop = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until it is looked at again
      };
      const Interruptible scope([&] { return stop.load(); });
      EXPECT_THROW(solve(problem, options), Interrupted) << stage;
    }
    options = {};
    options.method = method;
    EXPECT_EQ(solve(problem, options).report.residual_history, history);
  }
}

TEST(Solve, OnlyTheInnermostScopeIsAsked) {
  const Problem problem = paper(2, some_order(2), 3);
  const Interruptible outer([] { return true; });
  {
    const Interruptible inner([] { return false; });
    EXPECT_TRUE(solve(problem).report.converged);
  }
  EXPECT_THROW(solve(problem), Interrupted);
  std::thread([&] { EXPECT_TRUE(solve(problem).report.converged); }).join();  // scopes are those of a thread
}

TEST(Solve, NothingToSolveIsSolved) {
  for (const auto method : {Method::gmres, Method::vcycle, Method::fmg}) {
    for (const auto side : {PreconditionerSide::right, PreconditionerSide::left}) {
      SolverOptions options;
      options.method = method;
      options.side = side;
      const auto [solution, report] = solve({.mesh = Mesh::unit(2, 3), .order = some_order(2)}, options);
      EXPECT_TRUE(report.converged) << report.reason;
      EXPECT_EQ(solution.max_speed(), 0.0);
    }
  }
}

TEST(Solve, HugeNumbersStopAtOnce) {
  SolverOptions options;
  options.precision = Precision::mixed;
  Problem problem{.mesh = Mesh::unit(2, 3), .order = some_order(2), .force = {1e300, -1e300}};
  problem.force[0] = std::function<double(const Point&)>([](const Point& x) { return 1e300 * x[1]; });
  for (const auto method : {Method::gmres, Method::vcycle, Method::fmg}) {
    options.method = method;
    const Report report = solve(problem, options).report;
    EXPECT_FALSE(report.converged);
    EXPECT_LE(report.iterations, 1);
    EXPECT_NE(report.reason.find("finite"), std::string::npos) << report.reason;
  }
}

TEST(Solve, CountsUnknowns) {
  SolverOptions options;
  options.device = DeviceChoice::cpu;  // others may have fewer levels (Engine::dense_limits)
  const Report report = solve(paper(2, some_order(2), 3), options).report;
  const int n = some_order(2) + 1;
  EXPECT_EQ(report.cells, 64);
  EXPECT_EQ(report.dofs, 64 * n * n + 2 * (8 * n - 1) * 8 * n);
  EXPECT_EQ(report.levels, 3);
}

TEST(Solve, OptionsOutOfTheirRangesAreRefused) {
  const Problem problem = paper(2, some_order(2), 1);
  const auto expect_refused = [&](auto SolverOptions::*member, auto value, const std::string& part) {
    SolverOptions options;
    options.*member = value;
    expect_contains(message(problem, options), {part});
    EXPECT_THROW(LinearSystem(problem, options), InputError);
  };
  for (const double rtol : {0.0, 1.0, -1.0, 2.0, std::nan("")}) {
    expect_refused(&SolverOptions::rtol, rtol, "rtol: expected a number > 0 and < 1, got");
  }
  expect_refused(&SolverOptions::max_iterations, 0, "max_iterations: expected an integer >= 1, got 0");
  expect_refused(&SolverOptions::restart, -1, "restart: expected an integer >= 0, got -1");
  expect_refused(&SolverOptions::cycles, 0, "cycles: expected an integer >= 1, got 0");
  for (const double damping : {-0.1, 1.1, std::nan("")}) {
    expect_refused(&SolverOptions::multigrid, MultigridOptions{.damping = damping},
                   "damping: expected a number from 0 to 1, got");
  }
  expect_refused(&SolverOptions::multigrid, MultigridOptions{.cycle_index = 3},
                 "cycle_index: expected 0, 1 or 2, got 3");
  for (const double penalty : {-1.0, HUGE_VAL, std::nan("")}) {
    expect_refused(&SolverOptions::multigrid, MultigridOptions{.coarse_penalty = penalty},
                   "coarse_penalty: expected a finite number >= 0");
  }
}

TEST(Solve, ThreadsAreASmallMultipleOfTheMachines) {
  const auto message_with = [](int threads) {
    SolverOptions options;
    options.threads = threads;
    return message(paper(2, some_order(2), 1), options);
  };
  const int cores = solenoid::cores();
  EXPECT_EQ(message_with(2 * cores), "no error");
  expect_contains(message_with(8 * cores + 1),
                  {std::to_string(8 * cores + 1) + " are too many", "runs " + std::to_string(cores),
                   "at most " + std::to_string(8 * cores)});
  expect_contains(message_with(std::numeric_limits<int>::max()), {"too many for this machine"});
  expect_contains(message_with(-3), {"threads: expected an integer >= 0, got -3"});
  SolverOptions options;
  options.threads = 8 * cores + 1;
  EXPECT_THROW(estimate(paper(2, some_order(2), 1), options), InputError);
}

// Reproducibility ----------------------------------------------------------------------------------------------------

TEST(Solve, SameBitsForTheSameThreadsAndNearlyForOthers) {
  const Problem problem = paper(3, some_order(3), test::sanitized ? 2 : 3);
  for (const auto precision : {Precision::mixed, Precision::full_double}) {
    for (const auto method : {Method::gmres, Method::fmg}) {
      std::vector<double> one_thread;
      for (const int threads : {1, 2, 3}) {
        SolverOptions options = options_with(precision, 1e-10);
        options.threads = threads;
        options.method = method;
        const Solution first = solve(problem, options).solution;
        const Solution second = solve(problem, options).solution;
        const auto a = first.coefficients();
        const auto b = second.coefficients();
        EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0);
        if (threads == 1) one_thread.assign(a.begin(), a.end());
        double largest = 0.0;
        double difference = 0.0;
        for (std::size_t i = 0; i < a.size(); ++i) {
          largest = std::max(largest, std::abs(a[i]));
          difference = std::max(difference, std::abs(a[i] - one_thread[i]));
        }
        EXPECT_LE(difference, (precision == Precision::mixed ? 1e-7 : 1e-13) * largest);
      }
    }
  }
}

// Memory -------------------------------------------------------------------------------------------------------------

/// A line of /proc/self/status in bytes.
std::int64_t status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::int64_t kilobytes = 0;
    if (word == key && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}
/// Makes the peak of the resident size the present size. False if the system cannot.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << "5" << std::flush);
}

/// What the solver allocated by its own account, and by how much the process grew.
void expect_bytes_per_unknown(Method method, double bound) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers need memory of their own";
  const Problem problem = paper(3, some_order(3), 5);
  SolverOptions options;
  options.method = method;
  options.max_iterations = 4;
  options.threads = 2;
  options.device = DeviceChoice::cpu;  // whose memory the process shows
  malloc_trim(0);
  const bool measurable = reset_peak();
  const std::int64_t before = status_bytes("VmRSS:");
  const auto [solution, report] = solve(problem, options);
  const std::int64_t grown = status_bytes("VmHWM:") - before;
  const auto dofs = static_cast<double>(report.dofs);
  EXPECT_LE(static_cast<double>(report.memory_bytes), bound * dofs);
  EXPECT_LE(static_cast<double>(report.memory_bytes), static_cast<double>(estimate(problem, options).bytes_needed));
  if (!measurable) return;
  EXPECT_LE(static_cast<double>(grown), bound * dofs);
  EXPECT_NEAR(static_cast<double>(report.memory_bytes), static_cast<double>(grown), 0.3 * static_cast<double>(grown));
}

TEST(Solve, FullMultigridFitsIn60BytesPerUnknown) { expect_bytes_per_unknown(Method::fmg, 60.0); }
TEST(Solve, FourIterationsFitIn110BytesPerUnknown) { expect_bytes_per_unknown(Method::gmres, 110.0); }

}  // namespace
}  // namespace solenoid
