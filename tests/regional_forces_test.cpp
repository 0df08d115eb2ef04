/// \file
/// Forces by region, by cell and at points of cells: fields made of pieces, layers that stand still, balances, files.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "element/basis.hpp"
#include "flows.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/case.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solver.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

namespace fs = std::filesystem;

using test::has_order;
using test::on_cpu;

void expect_error(const std::string& message, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "no error: " << message;
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

// Pieces -------------------------------------------------------------------------------------------------------------

TEST(Pieces, AreThoseOfTheLastOneThatAPointIsIn) {
  const auto in_x = [](double from, double to) {
    return ScalarField([=](const Point& x) { return x[0] >= from && x[0] < to ? 2.0 : 0.0; });
  };
  // Not finite where it does not count.
  const ScalarField inverse([](const Point& x) { return x[0] < 0.25 ? std::nan("") : x[1]; });
  const ScalarField field = ScalarField::piecewise(7.0, {{in_x(0.25, 0.75), inverse}, {in_x(0.5, 0.6), 3.0}});
  const auto expected = [](const Point& x) {
    return x[0] >= 0.5 && x[0] < 0.6 ? 3.0 : x[0] >= 0.25 && x[0] < 0.75 ? x[1] : 7.0;
  };
  std::vector<double> axis;
  for (int i = 0; i < 40; ++i) axis.push_back(0.0125 + 0.025 * i);
  const std::vector<double> few{0.1, 0.2};
  // Grids in several pieces, in one of them, in none.
  for (const auto& [first, count] : std::vector<std::pair<int, int>>{{0, 40}, {20, 3}, {10, 5}, {0, 8}}) {
    const std::span<const double> x = std::span(axis).subspan(first, count);
    std::vector<double> values(count * few.size());
    field.evaluate(Axes{x, few, std::span(few).first(1)}, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Point at{x[i % count], few[i / count], 0.1};
      EXPECT_EQ(values[i], expected(at));
      EXPECT_EQ(field(at), expected(at));
    }
  }
  EXPECT_EQ(ScalarField::piecewise(2.5, {}).constant(), 2.5);
  EXPECT_EQ(field.program(), nullptr);
  expect_error("it must be finite everywhere", [&] { ScalarField::piecewise(0.0, {{1.0, inverse}})({0.1, 0.0, 0.0}); });
}

// Flows --------------------------------------------------------------------------------------------------------------

/// Two fluids at rest, the one of the regions twice as heavy: the force is the gradient of a continuous pressure that
/// is linear in each of them. Only if what jumps is integrated exactly nothing moves.
class Layers : public testing::TestWithParam<int> {
 protected:
  static Problem problem(int order) {
    Problem problem{.mesh = Mesh::unit(GetParam(), 2), .order = order};
    problem.mesh.cells = {2, 2, 1};
    problem.mesh.upper = {1.0, 2.0, 1.0};
    return problem;
  }
  /// That has y between 1/2 and 3/2 twice as heavy, and its pressure with mean zero.
  static double force(double y) { return y > 0.5 && y < 1.5 ? -2.0 : -1.0; }
  static double pressure(const Point& x) {
    return -std::min(x[1], 0.5) - 2.0 * std::clamp(x[1] - 0.5, 0.0, 1.0) - std::max(x[1] - 1.5, 0.0) + 1.5;
  }
  static void expect_rest(const Problem& problem) {
    const Solution solution = solve(problem, on_cpu()).solution;
    EXPECT_LT(solution.max_speed(), 1e-12);
    EXPECT_LT(solution.pressure_error(ScalarField(pressure)), 1e-11);
  }
};

TEST_P(Layers, StandStill) {
  for (const int order : {1, 2, 3}) {
    if (!has_order(GetParam(), order)) continue;
    Problem regions = problem(order);
    regions.force[1] = -1.0;
    // As expressions, and as functions of the caller.
    regions.regions.push_back(
        {.inside = ScalarField::expression("y > 0.5", GetParam()), .force = VectorField{0.0, -2.0}});
    regions.regions.push_back({.inside = ScalarField([](const Point& x) { return x[1] > 1.5 ? 1.0 : 0.0; }),
                               .force = VectorField{0.0, -1.0}});
    expect_rest(regions);
    // By cell.
    Problem array = problem(order);
    std::vector<double> values;
    const auto axes = axes_of({array.mesh});
    for (std::size_t i = 0; i < axes[0].size(); ++i) {
      for (const double y : axes[1]) {
        for (std::size_t k = 0; k < axes[2].size(); ++k) values.push_back(force(y));
      }
    }
    array.force[1] = scalar_field_of({array.mesh}, values, "force[1]");
    expect_rest(array);
    // Another force is one in regions too.
    set_force(regions, {0.0, ScalarField([](const Point& x) { return force(x[1]); })});
    EXPECT_FALSE(regions.regions[0].force);
    expect_rest(regions);
  }
}

/// All forces on the sides together are the integral of f - alpha u, here a sum over boxes.
TEST_P(Layers, BalanceTheForcesOnSides) {
  const int dim = GetParam();
  if (!has_order(dim, 2)) GTEST_SKIP();
  Problem problem{.mesh = Mesh::unit(dim, 2), .order = 2, .viscosity = 0.7, .mass = 3.0};
  problem.force = {1.0, -0.5, dim == 3 ? 0.25 : 0.0};
  problem.regions.push_back({.inside = ScalarField::expression("x < 0.5", dim), .force = VectorField{4.0, 2.0}});
  problem.regions.push_back({.inside = ScalarField::expression("y > 0.75", dim), .force = VectorField{0.0, 0.0, 1.0}});
  const Solution solution = solve(problem, on_cpu()).solution;
  const Point u = solution.mean_velocity();
  const Point driving{0.75 * (0.5 * 4.0 + 0.5 * 1.0), 0.75 * (0.5 * 2.0 - 0.5 * 0.5),
                      dim == 3 ? 0.25 * 1.0 + 0.75 * 0.5 * 0.25 : 0.0};
  Point sum{};
  for (const BoundaryForce& side : solution.forces()) {
    for (int c = 0; c < dim; ++c) sum[c] += side.force[c];
  }
  for (int c = 0; c < dim; ++c) EXPECT_NEAR(sum[c], driving[c] - 3.0 * u[c], 1e-10) << c;
  EXPECT_GT(solution.max_speed(), 1e-3);
}

/// In time: the same as a function that jumps, until another force is set; sides keep it.
TEST_P(Layers, MoveInTimeAsAFunctionDoes) {
  const int dim = GetParam();
  if (!has_order(dim, 2)) GTEST_SKIP();
  Problem regions{.mesh = Mesh::unit(dim, 2), .order = 2};
  regions.force[0] = ScalarField::expression("sin(9*t)*y", dim, "", {{"t", 0.0}});
  regions.regions.push_back({.inside = ScalarField::expression("x < 0.5", dim),
                             .force = VectorField{0.0, ScalarField::expression("1 + t", dim, "", {{"t", 0.0}})}});
  Problem whole{.mesh = regions.mesh, .order = 2};
  whole.force[0] = ScalarField::expression("x < 0.5 ? 0 : sin(9*t)*y", dim, "", {{"t", 0.0}});
  whole.force[1] = ScalarField::expression("x < 0.5 ? 1 + t : 0", dim, "", {{"t", 0.0}});
  TimeOptions time;
  time.step = 0.02;
  TimeStepper of_regions(regions, time, on_cpu(1e-10));
  TimeStepper of_whole(whole, time, on_cpu(1e-10));
  const auto expect_same = [&] {
    for (int i = 0; i < 3; ++i) {
      of_regions.step();
      of_whole.step();
    }
    const Solution expected = of_whole.solution();
    EXPECT_GT(expected.max_speed(), 1e-4);
    EXPECT_LT(of_regions.solution().velocity_error(expected.velocity_field()), 1e-12);
  };
  expect_same();
  for (TimeStepper* const flow : {&of_regions, &of_whole}) {
    flow->set_boundary(3, {ScalarField::expression("x*(1-x)", dim), 0.0, 0.0});
  }
  expect_same();
  for (TimeStepper* const flow : {&of_regions, &of_whole})
    flow->set_force({0.0, ScalarField::expression("x", dim), 0.0});
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Dimensions, Layers, testing::Values(2, 3),
                         [](const auto& info) { return fmt::format("{}D", info.param); });

TEST(RegionalForces, AreThoseOfPoissonsEquationToo) {
  if (available_orders(2, EquationKind::poisson).empty()) GTEST_SKIP();
  const int order = available_orders(2, EquationKind::poisson).back();
  Problem regions{.mesh = Mesh::unit(2, 2), .order = order, .equation = EquationKind::poisson};
  Problem whole = regions;
  regions.force[0] = 1.0;
  regions.regions.push_back({.inside = ScalarField::expression("x < 0.5", 2), .force = VectorField{-3.0}});
  whole.force[0] = ScalarField::expression("x < 0.5 ? -3 : 1", 2);
  const Solution expected = solve(whole, on_cpu()).solution;
  EXPECT_LT(solve(regions, on_cpu()).solution.value_error(expected.value_field()), 1e-12);
  EXPECT_GT(std::abs(expected.value(std::vector<Point>{{0.25, 0.5, 0.0}})[0]), 0.01);
}

// Files --------------------------------------------------------------------------------------------------------------

class ForceFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              fmt::format("solenoid_{}", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// value(component, place) with places [z, y, x], of a mesh with these counts [x, y, z].
  template <class Value>
  void write(const std::string& name, const std::vector<int>& shape, const Value& value) const {
    std::string text = "{'descr': '<f8', 'fortran_order': False, 'shape': (";
    std::size_t numbers = 1;
    for (const int count : shape) {
      text += fmt::format("{}, ", count);
      numbers *= count;
    }
    text += "), }";
    while ((11 + text.size()) % 64 != 0) text += ' ';
    text += '\n';
    std::ofstream stream(folder_ / name, std::ios::binary);
    stream << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(text.size()) << static_cast<char>(text.size() >> 8)
           << text;
    std::vector<int> at(shape.size(), 0);
    for (std::size_t i = 0; i < numbers; ++i) {
      const double number = value(at);
      stream.write(reinterpret_cast<const char*>(&number), sizeof(number));
      for (std::size_t a = shape.size(); a-- > 0 && ++at[a] == shape[a];) at[a] = 0;
    }
  }

  [[nodiscard]] Problem problem(const std::string& physics, const std::string& more = "") const {
    return parse_case(fmt::format("[mesh]\ncells = [3, 2]\nupper = [3, 2]\nrefine = 1\n{}\n[physics]\nforce = {}\n",
                                  more, physics),
                      (folder_ / "case.toml").string())
        .problem;
  }

  fs::path folder_;
};

/// The value at the middle of cell (i, j) of a mesh of 6 x 4, of two components.
double marked(int c, int j, int i) { return 100.0 * c + 10.0 * j + i; }

TEST_F(ForceFiles, HaveNumbersForCells) {
  write("f.npy", {2, 4, 6}, [](const std::vector<int>& at) { return marked(at[0], at[1], at[2]); });
  write("one.npy", {4, 6}, [](const std::vector<int>& at) { return marked(1, at[0], at[1]); });
  write("coarse.npy", {2, 3}, [](const std::vector<int>& at) { return marked(1, at[0], at[1]); });
  const Problem all = problem("{file = \"f.npy\"}");
  const Problem one = problem("[\"x\", {file = \"one.npy\"}]");
  const Problem coarse = problem("[0, {file = \"coarse.npy\", points = 1}]");
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 6; ++i) {
      for (const double shift : {0.05, 0.45}) {
        const Point x{0.5 * i + shift, 0.5 * j + 0.5 - shift, 0.0};
        for (int c = 0; c < 2; ++c) EXPECT_EQ(all.force[c](x), marked(c, j, i));
        EXPECT_EQ(one.force[0](x), x[0]);
        EXPECT_EQ(one.force[1](x), marked(1, j, i));
        EXPECT_EQ(coarse.force[1](x), marked(1, j / 2, i / 2));
      }
    }
  }
}

TEST_F(ForceFiles, HaveValuesAtGaussPoints) {
  const Quadrature rule = gauss(3);
  const auto function = [](int c, double x, double y) { return c == 0 ? x * x * y : 1.0 - y * y + x; };
  const auto coordinate = [&](int i) { return 0.5 * (i / 3 + rule.points[i % 3]); };
  write("f.npy", {2, 12, 18},
        [&](const std::vector<int>& at) { return function(at[0], coordinate(at[2]), coordinate(at[1])); });
  write("one.npy", {12, 18},
        [&](const std::vector<int>& at) { return function(1, coordinate(at[1]), coordinate(at[0])); });
  const Problem all = problem("{file = \"f.npy\", points = 3}");
  const Problem one = problem("[2, {file = \"one.npy\", points = 3}]");
  for (const Point& x : std::vector<Point>{{0.3, 0.2, 0.0}, {2.9, 0.71, 0.0}, {0.01, 1.99, 0.0}, {1.3, 1.1, 0.0}}) {
    for (int c = 0; c < 2; ++c) EXPECT_NEAR(all.force[c](x), function(c, x[0], x[1]), 1e-13);
    EXPECT_EQ(one.force[0](x), 2.0);
    EXPECT_NEAR(one.force[1](x), function(1, x[0], x[1]), 1e-13);
  }
}

TEST_F(ForceFiles, AreReadInThreeDimensions) {
  write("f.npy", {3, 2, 4, 6},
        [](const std::vector<int>& at) { return 1000.0 * at[0] + 100 * at[1] + 10 * at[2] + at[3]; });
  Mesh mesh = Mesh::unit(3, 1);
  mesh.upper = {3.0, 2.0, 1.0};
  mesh.cells = {3, 2, 1};
  const VectorField by_cell = read_field(mesh, {.file = folder_ / "f.npy"});
  mesh.refine = 0;
  const VectorField at_points = read_field(mesh, {.file = folder_ / "f.npy", .points = 2});
  const Quadrature rule = gauss(2);
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 6; ++i) {
        const Point middle{0.5 * i + 0.25, 0.5 * j + 0.25, 0.5 * k + 0.25};
        const Point at{i / 2 + rule.points[i % 2], j / 2 + rule.points[j % 2], k / 2 + rule.points[k % 2]};
        for (int c = 0; c < 3; ++c) {
          const double expected = 1000.0 * c + 100 * k + 10 * j + i;
          EXPECT_EQ(by_cell[c](middle), expected);
          EXPECT_NEAR(at_points[c](at), expected, 1e-10);
        }
      }
    }
  }
}

TEST_F(ForceFiles, WrongOnesAreNamed) {
  const auto zero = [](const std::vector<int>&) { return 0.0; };
  write("f.npy", {2, 4, 6}, zero);
  write("turned.npy", {6, 4, 2}, zero);
  write("one.npy", {4, 6}, zero);
  write("nan.npy", {4, 6}, [](const std::vector<int>& at) { return at[0] == 1 && at[1] == 2 ? std::nan("") : 0.0; });
  expect_error("[physics] force, line 7", [&] { static_cast<void>(problem("{file = \"turned.npy\"}")); });
  expect_error("turned.npy: the array is 6 x 4 x 2, expected [component, y, x] with 2 components",
               [&] { static_cast<void>(problem("{file = \"turned.npy\"}")); });
  expect_error("one.npy: the array is 4 x 6, expected [component, y, x]",
               [&] { static_cast<void>(problem("{file = \"one.npy\"}")); });
  expect_error("f.npy: the array is 2 x 4 x 6, expected [y, x]",
               [&] { static_cast<void>(problem("[{file = \"f.npy\"}, 0]")); });
  expect_error("one.npy: the array has 4 x 6 values, expected 8 x 12 with 2 points per direction in each cell",
               [&] { static_cast<void>(problem("[{file = \"one.npy\", points = 2}, 0]")); });
  expect_error("points: expected 1 to 16",
               [&] { static_cast<void>(problem("[{file = \"one.npy\", points = 17}, 0]")); });
  Mesh finer = Mesh::unit(2, 2);
  finer.cells = {3, 2, 1};
  expect_error("the array has 6 x 5 numbers in x and y, expected one for each cell of the mesh, 12 x 8", [&] {
    write("odd.npy", {5, 6}, zero);
    read_scalar_field(finer, {.file = folder_ / "odd.npy"});
  });
  write("empty.npy", {2, 0, 6}, zero);
  write("none.npy", {0, 6}, zero);
  expect_error("empty.npy: the array is empty", [&] { static_cast<void>(problem("{file = \"empty.npy\"}")); });
  expect_error("none.npy: the array is empty", [&] { static_cast<void>(problem("[{file = \"none.npy\"}, 0]")); });
  expect_error("missing.npy", [&] { static_cast<void>(problem("{file = \"missing.npy\"}")); });
  expect_error("[physics] force[1]",
               [&] { solve(problem("[0, {file = \"nan.npy\"}]", "[element]\norder = 2"), on_cpu()); });
}

TEST(RegionalForces, AreReadFromCases) {
  const std::string text = R"(
[mesh]
cells = [1, 1]
refine = 2
[physics]
force = [0, "-1"]
[[region]]
inside = "x < 0.5"
force = ["y", -2]
[[region]]
lower = [0, 0.5]
upper = [1, 1]
viscosity = 5
force = [0, 0]
)";
  const Problem problem = parse_case(text, "case.toml").problem;
  const VectorField force = force_field(problem);
  const auto at = [&](double x, double y) { return std::vector<double>{force[0]({x, y, 0.0}), force[1]({x, y, 0.0})}; };
  EXPECT_EQ(at(0.7, 0.25), (std::vector<double>{0.0, -1.0}));
  EXPECT_EQ(at(0.2, 0.25), (std::vector<double>{0.25, -2.0}));
  EXPECT_EQ(at(0.2, 0.75), (std::vector<double>{0.0, 0.0}));
  expect_error("expected `viscosity`, `mass` or `force`",
               [&] { parse_case("[mesh]\ncells = [1, 1]\n[[region]]\ninside = \"x\"\n", "case.toml"); });
  // What drives a permeability is one constant force.
  Problem periodic{.mesh = Mesh::unit(2, 2), .order = problem.order};
  for (Side& side : periodic.boundary.sides) side.kind = SideKind::periodic;
  periodic.force[0] = 1.0;
  periodic.mesh.cells = {3, 3, 1};
  periodic.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
  periodic.regions.push_back({.inside = ScalarField::expression("x < 0.5", 2), .force = VectorField{2.0}});
  const Solution flow = solve(periodic, on_cpu(1e-6)).solution;
  expect_error("force[0]", [&] { static_cast<void>(flow.permeability()); });
}

}  // namespace
}  // namespace solenoid
