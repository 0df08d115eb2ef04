/// \file
/// Cells that are parallelepipeds on several ranks against one: kernels, whole solves, flows in time.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "compare_kernels.hpp"
#include "flows.hpp"
#include "parts_of_levels.hpp"
#include "sheared_levels.hpp"
#include "solenoid/case.hpp"
#include "solenoid/solver.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

using namespace on_ranks;

class RanksShearedKernels : public testing::TestWithParam<int> {};

TEST_P(RanksShearedKernels, EqualThoseOfOne) {
  const int order = GetParam();
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, order)) continue;
    for (const test::MeshCase& box : test::mesh_cases(dim)) {
      if (!can_be_cut(box.mesh) || (order != 1 && !is_one_of_few(box))) continue;
      const test::MeshCase what = test::sheared(box, 1);
      SCOPED_TRACE(fmt::format("{} {}D order {}", what.name, dim, order));
      const Levels levels(what, order, {}, false, cut(what.mesh, extent_of(what.mesh), 2));
      compare_kernels<double>(levels, LocalSolverKind::direct);
      if (order == 1) compare_kernels<float>(levels, LocalSolverKind::direct);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Order, RanksShearedKernels, testing::Values(1, 2));

// Of so many cells that some batches of patches read no ghosts, and are smoothed before these come.
TEST(RanksManyShearedCells, EqualThoseOfOne) {
  if (!test::has_order(2, 1)) GTEST_SKIP() << "the order is not in this build";
  const test::MeshCase what = test::sheared({"many_cells", test::box({40, 64})}, 1);
  for (const int seed : {1, 2, 3, 4}) {
    SCOPED_TRACE(seed);
    const Levels levels(what, 1, {}, false, cut(what.mesh, extent_of(what.mesh), seed));
    compare_kernels<double>(levels, LocalSolverKind::direct);
  }
}

const char* const cases[] = {
    "[mesh]\nedges = [[1, 0], [0.5, 0.9]]\ncells = [2, 2]\nrefine = 4\nholes = [{lower = [1, 1], upper = [2, 2]}]\n"
    "[element]\norder = 2\n[physics]\nmass = 3\nforce = [\"y\", \"sin(5*x)\"]\n[boundary]\nxmin = {velocity = [\"y\", "
    "0]}\n"
    "xmax = {outflow = true}\nymax = {slip = true}\n",
    "[mesh]\nedges = [[2, 0, 0], [0.5, 0.9, 0], [0.1, 0.2, 1]]\ncells = [2, 1, 1]\nrefine = 3\n[element]\norder = 1\n"
    "[physics]\nforce = [\"y\", 0, \"sin(5*x)\"]\n[boundary]\nzmin = {periodic = true}\nzmax = {periodic = true}\n",
    "[mesh]\nedges = [[2, 0, 0], [0.5, 0.9, 0], [0.1, 0.2, 1]]\ncells = [2, 1, 1]\nrefine = 3\n[element]\norder = 1\n"
    "[physics]\nviscosity = \"y < 0.45 ? 1 : 20\"\nforce = [\"y\", 0, \"sin(5*x)\"]\n[boundary]\nxmax = {outflow = "
    "true}\n",
    // at Gauss points
    "[mesh]\nedges = [[1, 0], [0.5, 0.9]]\ncells = [2, 2]\nrefine = 4\nholes = [{lower = [1, 1], upper = [2, 2]}]\n"
    "[element]\norder = 2\n[physics]\nviscosity = \"exp(3*x*y)\"\nviscosity_points = \"gauss\"\n"
    "force = [\"y\", \"sin(5*x)\"]\n[boundary]\nxmin = {velocity = [\"y\", 0]}\nxmax = {outflow = true}\n",
};

Case case_of(const char* text) {
  Case what = parse_case(text, "a case");
  choose_device(what.solver);
  what.solver.threads = 1;
  what.solver.precision = Precision::full_double;
  what.solver.rtol = 1e-9;
  what.solver.replicated_cells = 1;
  return what;
}

TEST(RanksShearedSolves, EqualThoseOfOne) {
  for (const char* const text : cases) {
    SCOPED_TRACE(text);
    Case what = case_of(text);
    if (!test::has_order(what.problem.mesh.dim, what.problem.order)) continue;
    const Result one = solve(what.problem, what.solver);
    what.solver.communicator = ranks();
    const Result all = solve(what.problem, what.solver);
    EXPECT_TRUE(one.report.converged);
    EXPECT_EQ(one.report.iterations, all.report.iterations);
    const auto near = [&](double expected, double got, const char* name) {
      expect_everywhere(std::abs(expected - got) <= 1e-7 * (1.0 + std::abs(expected)),
                        fmt::format("{}: {} and {}", name, expected, got));
    };
    near(one.solution.kinetic_energy(), all.solution.kinetic_energy(), "kinetic energy");
    near(one.solution.dissipation(), all.solution.dissipation(), "dissipation");
    const auto forces = one.solution.forces();
    const auto of_all = all.solution.forces();
    ASSERT_EQ(forces.size(), of_all.size());
    for (std::size_t i = 0; i < forces.size(); ++i) {
      for (int a = 0; a < 3; ++a) near(forces[i].force[a], of_all[i].force[a], "force");
    }
    const auto gathered = all.solution.gathered();
    const double difference = gathered ? test::relative_difference(*gathered, one.solution) : 0.0;
    expect_everywhere(difference <= 1e-6, fmt::format("solutions differ by {}", difference));
  }
}

TEST(RanksShearedFlows, EqualThoseOfOne) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  for (const bool convection : {false, true}) {
    Case what = case_of(cases[0]);
    what.problem.mesh.refine -= 1;
    what.problem.convection = convection;
    TimeOptions time;
    time.step = 0.05;
    TimeStepper one(what.problem, time, what.solver);
    what.solver.communicator = ranks();
    TimeStepper all(what.problem, time, what.solver);
    for (int step = 0; step < 4; ++step) {
      const StepReport expected = one.step();
      const StepReport got = all.step();
      EXPECT_EQ(got.cycles, expected.cycles) << step;
      EXPECT_NEAR(got.cfl, expected.cfl, 1e-6 * expected.cfl) << step;
      const auto gathered = all.solution().gathered();
      const double difference = gathered ? test::relative_difference(*gathered, one.solution()) : 0.0;
      expect_everywhere(difference <= 1e-6, fmt::format("step {}: flows differ by {}", step, difference));
    }
  }
}

}  // namespace
}  // namespace solenoid
