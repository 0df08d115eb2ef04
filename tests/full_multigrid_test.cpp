/// \file
/// Full multigrid: what it says of its error is true, and it says converged only where that is.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/host_vector.hpp"
#include "flows.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

struct Flow {
  std::string name;
  Problem problem;
  VectorField exact;
};

Flow manufactured(ManufacturedKind kind, int dim, int order, int refine) {
  return {std::to_string(dim) + "D, k = " + std::to_string(order), manufactured_problem(kind, dim, order, refine),
          Manufactured(kind, dim).velocity};
}

SolverOptions full_multigrid(int cycles, Precision precision = Precision::mixed) {
  SolverOptions options;
  options.method = Method::fmg;
  options.cycles = cycles;
  options.precision = precision;
  options.threads = 1;
  return options;
}

/// L2 norm of the difference of the velocities.
double distance(const Solution& a, const Solution& b) {
  const auto from = b.coefficients();
  HostVector difference(a.coefficients().begin(), a.coefficients().end());
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= from[i];
  const std::shared_ptr<const Grid> grid(&a.grid(), [](const Grid*) {});
  return Solution(a.problem(), grid, std::move(difference)).velocity_error({0.0, 0.0, 0.0});
}

void expect_within_three(double estimate, double truth, const std::string& what) {
  EXPECT_GE(estimate, truth / 3) << what;
  EXPECT_LE(estimate, 3 * truth) << what;
}

/// Against the exact solution, and against that of the discrete problem.
void expect_true(const Flow& flow, const SolverOptions& options) {
  const Problem& problem = flow.problem;
  if (!test::has_order(problem.mesh.dim, problem.order)) return;
  const auto [solution, report] = solve(problem, options);
  const std::string what = flow.name + ", " + std::to_string(options.cycles) + " cycles";
  SolverOptions best;
  best.rtol = 1e-11;  // of flat cells rounding leaves 1e-12
  best.max_iterations = 100;
  best.precision = Precision::full_double;
  best.threads = 1;
  const auto [discrete, truth] = solve(problem, best);
  ASSERT_TRUE(truth.converged) << what << ": " << truth.reason;
  ASSERT_TRUE(report.error_estimate && report.error_estimate->total) << what;
  const double total = solution.velocity_error(flow.exact);
  const double algebraic = distance(solution, discrete);
  expect_within_three(*report.error_estimate->total, total, what + ", error");
  expect_within_three(report.error_estimate->algebraic, algebraic, what + ", algebraic part");
  if (algebraic < 0.1 * total) {
    EXPECT_TRUE(report.converged) << what << ": " << report.reason;
  } else if (algebraic > 0.9 * total) {
    EXPECT_FALSE(report.converged) << what;
  }
}

TEST(FullMultigrid, EstimatesItsErrorAndTheAlgebraicPart) {
  using enum ManufacturedKind;
  for (const Flow& flow :
       {manufactured(gaussian, 2, 1, 5), manufactured(trigonometric, 2, 2, 5), manufactured(gaussian, 2, 3, 4),
        manufactured(trigonometric, 3, 1, 3), manufactured(gaussian, 3, 2, 3), manufactured(trigonometric, 3, 3, 2)}) {
    for (const int cycles : {1, 2}) {
      expect_true(flow, full_multigrid(cycles));
      expect_true(flow, full_multigrid(cycles, Precision::full_double));
    }
  }
}

/// The differences of several levels count.
TEST(FullMultigrid, EstimatesErrorsOfCellsThatAreCoarsenedInOneDirectionFirst) {
  for (const int order : {1, 2, 3}) {
    if (!test::has_order(2, order)) continue;
    Flow flat = manufactured(ManufacturedKind::trigonometric, 2, order, 4);
    flat.name += ", flat cells";
    flat.problem.mesh.cells = {4, 1, 1};
    expect_true(flat, full_multigrid(2));
    flat.problem.mesh.cells = {1, 4, 1};
    expect_true(flat, full_multigrid(2));
  }
}

/// Values on sides enter the load of every level with its own penalty: full multigrid is as good as without.
TEST(FullMultigrid, EstimatesErrorsOfDrivenFlows) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  // u = (psi_y, -psi_x) of psi = x^2 (1-x)^2 (e^y - 1 - y) (1 - y): no flow through sides, y = 1 moves.
  const auto x2 = [](const Point& p) { return p[0] * p[0] * (1 - p[0]) * (1 - p[0]); };
  const auto x1 = [](const Point& p) { return 2 * p[0] * (1 - p[0]) * (1 - 2 * p[0]); };
  const auto x0 = [](const Point& p) { return 2 - 12 * p[0] + 12 * p[0] * p[0]; };
  const auto xm = [](const Point& p) { return 24 * p[0] - 12; };
  // Derivatives of (e^y - 1 - y) (1 - y) = e^y (1 - y) - 1 + y^2
  const auto y0 = [](const Point& p) { return std::exp(p[1]) * (1 - p[1]) - 1 + p[1] * p[1]; };
  const auto y1 = [](const Point& p) { return -p[1] * std::exp(p[1]) + 2 * p[1]; };
  const auto y2 = [](const Point& p) { return -(1 + p[1]) * std::exp(p[1]) + 2; };
  const auto y3 = [](const Point& p) { return -(2 + p[1]) * std::exp(p[1]); };
  using Function = std::function<double(const Point&)>;
  const VectorField exact{Function([=](const Point& p) { return x2(p) * y1(p); }),
                          Function([=](const Point& p) { return -x1(p) * y0(p); })};
  Problem problem{.mesh = Mesh::unit(2, 5), .order = 2};
  problem.force = {Function([=](const Point& p) { return -x0(p) * y1(p) - x2(p) * y3(p); }),
                   Function([=](const Point& p) { return xm(p) * y0(p) + x1(p) * y2(p); })};
  problem.boundary.sides[3].data = exact;
  expect_true({"driven", problem, exact}, full_multigrid(1));
  const auto [solution, report] = solve(problem, full_multigrid(1));
  const Solution converged = solve(problem).solution;
  EXPECT_LE(solution.velocity_error(exact), 1.1 * converged.velocity_error(exact));
  EXPECT_TRUE(report.converged) << report.reason;
}

/// What is lifted from the sides is unlike anything on a coarser level, so that one cycle leaves most of it.
TEST(FullMultigrid, DoesNotEstimateErrorsOfFlowThroughSides) {
  if (!test::has_order(2, 2)) GTEST_SKIP() << "the order is not in this build";
  const test::PolynomialFlow flow = test::PolynomialFlow::of_order(2, 4);
  Problem problem{.mesh = Mesh::unit(2, 4), .order = 2, .force = flow.force(1.0, 0.0), .boundary = {}};
  for (int side = 0; side < 4; ++side) problem.boundary.sides[side].data = flow.velocity_field();
  const Report once = solve(problem, full_multigrid(1)).report;
  ASSERT_TRUE(once.error_estimate);
  EXPECT_FALSE(once.error_estimate->total);
  EXPECT_FALSE(once.converged);
  EXPECT_NE(once.reason.find("above rtol"), std::string::npos) << once.reason;
  const auto [solution, often] = solve(problem, full_multigrid(8));
  EXPECT_TRUE(often.converged) << often.reason;
  EXPECT_LE(often.error_estimate->algebraic, solution.velocity_error(flow.velocity_field()));
}

/// One V-cycle leaves more of the error in 2D than the element does.
TEST(FullMultigrid, HasNotConvergedWhileMostOfTheErrorIsAlgebraic) {
  if (!test::has_order(2, 1)) GTEST_SKIP() << "the order is not in this build";
  const Problem problem = test::paper(2, 1, 5);
  SolverOptions options = full_multigrid(1);
  options.device = DeviceChoice::cpu;  // the algebraic part is near a half: more than that with as many levels as there
  const Report once = solve(problem, options).report;
  EXPECT_FALSE(once.converged);
  EXPECT_NE(once.reason.find("is algebraic, more than half"), std::string::npos) << once.reason;
  EXPECT_GT(once.error_estimate->algebraic, 0.5 * *once.error_estimate->total);
  const Report enough = solve(problem, full_multigrid(4)).report;
  EXPECT_TRUE(enough.converged) << enough.reason;
}

/// A penalty that stiffens coarse levels makes cycles slow; the residual is far below the load's all the same.
TEST(FullMultigrid, HasNotConvergedIfTheLastCycleDidNotHalveTheResidual) {
  if (!test::has_order(2, 1)) GTEST_SKIP() << "the order is not in this build";
  SolverOptions options = full_multigrid(3);
  options.multigrid.coarse_penalty = 3.0;
  const Report report = solve(test::paper(2, 1, 5), options).report;
  EXPECT_LT(report.residual_history.back(), 0.1);
  EXPECT_FALSE(report.converged);
  EXPECT_NE(report.reason.find("divided the residual by 1."), std::string::npos) << report.reason;
}

/// Nothing is left to be reduced where the element contains the flow.
TEST(FullMultigrid, StopsAtRounding) {
  Problem problem{.mesh = Mesh::unit(2, 4), .order = 2, .force = {1.0, 0.0, 0.0}, .boundary = {}};
  problem.boundary.sides[0].kind = problem.boundary.sides[1].kind = SideKind::periodic;
  const Report report = solve(problem, full_multigrid(10, Precision::full_double)).report;
  EXPECT_TRUE(report.converged) << report.reason;
  EXPECT_LE(report.error_estimate->algebraic, 1e-12);
}

TEST(FullMultigrid, OfOneLevelHasNothingToCompareWith) {
  const Report report = solve(test::paper(2, 2, 1), full_multigrid(1)).report;
  EXPECT_EQ(report.levels, 1);
  EXPECT_TRUE(report.converged) << report.reason;
  ASSERT_TRUE(report.error_estimate);
  EXPECT_FALSE(report.error_estimate->total);
}

TEST(FullMultigrid, OtherMethodsEstimateNothing) { EXPECT_FALSE(solve(test::paper(2, 2, 2)).report.error_estimate); }

}  // namespace
}  // namespace solenoid
