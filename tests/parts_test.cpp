// Domains that holes cut into parts: each is solved as if it were alone.

#include <gtest/gtest.h>

#include <cmath>

#include "engines.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"

namespace solenoid {
namespace {

constexpr double height = 1.0;

/// Two boxes of `wide` by `high` coarse boxes with as much as one of them between, a lid on both; the right one is open
/// at its end. `cells` per unit of length.
struct Boxes {
  int dim;
  int cells;
  int refine;

  [[nodiscard]] Problem alone(double lower, double upper) const {
    Problem problem;
    problem.mesh.dim = dim;
    problem.mesh.refine = refine;
    for (int a = 0; a < dim; ++a) {
      problem.mesh.lower[a] = a == 0 ? lower : 0.0;
      problem.mesh.upper[a] = a == 0 ? upper : height;
      problem.mesh.cells[a] = static_cast<int>(std::lround(cells * (problem.mesh.upper[a] - problem.mesh.lower[a])));
    }
    problem.order = 1;
    problem.viscosity = 0.7;
    problem.force = {std::function<double(const Point&)>([](const Point& x) { return std::sin(3 * x[0]) * x[1]; }),
                     std::function<double(const Point&)>([](const Point& x) { return std::cos(2 * x[1]) * x[0]; })};
    problem.boundary.sides[3].data = {std::function<double(const Point&)>(
        [](const Point& x) { return x[0] * (1 - x[0]) * (2 - x[0]) * (3 - x[0]); })};
    return problem;
  }
  [[nodiscard]] Problem left() const { return alone(0.0, 1.0); }
  [[nodiscard]] Problem right() const {
    Problem problem = alone(2.0, 3.0);
    problem.boundary.sides[1].kind = SideKind::outflow;
    return problem;
  }
  [[nodiscard]] Problem both() const {
    Problem problem = alone(0.0, 3.0);
    problem.boundary.sides[1].kind = SideKind::outflow;
    problem.mesh.holes = {{{cells, 0, 0}, {2 * cells, cells, dim == 3 ? cells : 1}}};
    return problem;
  }
};

SolverOptions options_on(DeviceChoice device) {
  SolverOptions options;
  options.device = device;
  options.precision = Precision::full_double;
  options.rtol = 1e-12;
  return options;
}

void expect_same(const Solution& together, const Solution& alone, double lower) {
  std::vector<Point> points;
  for (const double x : {0.13, 0.48, 0.77}) {
    for (const double y : {0.21, 0.66}) points.push_back({lower + x, y, together.grid().dim() == 3 ? 0.37 : 0.0});
  }
  const auto u = together.velocity(points);
  const auto v = alone.velocity(points);
  const auto p = together.pressure(points);
  const auto q = alone.pressure(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(u[i][c], v[i][c], 1e-9);
    EXPECT_NEAR(p[i], q[i], 1e-8);
  }
}

/// The closed part has a pressure without mean, the open one that of its outflow side.
TEST(Parts, AreSolvedAsIfAlone) {
  for (const auto& engine : test::engines()) {
    for (const Boxes& boxes : {Boxes{2, 1, 3}, Boxes{2, 3, 2}, Boxes{3, 1, 2}, Boxes{2, 13, 1}}) {
      if (!test::has_order(boxes.dim, 1)) continue;
      SCOPED_TRACE(engine.name + ", " + std::to_string(boxes.dim) + "D, " + std::to_string(boxes.cells));
      const auto options = options_on(engine.device);
      const auto both = solve(boxes.both(), options);
      EXPECT_TRUE(both.report.converged);
      const auto left = solve(boxes.left(), options);
      const auto right = solve(boxes.right(), options);
      expect_same(both.solution, left.solution, 0.0);
      expect_same(both.solution, right.solution, 2.0);
      EXPECT_LE(both.report.iterations, std::max(left.report.iterations, right.report.iterations) + 3);
    }
  }
}

/// All ways to solve the coarsest level are met above.
TEST(Parts, CoarsestLevelsAreLargeAndSmall) {
  EXPECT_EQ(Hierarchy(Boxes{2, 3, 2}.both(), {}).coarse, CoarseSolve::dense);
  EXPECT_EQ(Hierarchy(Boxes{2, 13, 1}.both(), {}).coarse, CoarseSolve::mac);
}

TEST(Parts, FluxesBalanceInEach) {
  Problem problem = Boxes{2, 1, 3}.both();
  // Into the left part and out of it again: nothing is wrong. Into the right one: the outflow side takes it.
  problem.boundary.sides[3].data = {
      0.0, std::function<double(const Point&)>([](const Point& x) { return x[0] < 1.5 ? x[0] - 0.5 : -1.0; })};
  EXPECT_TRUE(solve(problem, options_on(DeviceChoice::cpu)).report.converged);
  // What flows into one does not flow out of the other.
  problem.boundary.sides[1].kind = SideKind::velocity;
  problem.boundary.sides[3].data[1] =
      std::function<double(const Point&)>([](const Point& x) { return x[0] < 1.5 ? 1.0 : -1.0; });
  try {
    solve(problem, options_on(DeviceChoice::cpu));
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("out of the part of the domain around [0.0625, 0.0625] is 1.0"),
              std::string::npos)
        << error.what();
  }
}

/// A part that no wall holds back needs a force without mean there.
TEST(Parts, ForcesBalanceInEach) {
  Problem problem;
  problem.mesh = test::box({5, 2}, {{{2, 0, 0}, {3, 2, 1}}}, 3);  // y from -0.1 to 0.7
  problem.order = 1;
  problem.boundary = test::sides({{0, SideKind::slip}, {1, SideKind::slip}}, SideKind::slip);
  problem.boundary.sides[2].kind = problem.boundary.sides[3].kind = SideKind::periodic;
  const auto wave = [](const Point& x) { return std::sin(x[0] + (x[1] + 0.1) * 2 * std::acos(-1.0) / 0.8); };
  problem.force = {std::function<double(const Point&)>(wave), std::function<double(const Point&)>(wave)};
  EXPECT_TRUE(solve(problem, options_on(DeviceChoice::cpu)).report.converged);
  problem.force[1] = std::function<double(const Point&)>([](const Point& x) { return x[0] < 1.25 ? 1.0 : -1.0; });
  EXPECT_THROW(solve(problem, options_on(DeviceChoice::cpu)), InputError);
}

}  // namespace
}  // namespace solenoid
