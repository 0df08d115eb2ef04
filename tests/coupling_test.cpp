/// \file
/// Data that others give a flow between steps, and the velocity that they get: against the same data as functions, and
/// against quadrature of velocities at points.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "element/basis.hpp"
#include "flows.hpp"
#include "mesh/grid.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/checkpoint.hpp"
#include "solenoid/error.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {
namespace {

/// A function at the points of an array.
std::vector<double> sampled(const ArrayPoints& at, const VectorField& field) {
  const auto axes = axes_of(at);
  std::vector<double> values;
  for (const double x : axes[0]) {
    for (const double y : axes[1]) {
      for (const double z : axes[2]) {
        for (int c = 0; c < at.mesh.dim; ++c) values.push_back(field[c]({x, y, z}));
      }
    }
  }
  return values;
}

VectorField expressions(const std::vector<std::string>& texts, const Parameters& parameters = {}) {
  VectorField field;
  for (std::size_t c = 0; c < texts.size(); ++c) {
    field[c] = ScalarField::expression(texts[c], static_cast<int>(texts.size()), "", parameters);
  }
  return field;
}

/// The L2 norm of the difference of velocities over that of the second.
double difference(const Solution& of, const Solution& from) {
  return of.velocity_error(from.velocity_field()) / std::sqrt(2.0 * from.kinetic_energy());
}

class Coupling : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    for (const int dim : {2, 3}) {
      const auto orders = available_orders(dim);
      if (std::find(orders.begin(), orders.end(), 2) == orders.end()) GTEST_SKIP() << "order 2 is not in this build";
    }
  }

  /// A channel with a hole that touches neither end: velocity, slip and outflow; cells are no cubes.
  static Problem channel(int dim) {
    Problem problem;
    problem.mesh.dim = dim;
    problem.mesh.lower = {-1.0, 0.5, 0.0};
    problem.mesh.upper = {2.0, 2.0, 1.0};
    problem.mesh.cells = {4, 3, dim == 3 ? 2 : 1};
    problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
    problem.mesh.refine = 1;
    problem.viscosity = 0.05;
    problem.convection = true;
    problem.boundary.sides[0].data = inflow(dim);
    problem.boundary.sides[1].kind = SideKind::outflow;
    problem.boundary.sides[3].kind = SideKind::slip;
    if (dim == 3) problem.boundary.sides[4].kind = problem.boundary.sides[5].kind = SideKind::periodic;
    return problem;
  }
  /// Where many steps are taken.
  static Problem small_channel(int dim) {
    Problem problem = channel(dim);
    problem.mesh.cells[2] = 1;
    return problem;
  }
  static VectorField inflow(int dim) {
    return expressions(dim == 3 ? std::vector<std::string>{"(y-0.5)*(2-y)", "0.3*y", "0.2"}
                                : std::vector<std::string>{"(y-0.5)*(2-y)", "0.3*y"});
  }
  static TimeStepper stepper(const Problem& problem, TimeScheme scheme = TimeScheme::sbdf3, double step = 0.02) {
    TimeOptions time;
    time.scheme = scheme;
    time.step = step;
    return {problem, time, options()};
  }
  static SolverOptions options() {
    SolverOptions options;
    options.threads = 1;
    options.device = DeviceChoice::cpu;
    options.precision = Precision::full_double;
    return options;
  }
  static Solution moved(int dim) {
    TimeStepper flow = stepper(channel(dim));
    for (int i = 0; i < 4; ++i) flow.step();
    return flow.solution();
  }
};

/// Between Gauss points the field is the polynomial through them, cell by cell.
TEST_P(Coupling, FieldsOfArraysArePolynomials) {
  const int dim = GetParam();
  const Mesh mesh = channel(dim).mesh;
  const VectorField cubic =
      dim == 3 ? expressions({"x^3*y-z^3", "y^3+x*z^2", "1+x*y*z"}) : expressions({"x^3*y-y^2", "y^3+x^2"});
  const std::vector<Point> points{{-0.9, 0.6, 0.1}, {0.33, 0.71, 0.9}, {1.99, 1.99, 0.4}, {0.7, 0.9, 0.3}};
  for (const int m : {4, 5}) {
    const VectorField field = field_of({mesh, m}, sampled({mesh, m}, cubic), "force");
    for (const Point& point : points) {
      for (int c = 0; c < dim; ++c) EXPECT_NEAR(field[c](point), cubic[c](point), 1e-12);
    }
  }
  // By cell: the values of the middles.
  const VectorField by_cell = field_of({mesh}, sampled({mesh}, cubic), "force");
  const double h = 3.0 / 8.0;
  Point middle{-1.0 + 4.5 * h, 0.5 + 0.25 * 1.5, dim == 3 ? 0.375 : 0.0};
  middle[1] = 0.5 + 1.5 / 6.0 * 2.5;
  for (const double shift : {-0.49, 0.0, 0.49}) {
    const Point inside{middle[0] + shift * h, middle[1] - shift * 0.25, middle[2] + (dim == 3 ? shift * 0.25 : 0.0)};
    for (int c = 0; c < dim; ++c) EXPECT_NEAR(by_cell[c](inside), cubic[c](middle), 1e-13);
  }
}

/// A force that is a polynomial is the same as array and as expression; as numbers in cells it is that to first order.
TEST_P(Coupling, ForcesOfArraysAreThoseOfFunctions) {
  const int dim = GetParam();
  Problem problem = small_channel(dim);
  const VectorField force = dim == 3 ? expressions({"x*y+z^2", "1-x^2", "x*z"}) : expressions({"x*y", "1-x^2"});
  const auto with = [&](const std::vector<double>& values, int m) {
    TimeStepper flow = stepper(small_channel(dim));
    flow.set_force(field_of({problem.mesh, m}, values, "force"));
    for (int i = 0; i < 4; ++i) flow.step();
    return flow.solution();
  };
  problem.force = force;
  TimeStepper expected = stepper(problem);
  for (int i = 0; i < 4; ++i) expected.step();
  const ArrayPoints three{problem.mesh, 3};
  EXPECT_LT(difference(with(sampled(three, force), 3), expected.solution()), 1e-12);
  const double by_cell = difference(with(sampled({problem.mesh}, force), 1), expected.solution());
  EXPECT_GT(by_cell, 1e-8);
  EXPECT_LT(by_cell, 2e-3);
  // A constant is one by cell, too.
  problem.force = {0.3, -0.2, dim == 3 ? 0.1 : 0.0};
  TimeStepper constant = stepper(problem);
  for (int i = 0; i < 4; ++i) constant.step();
  EXPECT_LT(difference(with(sampled({problem.mesh}, problem.force), 1), constant.solution()), 1e-12);
}

/// Set at the time of each step's end, data are those of an expression in the time, whatever the scheme's steps are.
TEST_P(Coupling, DataOfEachStepAreThoseOfATime) {
  const int dim = GetParam();
  Problem problem = small_channel(dim);
  const auto at_time = [&](double t, bool of_side) {
    const Parameters now{{"t", t}};
    if (of_side) {
      return dim == 3 ? expressions({"(1+0.5*sin(20*t))*(y-0.5)*(2-y)", "0.3*y*t", "0.2*t"}, now)
                      : expressions({"(1+0.5*sin(20*t))*(y-0.5)*(2-y)", "0.3*y*t"}, now);
    }
    return dim == 3 ? expressions({"x*t", "t*t*y", "t*z"}, now) : expressions({"x*t", "t*t*y"}, now);
  };
  problem.force = at_time(0.0, false);
  problem.boundary.sides[0].data = at_time(0.0, true);
  TimeStepper expected = stepper(problem);
  problem.force = {};
  problem.boundary.sides[0].data = {inflow(dim)[0], 0.0, 0.0};
  TimeStepper flow = stepper(problem);
  const ArrayPoints in_cells{problem.mesh, 3};
  const ArrayPoints on_side{problem.mesh, 3, 0};
  // Until steps have one length, which begins after 18.
  for (int i = 0; i < 22; ++i) {
    const double t = flow.time() + flow.next_step();
    flow.set_force(field_of(in_cells, sampled(in_cells, at_time(t, false)), "force"));
    flow.set_boundary(0, field_of(on_side, sampled(on_side, at_time(t, true)), "xmin"));
    EXPECT_EQ(flow.step().time, t);
    expected.step();
    EXPECT_LT(flow.solution().divergence_max(), 1e-12);
  }
  EXPECT_LT(difference(flow.solution(), expected.solution()), 1e-12);
}

TEST_P(Coupling, TractionsAndReactionsAreThoseOfTheProblem) {
  const int dim = GetParam();
  Problem problem = channel(dim);
  TimeStepper flow = stepper(problem);
  problem.boundary.sides[1].data = dim == 3 ? expressions({"y", "0.2*y", "0.1*z"}) : expressions({"y", "0.2*y"});
  problem.mass = 3.0;
  TimeStepper expected = stepper(problem);
  const ArrayPoints on_side{problem.mesh, 2, 1};
  flow.set_boundary(1, field_of(on_side, sampled(on_side, problem.boundary.sides[1].data), "xmax"));
  flow.set_reaction(3.0);
  for (int i = 0; i < 4; ++i) {
    flow.step();
    expected.step();
  }
  EXPECT_LT(difference(flow.solution(), expected.solution()), 1e-12);
}

/// Runge-Kutta schemes take data for all their stages.
TEST_P(Coupling, RungeKuttaSchemesTakeData) {
  const int dim = GetParam();
  Problem problem = small_channel(dim);
  problem.boundary.sides[0].data = {};
  const double step = dim == 2 ? 0.02 : 0.05;
  TimeStepper flow = stepper(problem, TimeScheme::ars233, step);
  problem.boundary.sides[0].data = inflow(dim);
  problem.force =
      expressions(dim == 3 ? std::vector<std::string>{"x", "y*y", "1"} : std::vector<std::string>{"x", "y*y"});
  flow.set_boundary(0, problem.boundary.sides[0].data);
  flow.set_force(problem.force);
  TimeStepper expected = stepper(problem, TimeScheme::ars233, step);
  // The beginning differs: it has been made divergence-free with other velocities on the side.
  for (int i = 0; i < (dim == 2 ? 60 : 16); ++i) {
    flow.step();
    expected.step();
  }
  EXPECT_LT(flow.solution().divergence_max(), 1e-12);
  EXPECT_LT(difference(flow.solution(), expected.solution()), 3e-2);
}

/// Against quadrature of the velocity at points of the faces, and against the fluxes through planes.
TEST_P(Coupling, FluxesAreThoseOfTheVelocity) {
  const int dim = GetParam();
  const Solution flow = moved(dim);
  const auto fluxes = face_fluxes(flow);
  const Mesh& mesh = flow.problem().mesh;
  const auto& extent = flow.grid().extent();
  const Quadrature rule = gauss(4);
  for (int a = 0; a < dim; ++a) {
    std::array<int, 3> count = extent;
    ++count[a];
    ASSERT_EQ(std::ssize(fluxes[a]), std::int64_t{count[0]} * count[1] * count[2]);
    Point h{};
    for (int b = 0; b < dim; ++b) h[b] = (mesh.upper[b] - mesh.lower[b]) / extent[b];
    std::vector<double> planes(count[a], 0.0);
    std::size_t number = 0;
    for (int i = 0; i < count[0]; ++i) {
      for (int j = 0; j < count[1]; ++j) {
        for (int k = 0; k < count[2]; ++k, ++number) {
          const std::array<int, 3> at{i, j, k};
          planes[at[a]] += fluxes[a][number];
          std::vector<Point> points{mesh.lower};
          std::vector<double> weights{1.0};
          for (int b = 0; b < dim; ++b) {
            std::vector<Point> next;
            std::vector<double> of_next;
            for (std::size_t p = 0; p < points.size(); ++p) {
              for (std::size_t q = 0; q < (b == a ? 1 : rule.points.size()); ++q) {
                Point point = points[p];
                point[b] += h[b] * (at[b] + (b == a ? 0.0 : rule.points[q]));
                next.push_back(point);
                of_next.push_back(weights[p] * (b == a ? 1.0 : h[b] * rule.weights[q]));
              }
            }
            points = next;
            weights = of_next;
          }
          const std::vector<Point> u = flow.velocity(points);
          double expected = 0.0;
          for (std::size_t p = 0; p < u.size(); ++p) expected += weights[p] * u[p][a];
          EXPECT_NEAR(fluxes[a][number], std::isnan(expected) ? 0.0 : expected, 1e-14) << a << i << j << k;
        }
      }
    }
    for (int i = 0; i < count[a]; ++i) EXPECT_NEAR(planes[i], flow.flux(a, mesh.lower[a] + i * h[a]), 1e-13);
  }
}

TEST_P(Coupling, WhatFlowsOutOfACellFlowsIn) {
  const int dim = GetParam();
  const Solution flow = moved(dim);
  const auto fluxes = face_fluxes(flow);
  const auto& n = flow.grid().extent();
  double most = 0.0;
  double largest = 0.0;
  for (int i = 0; i < n[0]; ++i) {
    for (int j = 0; j < n[1]; ++j) {
      for (int k = 0; k < n[2]; ++k) {
        double out = 0.0;
        for (int a = 0; a < dim; ++a) {
          std::array<int, 3> count = n;
          ++count[a];
          std::array<int, 3> at{i, j, k};
          const auto flux = [&] { return fluxes[a][(std::size_t(at[0]) * count[1] + at[1]) * count[2] + at[2]]; };
          out -= flux();
          ++at[a];
          out += flux();
          largest = std::max(largest, std::abs(flux()));
        }
        most = std::max(most, std::abs(out));
      }
    }
  }
  EXPECT_GT(largest, 1e-3);
  EXPECT_LT(most, 1e-15);
}

TEST_P(Coupling, VelocitiesAreThoseAtPoints) {
  const int dim = GetParam();
  const Solution flow = moved(dim);
  for (const int m : {1, 3}) {
    const auto axes = axes_of({flow.problem().mesh, m});
    const std::vector<double> values = velocity_at(flow, m);
    std::vector<Point> points;
    for (const double x : axes[0]) {
      for (const double y : axes[1]) {
        for (const double z : axes[2]) points.push_back({x, y, z});
      }
    }
    ASSERT_EQ(values.size(), points.size() * dim);
    const std::vector<Point> u = flow.velocity(points);
    int outside = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      outside += std::isnan(u[i][0]) ? 1 : 0;
      for (int c = 0; c < dim; ++c) {
        if (std::isnan(u[i][0])) {
          EXPECT_TRUE(std::isnan(values[i * dim + c]));
        } else {
          EXPECT_NEAR(values[i * dim + c], u[i][c], 1e-13);
        }
      }
    }
    EXPECT_EQ(outside, std::pow(2 * m, dim));  // the hole is one box
  }
}

/// A flow of a checkpoint wants its data again, and has the bits of one that never stopped.
TEST_P(Coupling, CheckpointsAskForDataAgain) {
  if (!solution_files_unavailable().empty()) GTEST_SKIP() << solution_files_unavailable();
  const int dim = GetParam();
  Problem problem = channel(dim);
  const ArrayPoints in_cells{problem.mesh};
  const ArrayPoints on_side{problem.mesh, 3, 0};
  const VectorField force = field_of(
      in_cells, sampled(in_cells, dim == 3 ? expressions({"x", "y", "z"}) : expressions({"y", "x*x"})), "force");
  const VectorField side = field_of(on_side, sampled(on_side, inflow(dim)), "xmin");
  problem.boundary.sides[0].data = {};
  TimeStepper flow = stepper(problem);
  flow.set_force(force);
  flow.set_boundary(0, side);
  flow.set_reaction(0.5);
  for (int i = 0; i < 5; ++i) flow.step();
  const auto file = std::filesystem::temp_directory_path() / fmt::format("coupling_{}.h5", dim);
  flow.checkpoint()->save(file);
  const Checkpoint checkpoint = load_checkpoint(file);
  std::filesystem::remove(file);
  EXPECT_EQ(checkpoint.set, (std::vector<std::string>{"force", "mass", "xmin"}));
  TimeOptions time;
  time.step = 0.02;
  TimeStepper next(problem, time, options(), checkpoint);
  const auto expect_refusal = [&](const std::string& names) {
    try {
      next.step();
      FAIL() << "it went on without its data";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("before which " + names + " had been set"), std::string::npos)
          << error.what();
    }
  };
  expect_refusal("force, mass, xmin");
  EXPECT_EQ(next.checkpoint()->set, checkpoint.set);
  next.set_boundary(0, side);
  expect_refusal("force, mass");
  next.set_reaction(0.5);
  next.set_force(force);
  for (int i = 0; i < 3; ++i) {
    flow.step();
    next.step();
  }
  const std::vector<double> expected = flow.solution().unknowns();
  EXPECT_EQ(next.solution().unknowns(), expected);
}

/// A flow that was steady is so no more once it is given other data.
TEST_P(Coupling, OtherDataMoveASteadyFlow) {
  Problem problem = small_channel(GetParam());
  problem.boundary.sides[0].data = {};
  TimeOptions time;
  time.step = 0.02;
  time.steady = 1e-6;
  TimeStepper flow(problem, time, options());
  flow.step();
  EXPECT_TRUE(flow.steady());
  flow.set_boundary(0, inflow(GetParam()));
  EXPECT_FALSE(flow.steady());
  flow.advance(0.1);
  EXPECT_GT(flow.solution().kinetic_energy(), 1e-4);
  EXPECT_GE(flow.time(), 0.1);
}

TEST_P(Coupling, WrongDataAreNamed) {
  const int dim = GetParam();
  Problem problem = channel(dim);
  const auto expect_error = [](const std::string& message, const auto& call) {
    try {
      call();
      ADD_FAILURE() << "no error: " << message;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  };
  const Mesh& mesh = problem.mesh;
  expect_error(dim == 3 ? "force: expected 576 numbers, 3 components at 8 x 6 x 4 points, got 7"
                        : "force: expected 96 numbers, 2 components at 8 x 6 x 1 points, got 7",
               [&] { field_of({mesh}, std::vector<double>(7), "force"); });
  expect_error("points: expected 1 to 16 per direction in a cell, got 0", [&] { axes_of({mesh, 0}); });
  expect_error("side: expected 0 to", [&] { axes_of({mesh, 1, 6}); });
  TimeStepper flow = stepper(problem);
  expect_error("ymax: nothing is prescribed on a side of the kind slip", [&] { flow.set_boundary(3, {}); });
  expect_error("side: expected 0 to", [&] { flow.set_boundary(2 * dim, {}); });
  expect_error("mass: must be zero or positive, and finite, got -1", [&] { flow.set_reaction(-1.0); });
  // Numbers in holes play no part, others have to be finite.
  std::vector<double> values = velocity_at(flow.solution());
  EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); }));
  flow.set_force(field_of({mesh}, values, "force"));
  EXPECT_EQ(flow.step().number, 1);
  values[0] = std::numeric_limits<double>::quiet_NaN();
  flow.set_force(field_of({mesh}, values, "force"));
  expect_error("force[0]: the value is nan at the point", [&] { flow.step(); });
  flow.set_force({});
  EXPECT_EQ(flow.step().number, 2);
  // What flows in must flow out.
  problem.boundary.sides[1] = {};
  problem.boundary.sides[0].data = {};
  TimeStepper closed = stepper(problem);
  closed.set_boundary(0, {1.0, 0.0, 0.0});
  expect_error("the prescribed velocities do not balance", [&] { closed.step(); });
  closed.set_boundary(0, {});
  EXPECT_EQ(closed.step().number, 1);
}

INSTANTIATE_TEST_SUITE_P(Dimensions, Coupling, testing::Values(2, 3),
                         [](const auto& info) { return fmt::format("{}D", info.param); });

}  // namespace
}  // namespace solenoid
