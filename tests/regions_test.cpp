// Conditions on parts of sides and on single holes.

#include "problem/regions.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "engines.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "solenoid/solver.hpp"
#include "solver/hierarchy.hpp"

namespace solenoid {
namespace {

constexpr double pi = std::numbers::pi;
constexpr auto velocity = SideKind::velocity;
constexpr auto slip = SideKind::slip;
constexpr auto outflow = SideKind::outflow;

using Function = std::function<double(const Point&)>;

SolverOptions options_on(DeviceChoice device, double rtol = 1e-12) {
  SolverOptions options;
  options.device = device;
  options.precision = Precision::full_double;
  options.rtol = rtol;
  return options;
}

SideRegion region(int side, const std::string& where, Side condition) {
  return {side, ScalarField::expression(where, 3, "side[0].where"), std::move(condition)};
}

std::string message(const Problem& problem) {
  try {
    validate(problem);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}
void expect_refused(const Problem& problem, const std::vector<std::string>& parts) {
  const std::string text = message(problem);
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

/// A square or cube of 2^dim coarse boxes.
Problem box(int dim, int refine, int order = 1) {
  Problem problem;
  problem.mesh = Mesh::unit(dim, refine);
  for (int a = 0; a < dim; ++a) problem.mesh.cells[a] = 2;
  problem.order = order;
  return problem;
}

// Data ---------------------------------------------------------------------------------------------------------------

/// Sides have other data where no region says what holds. (Orders in the space: solve_test.cpp.)
TEST(Regions, HoldWhereTheySay) {
  for (const auto& engine : test::engines()) {
    for (const int dim : {2, 3}) {
      if (!test::has_order(dim, 1)) continue;
      SCOPED_TRACE(engine.name + ", " + std::to_string(dim) + "D");
      const auto flow = test::PolynomialFlow::of_order(dim, 1);
      Problem problem = box(dim, 1);
      problem.force = flow.force(problem.viscosity, 0.0);
      const char* const names[] = {"x", "y", "z"};
      const Side wrong{velocity, {17.0, -5.0, 3.0}};
      const Side right{velocity, flow.velocity_field()};
      for (int side = 0; side < 2 * dim; ++side) {
        const std::string along = names[(side / 2 + 1) % dim];
        problem.boundary.sides[side] = wrong;
        // The finest faces are 0.25 wide: what is on them comes first, and is hidden by halves where both hold.
        problem.boundary.regions.push_back(region(side, along + " < 0.75", wrong));
        problem.boundary.regions.push_back(region(side, along + " < 0.25", right));
        problem.boundary.regions.push_back(region(side, along + " > 0.25", right));
      }
      const auto [solution, report] = solve(problem, options_on(engine.device, 1e-13));
      EXPECT_TRUE(report.converged) << report.reason;
      EXPECT_LE(solution.velocity_error(flow.velocity_field()), 1e-10);
      EXPECT_LE(solution.pressure_error(flow.pressure.field()), 1e-9);
      EXPECT_EQ(report.dofs, estimate(problem).dofs);
    }
  }
}

/// A lid that moves on a part is a lid with data that say so, on coarse levels too, whose cells are wider than the
/// part: full multigrid asks for their loads.
TEST(Regions, AreDataThatJump) {
  for (const EquationKind equation : {EquationKind::stokes, EquationKind::poisson}) {
    Problem divided = box(2, 3, test::has_order(2, 2) ? 2 : 1);
    divided.equation = equation;
    if (!test::has_order(2, divided.order, equation)) continue;
    Problem jumping = divided;
    divided.boundary.sides[3].data = {0.25};
    divided.boundary.regions.push_back(
        region(3, "0.125 < x && x < 0.5", {velocity, {ScalarField(Function([](const Point& x) {
                                             // Undefined where it does not hold.
                                             return std::sqrt(0.5 - x[0]);
                                           }))}}));
    jumping.boundary.sides[3].data = {ScalarField(
        Function([](const Point& x) { return 0.125 < x[0] && x[0] < 0.5 ? std::sqrt(0.5 - x[0]) : 0.25; }))};
    for (const Method method : {Method::gmres, Method::fmg}) {
      auto options = options_on(DeviceChoice::cpu);
      options.method = method;
      EXPECT_LE(test::relative_difference(solve(divided, options).solution, solve(jumping, options).solution), 1e-13);
    }
  }
}

/// What flows in through a part of a side flows out on the other side, through a part too.
TEST(Regions, LetFlowInAndOut) {
  for (const auto& engine : test::engines()) {
    for (const int dim : {2, 3}) {
      if (!test::has_order(dim, 1)) continue;
      SCOPED_TRACE(engine.name + ", " + std::to_string(dim) + "D");
      Problem problem = box(dim, 2);
      const Function inflow = [](const Point& x) { return 24 * (1 - x[1]) * (x[1] - 0.5); };  // 1/2 in all
      problem.boundary.regions.push_back(region(0, "y > 0.5", {velocity, {ScalarField(inflow)}}));
      problem.boundary.regions.push_back(region(1, "y < 0.5", {outflow}));
      const auto [solution, report] = solve(problem, options_on(engine.device));
      EXPECT_TRUE(report.converged) << report.reason;
      for (const double x : {0.0, 0.3, 0.5, 0.99, 1.0}) EXPECT_NEAR(solution.flux(0, x), 0.5, 1e-9);
      EXPECT_LE(solution.divergence_max(), 1e-11);
      for (const Point& wall : {Point{1.0, 0.8, 0.2}, Point{0.0, 0.2, 0.1}}) {
        EXPECT_NEAR(solution.velocity({&wall, 1})[0][0], 0.0, 1e-9);
      }
      EXPECT_EQ(report.dofs, estimate(problem).dofs);

      // Without the outflow the fluxes do not balance.
      problem.boundary.regions.pop_back();
      EXPECT_THROW((void)solve(problem, options_on(engine.device)), InputError);
      problem.boundary.regions.push_back(region(1, "y < 0.5", {velocity, {1.0}}));
      EXPECT_NEAR(solve(problem, options_on(engine.device)).solution.flux(0, 1.0), 0.5, 1e-9);
    }
  }
}

// Kinds --------------------------------------------------------------------------------------------------------------

/// Half a channel, u = y (2 - y) / 2 under the force 1: above it there is a plane of symmetry, or what flows there.
TEST(Regions, SlipOnAPartOfASide) {
  for (const auto& engine : test::engines()) {
    for (const int dim : {2, 3}) {
      if (!test::has_order(dim, 2)) continue;
      SCOPED_TRACE(engine.name + ", " + std::to_string(dim) + "D");
      const VectorField exact{ScalarField(Function([](const Point& x) { return x[1] * (1 - x[1] / 2); }))};
      const VectorField traction{ScalarField(Function([](const Point& x) { return x[0] * 0.0; }))};
      Problem problem = box(dim, 2, 2);
      problem.force = {1.0, 0.0, 0.0};
      problem.boundary = test::periodic({0});
      problem.boundary.sides[3] = {velocity, {0.5}};
      problem.boundary.sides[4].kind = problem.boundary.sides[5].kind = slip;
      problem.boundary.regions.push_back(region(3, "x > 0.5", {slip}));
      if (dim == 3) problem.boundary.regions.push_back(region(4, "y < 0.5", {velocity, exact}));
      if (dim == 3) problem.boundary.regions.push_back(region(5, "x < 0.5 && y > 0.5", {outflow}));
      const auto [solution, report] = solve(problem, options_on(engine.device));
      EXPECT_TRUE(report.converged) << report.reason;
      EXPECT_LE(solution.velocity_error(exact), 1e-10);
      EXPECT_LE(solution.pressure_error(ScalarField(0.0)), 1e-9);
      EXPECT_EQ(report.dofs, estimate(problem).dofs);
    }
  }
}

/// Vortices on unit squares, whose sides are free of shear and flow: (sin cos, -cos sin). One of 3 x 3 is a hole with
/// slip, another has the vortices' velocity.
struct Vortices {
  VectorField u{ScalarField(Function([](const Point& x) { return std::sin(pi * x[0]) * std::cos(pi * x[1]); })),
                ScalarField(Function([](const Point& x) { return -std::cos(pi * x[0]) * std::sin(pi * x[1]); }))};

  [[nodiscard]] Problem problem(int dim, int refine, int order) const {
    Problem problem;
    problem.mesh.dim = dim;
    problem.mesh.cells = {4, 3, dim == 3 ? 2 : 1};
    problem.mesh.upper = {4.0, 3.0, 2.0};
    problem.mesh.refine = refine;
    problem.mesh.holes = {{{1, 1, 0}, {2, 2, dim == 3 ? 2 : 1}}, {{2, 1, 0}, {3, 2, 1}}};
    problem.order = order;
    for (int c = 0; c < 2; ++c) {
      problem.force[c] = ScalarField(Function([f = u[c]](const Point& x) { return 2 * pi * pi * f(x); }));
    }
    for (int side = 0; side < 6; ++side) problem.boundary.sides[side] = {velocity, u};
    problem.boundary.sides[4].kind = problem.boundary.sides[5].kind = slip;
    problem.boundary.holes = {velocity, u};
    problem.boundary.regions.push_back(region(2, "1 < x && x < 3", {slip}));
    problem.boundary.single_holes.push_back({0, {slip, {}}});
    return problem;
  }
};

TEST(SingleHoles, SlipWhileOthersMove) {
  const Vortices vortices;
  for (const auto& engine : test::engines()) {
    for (const int dim : {2, 3}) {
      const int order = dim == 2 ? 2 : 1;
      if (!test::has_order(dim, order)) continue;
      SCOPED_TRACE(engine.name + ", " + std::to_string(dim) + "D");
      std::array<double, 2> errors{};
      for (int i = 0; i < 2; ++i) {
        const Problem problem = vortices.problem(dim, i + (dim == 2 ? 2 : 1), order);
        const auto [solution, report] = solve(problem, options_on(engine.device));
        EXPECT_TRUE(report.converged) << report.reason;
        EXPECT_EQ(report.dofs, estimate(problem).dofs);
        errors[i] = solution.velocity_error(vortices.u);
      }
      EXPECT_LE(errors[1], 1.3 * std::pow(0.5, order + 1) * errors[0]);
      const double norm = dim == 2 ? std::sqrt(5.0) : std::sqrt(10.0 + 0.5);  // of u: 1/2 on each unit of volume
      EXPECT_LE(errors[1], 0.05 * norm);
    }
  }
}

/// All turn like a rigid body, the hole too: that is the flow.
TEST(SingleHoles, TurnWithTheRest) {
  for (const auto& engine : test::engines()) {
    Problem problem;
    problem.mesh = test::box({4, 4}, {{{1, 1, 0}, {2, 2, 1}}, {{1, 2, 0}, {3, 3, 1}}}, 1);
    problem.order = 1;
    const VectorField turn{ScalarField(Function([](const Point& x) { return 0.3 - x[1]; })),
                           ScalarField(Function([](const Point& x) { return x[0] - 0.2; }))};
    for (Side& side : problem.boundary.sides) side.data = turn;
    problem.boundary.holes.data = {3.0, 1.0};
    problem.boundary.single_holes = {{1, {velocity, turn}}, {0, {velocity, turn}}};
    const auto [solution, report] = solve(problem, options_on(engine.device, 1e-13));
    EXPECT_TRUE(report.converged) << report.reason;
    EXPECT_LE(solution.velocity_error(turn), 1e-11);
    EXPECT_LE(solution.pressure_error(ScalarField(0.0)), 1e-10);
  }
}

/// A later hole hides an earlier one.
TEST(SingleHoles, OverlapInOrder) {
  Problem problem;
  problem.mesh = test::box({5, 3}, {{{1, 1, 0}, {3, 2, 1}}, {{2, 1, 0}, {4, 2, 1}}});
  problem.boundary.single_holes = {{1, {slip, {}}}};
  const Grid grid(problem.mesh, problem.boundary);
  const auto below = [&](int x) { return grid.face(grid.at({x, 0, 0}), 3); };
  EXPECT_EQ(below(1), Face::velocity);
  EXPECT_EQ(below(2), Face::slip);
  EXPECT_EQ(below(3), Face::slip);
  EXPECT_EQ(grid.hole(grid.at({1, 0, 0}), 3), 0);
  EXPECT_EQ(grid.hole(grid.at({2, 0, 0}), 3), 1);
  EXPECT_EQ(grid.hole(grid.at({2, 0, 0}), 2), -1);
}

/// Levels that coarsening makes are those of coarser meshes.
TEST(Regions, AreTheSameOnAllLevels) {
  for (const int dim : {2, 3}) {
    for (auto mesh : test::mesh_cases(dim)) {
      if (mesh.boundary.regions.empty() && mesh.boundary.single_holes.empty()) continue;
      SCOPED_TRACE(mesh.name);
      const Grid coarse(mesh.mesh, mesh.boundary);
      mesh.mesh.refine = 2;
      Grid grid(mesh.mesh, mesh.boundary);
      for (int i = 0; i < 2; ++i) grid = grid.coarsen(*grid.pairing({true, true, dim == 3}));
      ASSERT_EQ(grid.layout().records().size(), coarse.layout().records().size());
      for (const Record cell : coarse.layout().cells()) {
        const Record same = grid.at(coarse.position(cell));
        for (int side = 0; side < 2 * dim; ++side) EXPECT_EQ(grid.face(same, side), coarse.face(cell, side));
      }
    }
  }
}

/// Boxes become one only where kinds agree.
TEST(Regions, StopCoarsening) {
  Boundary boundary;
  Mesh mesh = Mesh::unit(2, 0);
  mesh.cells = {8, 8, 1};
  const auto pairs = [&](const std::string& where) {
    boundary.regions = {region(1, where, {outflow})};
    const Grid grid(mesh, boundary);
    return grid.pairing({true, true, false}).has_value();
  };
  EXPECT_TRUE(pairs("y < 0.5"));
  EXPECT_FALSE(pairs("y < 0.375"));
  EXPECT_TRUE(Grid(mesh, boundary).pairing({true, false, false}).has_value());
  mesh.cells = {6, 4, 1};
  mesh.holes = {{{2, 0, 0}, {3, 2, 1}}, {{3, 0, 0}, {4, 2, 1}}};
  boundary = test::with_holes({}, {slip, velocity});
  EXPECT_FALSE(Grid(mesh, boundary).pairing({true, true, false}).has_value());
  boundary = test::with_holes({}, {slip, slip});
  EXPECT_TRUE(Grid(mesh, boundary).pairing({true, true, false}).has_value());
}

TEST(Regions, TakeAsManyIterationsOnAnyMesh) {
  const auto iterations = [](int dim, int refine) {
    Problem problem = box(dim, refine);
    problem.boundary.regions = {region(0, "y > 0.5", {velocity, {1.0}}), region(1, "y < 0.5", {outflow}),
                                region(3, "x < 0.5", {slip})};
    SolverOptions options;
    options.device = DeviceChoice::cpu;
    const Report report = solve(problem, options).report;
    EXPECT_TRUE(report.converged);
    return report.iterations;
  };
  const int coarse = iterations(2, 3);
  EXPECT_LE(coarse, 12);
  EXPECT_LE(iterations(2, 6), coarse + 1);
  if (!test::has_order(3, 1)) return;
  EXPECT_LE(iterations(3, 3), iterations(3, 2) + 2);
}

// What is refused ----------------------------------------------------------------------------------------------------

TEST(Regions, MustBeWholeFaces) {
  Problem problem = box(2, 2);  // faces 0.125 wide
  const auto with = [&](const std::string& where, Side condition, int side = 0) {
    problem.boundary.regions = {region(side, where, std::move(condition))};
    return problem;
  };
  EXPECT_EQ(message(with("y < 0.375", {velocity, {1.0}})), "no error");
  expect_refused(with("y < 0.4", {velocity, {1.0}}),
                 {"side[0].where: ends within the face of a cell, around the point (0, 0.4375)", "0.125 wide in y"});
  expect_refused(with("y < 0", {velocity}), {"side[0].where: holds on no face of the side xmin"});
  EXPECT_EQ(message(with("y < 0.5", {slip})), "no error");
  expect_refused(with("y < 0.25", {slip}),
                 {"side[0].where: ends within the face of a coarse box, around the point (0, 0.3125)",
                  "here slip on a side that is velocity", "0.5 wide in y",
                  "with cells = [4, 4] and refine = 1 the mesh is the same and it does"});
  expect_refused(with("y < 0.125", {outflow}), {"with cells = [8, 8] and refine = 1 the mesh is finer"});
  expect_refused(with("1/(y-0.4375)", {velocity}), {"the value is", "inf"});
  problem.boundary.sides[1].kind = slip;
  expect_refused(with("y < 0.25", {velocity, {}}, 1), {"here velocity on a side that is slip"});
  problem.boundary.sides[0].kind = problem.boundary.sides[1].kind = SideKind::periodic;
  expect_refused(with("y < 0.5", {slip}), {"side[0].on: xmin is periodic"});
  expect_refused(with("x < 0.5", {SideKind::periodic}, 2), {"side[0].on: whole sides are periodic"});
  expect_refused(with("x < 0.5", {slip}, 4), {"side[0].on: there is no side 4 in 2D"});
}

TEST(Regions, AreLookedForOnSoManyFacesOnly) {
  Problem problem = box(3, 12);
  problem.mesh.cells = {1, 4, 4};
  problem.boundary.regions = {region(0, "y < 0.5", {slip, {}})};
  expect_refused(problem, {"side[0].on: xmin has 268435456 faces of cells; sides of up to 67108864 can be divided"});
}

/// What is said to help does.
TEST(Regions, OnMoreCoarseBoxesAreWhole) {
  Problem problem = box(2, 2);
  problem.boundary.regions = {region(0, "y < 0.25", {slip, {}})};
  problem.mesh.cells = {4, 4, 1};
  problem.mesh.refine = 1;
  EXPECT_EQ(message(problem), "no error");
}

/// There is no boundary behind holes, so that nothing is asked there.
TEST(Regions, MayEndBehindAHole) {
  Problem problem = box(2, 2);
  problem.mesh.holes = {{{0, 0, 0}, {1, 1, 1}}};
  problem.boundary.regions = {region(0, "y > 0.4", {outflow, {}})};
  EXPECT_EQ(message(problem), "no error");
  problem.boundary.regions = {region(0, "y < 0.4", {outflow, {}})};
  expect_refused(problem, {"holds on no face"});
}

TEST(SingleHoles, MustBeThere) {
  Problem problem = box(2, 2);
  problem.boundary.single_holes = {{0, {slip, {}}}};
  expect_refused(problem, {"hole[0].index: the mesh has no holes"});
  problem.mesh.holes = {{{0, 0, 0}, {1, 1, 1}}};
  EXPECT_EQ(message(problem), "no error");
  problem.boundary.single_holes[0].hole = 1;
  expect_refused(problem, {"hole[0].index: there is no hole 1", "from 0 to 0"});
  problem.boundary.single_holes = {{0, {slip, {}}}, {0, {velocity, {}}}};
  expect_refused(problem, {"hole[1].index: hole 0 has a condition already, from hole[0]"});
  problem.boundary.single_holes = {{0, {SideKind::periodic, {}}}};
  expect_refused(problem, {"hole[0]: holes cannot be periodic"});
}

TEST(Regions, OfPoissonsEquationHaveValues) {
  Problem problem = box(2, 2);
  problem.equation = EquationKind::poisson;
  problem.boundary.regions = {region(0, "y < 0.5", {outflow, {}})};
  expect_refused(problem, {"side[0]: is a outflow side, but Poisson's equation"});
}

}  // namespace
}  // namespace solenoid
