/// \file
/// Flows on cells that are parallelepipeds: errors and iterations against figures of an independent implementation,
/// flows that are known exactly, and what is refused.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <optional>
#include <string>

#include "coarse_boxes.hpp"
#include "engine/engine.hpp"
#include "flows.hpp"
#include "problem/affine_map.hpp"
#include "problem/orders.hpp"
#include "sheared_flows.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"
#include "solenoid/permeability.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

using std::numbers::pi;
using test::LinearFlow;
using test::on_cpu;
using test::rhombus;
using test::some_edges;

/// Unit edges with these cosines between them: columns of the upper triangular Cholesky factor of the metric.
std::array<Point, 3> with_cosines(double c01, double c02, double c12) {
  const double y = std::sqrt(1.0 - c01 * c01);
  const double b = (c12 - c01 * c02) / y;
  return {Point{1, 0, 0}, Point{c01, y, 0}, Point{c02, b, std::sqrt(1.0 - c02 * c02 - b * b)}};
}

SolverOptions with_exact(const VectorField& velocity, const ScalarField& pressure, double rtol = 1e-11) {
  SolverOptions options = on_cpu(rtol);
  options.exact.velocity = velocity;
  options.exact.pressure = pressure;
  return options;
}

void expect_near(double expected, const std::optional<double>& actual, const std::string& what) {
  EXPECT_NEAR(actual.value(), expected, 0.02 * expected) << what;
}

TEST(ShearedCells, HaveTheErrorsOfTheTablesIn2D) {
  const VectorField velocity{
      ScalarField([](const Point& x) { return 3.1 * std::sin(2.3 * x[0] + 0.4) * std::cos(3.1 * x[1] + 0.2); }),
      ScalarField([](const Point& x) { return -2.3 * std::cos(2.3 * x[0] + 0.4) * std::sin(3.1 * x[1] + 0.2); })};
  const ScalarField pressure([](const Point& x) { return std::cos(2.0 * x[0] + 3.0 * x[1]); });
  const VectorField force{ScalarField([velocity](const Point& x) {
                            return 14.9 * velocity[0](x) - 2.0 * std::sin(2.0 * x[0] + 3.0 * x[1]);
                          }),
                          ScalarField([velocity](const Point& x) {
                            return 14.9 * velocity[1](x) - 3.0 * std::sin(2.0 * x[0] + 3.0 * x[1]);
                          })};
  struct Expected {
    double angle;
    int order;
    double velocity;
    double pressure;
  };
  for (const auto& [angle, order, u, p] :
       {Expected{90, 1, 1.20e-3, 1.23e-2}, Expected{90, 2, 6.99e-6, 9.65e-5}, Expected{90, 3, 8.11e-7, 1.07e-5},
        Expected{60, 1, 1.32e-3, 1.35e-1}, Expected{60, 2, 1.04e-5, 1.17e-3}, Expected{60, 3, 1.58e-6, 1.66e-4},
        Expected{45, 1, 1.38e-3, 3.18e-1}, Expected{45, 2, 1.12e-5, 2.57e-3}, Expected{45, 3, 1.72e-6, 3.74e-4}}) {
    if (!test::has_order(2, order)) continue;
    Problem problem{.mesh = Mesh::sheared(2, rhombus(angle), order == 3 ? 4 : 5), .order = order};
    problem.force = force;
    for (int side = 0; side < 4; ++side) problem.boundary.sides[side].data = velocity;
    const auto [solution, report] = solve(problem, with_exact(velocity, pressure));
    const std::string what = fmt::format("{} degrees, k = {}", angle, order);
    EXPECT_TRUE(report.converged) << what << ": " << report.reason;
    expect_near(u, report.errors.velocity, what + ", u");
    expect_near(p, report.errors.pressure, what + ", p");
    EXPECT_LE(solution.divergence_max(), 1e-11) << what;
  }
}

/// Two cycles on each level leave the velocity as good as solving does, measured against a finer mesh.
TEST(ShearedCells, AreGoodEnoughAfterFullMultigrid) {
  if (!test::has_order(2, 2)) GTEST_SKIP();
  const auto problem_on = [](int refine) {
    Problem problem{.mesh = Mesh::sheared(2, rhombus(60), refine), .order = 2};
    problem.force[0] = ScalarField([](const Point& x) { return std::sin(4.0 * x[1]) * std::cos(x[0]); });
    return problem;
  };
  const Solution fine = solve(problem_on(6), on_cpu()).solution;
  SolverOptions options = on_cpu();
  options.exact.velocity = fine.velocity_field();
  const double solved = solve(problem_on(4), options).report.errors.velocity.value();
  options.method = Method::fmg;
  options.cycles = 2;
  EXPECT_LE(solve(problem_on(4), options).report.errors.velocity.value(), 1.05 * solved);
}

TEST(ShearedCells, HaveTheErrorsOfTheTablesIn3D) {
  const auto component = [](int a, int b) {
    return ScalarField([=](const Point& x) { return std::sin(2.5 * x[a]) + std::cos(2.5 * x[b]); });
  };
  const VectorField velocity{component(2, 1), component(0, 2), component(1, 0)};
  const ScalarField pressure([](const Point& x) { return std::cos(x[0] + 2.0 * x[1] - x[2]); });
  VectorField force;
  for (int c = 0; c < 3; ++c) {
    const double slope = std::array{1.0, 2.0, -1.0}[c];
    force[c] =
        ScalarField([=](const Point& x) { return 6.25 * velocity[c](x) - slope * std::sin(x[0] + 2.0 * x[1] - x[2]); });
  }
  struct Expected {
    int order;
    int refine;
    double velocity;
    double pressure;
  };
  for (const auto& [order, refine, u, p] : {Expected{1, 3, 6.29e-3, 1.77e-1}, Expected{2, 2, 1.43e-3, 2.84e-2}}) {
    if (!test::has_order(3, order)) continue;
    Problem problem{.mesh = Mesh::sheared(3, with_cosines(0.5, 0.0, 0.0), refine), .order = order};
    problem.force = force;
    for (int side = 0; side < 6; ++side) problem.boundary.sides[side].data = velocity;
    const auto [solution, report] = solve(problem, with_exact(velocity, pressure));
    const std::string what = fmt::format("k = {}", order);
    EXPECT_TRUE(report.converged) << what << ": " << report.reason;
    expect_near(u, report.errors.velocity, what + ", u");
    expect_near(p, report.errors.pressure, what + ", p");
    EXPECT_LE(solution.divergence_max(), 1e-11) << what;
  }
}

// Iterations ---------------------------------------------------------------------------------------------------------

double iterations_of(const Problem& problem, Precision precision = Precision::full_double) {
  SolverOptions options = on_cpu(1e-8);
  options.random_load = 1;
  options.precision = precision;
  const Report report = solve(problem, options).report;
  EXPECT_TRUE(report.converged) << report.reason;
  return report.fractional_iterations;
}

TEST(ShearedCells, TakeFewIterationsIn2D) {
  struct Expected {
    double angle;
    std::array<double, 4> iterations;
  };
  for (const auto& [angle, iterations] : {Expected{90, {12, 6.0, 4.1, 3.4}}, Expected{75, {12, 6.8, 6.4, 6.6}},
                                          Expected{60, {14, 10, 11, 12}}, Expected{45, {22, 19, 18, 21}}}) {
    for (int order = 1; order <= 4; ++order) {
      if (!test::has_order(2, order)) continue;
      const Problem problem{.mesh = Mesh::sheared(2, rhombus(angle), 5), .order = order};
      const double taken = iterations_of(problem);
      const double mixed = iterations_of(problem, Precision::mixed);
      fmt::print("{} degrees, k = {}: {:.1f}, {:.1f}\n", angle, order, taken, mixed);
      const double most = iterations[order - 1] + (order == 1 ? 2.0 : 1.0);
      EXPECT_LE(taken, most) << angle << " degrees, k = " << order;
      EXPECT_LE(mixed, most + 0.5) << angle << " degrees, k = " << order;
    }
  }
}

TEST(ShearedCells, TakeFewIterationsIn3D) {
  struct Expected {
    const char* name;
    std::array<Point, 3> edges;
    std::array<double, 3> iterations;  // or 0: not known
  };
  const double bcc = -1.0 / 3.0;
  for (const auto& [name, edges, iterations] :
       {Expected{"cube", with_cosines(0, 0, 0), {8.4, 4.9, 3.2}},
        Expected{"one pair at 60", with_cosines(0.5, 0, 0), {11.3, 8.6, 10.2}},
        Expected{"all at 60", with_cosines(0.5, 0.5, 0.5), {13.2, 11.7, 14.5}},
        Expected{"all at 109.47", with_cosines(bcc, bcc, bcc), {11.9, 10.6, 0}}}) {
    for (int order = 1; order <= 3; ++order) {
      if (!test::has_order(3, order) || iterations[order - 1] == 0) continue;
      const Problem problem{.mesh = Mesh::sheared(3, edges, order == 3 ? 2 : 3), .order = order};
      const double taken = iterations_of(problem);
      fmt::print("{}, k = {}: {:.1f}\n", name, order, taken);
      EXPECT_LE(taken, iterations[order - 1] + (order == 1 ? 2.0 : 1.0)) << name << ", k = " << order;
    }
  }
}

/// Cells are coarsened by how far their faces are apart.
TEST(ShearedCells, TakeFewIterationsWhereTheyAreLong) {
  if (!test::has_order(2, 2)) GTEST_SKIP();
  for (const double aspect : {2.0, 4.0}) {
    auto edges = rhombus(60);
    edges[0][0] *= aspect;
    EXPECT_LE(iterations_of({.mesh = Mesh::sheared(2, edges, 5), .order = 2}), 11.0) << aspect;
  }
}

/// Odd numbers of cells, and more unknowns than are solved for directly: GMRES takes part, with the lowest-order scheme
/// whose viscous term has the weights of local problems. It takes no more iterations than a mesh with a small coarsest
/// level.
TEST(ShearedCells, TakeFewIterationsWhereTheCoarsestLevelIsLarge) {
  struct Large {
    int dim;
    std::array<Point, 3> edges;
    std::array<int, 3> cells;
    int refine;
    int halvings;                // of the nearest mesh from two cells on
    std::optional<int> outflow;  // side
  };
  const std::array<Point, 3> all_at_60 = with_cosines(0.5, 0.5, 0.5);
  for (const auto& [dim, edges, cells, refine, halvings, outflow] :
       {Large{2, rhombus(60), {65, 63, 1}, 0, 5, {}}, Large{2, rhombus(60), {33, 31, 1}, 1, 5, 1},
        Large{2, rhombus(30), {33, 31, 1}, 1, 5, {}}, Large{3, all_at_60, {9, 7, 5}, 0, 2, {}},
        Large{3, all_at_60, {9, 7, 5}, 0, 2, 4}, Large{3, all_at_60, {9, 7, 5}, 1, 3, {}}}) {
    for (const int order : {1, 2}) {
      if (!test::has_order(dim, order) || (dim == 2 && refine == 1 && order == 1)) continue;
      if (dim == 3 && refine == 1 && order == 2) continue;  // takes long
      Problem problem{.mesh = Mesh::sheared(dim, edges, refine), .order = order};
      if (outflow) problem.boundary.sides[*outflow].kind = SideKind::outflow;
      Problem small = problem;
      small.mesh.cells = {2, 2, dim == 3 ? 2 : 1};
      small.mesh.refine = halvings;
      problem.mesh.cells = cells;
      const std::string what = fmt::format("{}D, k = {}, refine {}", dim, order, refine);
      const double taken = iterations_of(problem, Precision::mixed);
      const double of_small = iterations_of(small, Precision::mixed);
      fmt::print("{}: {:.1f}, {:.1f}\n", what, taken, of_small);
      EXPECT_LE(taken, of_small + 1.0) << what;
      // What is found is known.
      const LinearFlow flow(dim);
      problem.force = LinearFlow::force();
      for (int side = 0; side < 2 * dim; ++side) {
        const bool open = outflow && *outflow == side;
        problem.boundary.sides[side].data =
            open ? flow.traction(test::Boxes(problem).normal(side), 1.0) : flow.velocity();
      }
      const auto [solution, report] = solve(problem, with_exact(flow.velocity(), LinearFlow::pressure()));
      EXPECT_TRUE(report.converged) << what << ": " << report.reason;
      EXPECT_LE(report.errors.velocity.value(), 1e-8) << what;
      EXPECT_LE(report.errors.pressure.value(), 1e-7) << what;
      EXPECT_LE(solution.divergence_max(), 1e-11) << what;
    }
  }
}

// Flows that are known exactly ---------------------------------------------------------------------------------------

TEST(ShearedCells, HaveLinearFlowsExactly) {
  for (const int dim : {2, 3}) {
    for (int order = 1; order <= (dim == 2 ? 3 : 2); ++order) {
      if (!test::has_order(dim, order)) continue;
      const LinearFlow flow(dim);
      for (int open = -1; open < 2 * dim; ++open) {
        Problem problem{.mesh = Mesh::sheared(dim, some_edges(dim), dim == 2 ? 2 : 1), .order = order};
        problem.mesh.lower = {0.2, -0.1, dim == 3 ? 0.3 : 0.0};
        problem.mesh.cells = {2, 1, 1};
        if (dim == 2) problem.mesh.holes = {{{1, 0, 0}, {2, 1, 1}}};
        problem.viscosity = 0.6;
        problem.force = LinearFlow::force();
        problem.boundary.holes.data = flow.velocity();
        for (int side = 0; side < 2 * dim; ++side) {
          Side& condition = problem.boundary.sides[side];
          condition.data = flow.velocity();
          if (side != open) continue;
          condition.kind = SideKind::outflow;
          condition.data = flow.traction(test::Boxes(problem).normal(side), 0.6);
        }
        if (open == 1 && dim == 2) continue;  // there is the hole
        const auto [solution, report] = solve(problem, with_exact(flow.velocity(), LinearFlow::pressure(), 1e-13));
        const std::string what = fmt::format("{}D, k = {}, open side {}", dim, order, open);
        EXPECT_LE(report.errors.velocity.value(), 1e-10) << what << ": " << report.reason;
        EXPECT_LE(report.errors.pressure.value(), 1e-9) << what;
        EXPECT_LE(solution.divergence_max(), 1e-12) << what;
        // At points, as they lie in space.
        const AffineMap map(dim, problem.mesh.lower, *problem.mesh.edges);
        const std::vector<Point> points{map.at({0.21, 0.33, dim == 3 ? 0.4 : 0.0}),
                                        map.at({0.55, 0.7, dim == 3 ? 0.1 : 0.0})};
        const auto velocities = solution.velocity(points);
        const auto gradients = solution.velocity_gradient(points);
        for (std::size_t i = 0; i < points.size(); ++i) {
          for (int c = 0; c < dim; ++c) {
            EXPECT_NEAR(velocities[i][c], flow.velocity()[c](points[i]), 1e-9) << what;
            for (int a = 0; a < dim; ++a) EXPECT_NEAR(gradients[i][c][a], flow.gradient()[c][a], 1e-8) << what;
          }
        }
        EXPECT_TRUE(std::isnan(solution.velocity(std::vector<Point>{map.at({-0.1, 0.3, 0.1})})[0][0])) << what;
      }
    }
  }
}

/// Integrals are those over the cells as they lie in space: of a uniform flow along two slip walls.
TEST(ShearedCells, HaveUniformFlowsAlongSlipWalls) {
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, 1)) continue;
    Problem problem{.mesh = Mesh::sheared(dim, some_edges(dim), 2), .order = 1};
    const Point along = some_edges(dim)[0];
    const VectorField velocity{ScalarField(along[0]), ScalarField(along[1]), ScalarField(along[2])};
    for (int side = 0; side < 2 * dim; ++side) {
      problem.boundary.sides[side].kind = side < 2 ? SideKind::velocity : SideKind::slip;
      if (side < 2) problem.boundary.sides[side].data = velocity;
    }
    const auto [solution, report] = solve(problem, with_exact(velocity, ScalarField(0.0)));
    EXPECT_LE(report.errors.velocity.value(), 1e-10) << dim << "D";
    double square = 0.0;
    double volume = AffineMap(dim, {}, some_edges(dim)).jacobian();
    for (int a = 0; a < dim; ++a) {
      square += along[a] * along[a];
      volume *= length_along(problem.mesh, a);
      EXPECT_NEAR(solution.mean_velocity()[a], along[a], 1e-10);
    }
    EXPECT_NEAR(solution.kinetic_energy(), 0.5 * square * volume, 1e-10);
  }
}

/// A shear flow between walls, periodic along them and driven by a force: parabola over the height.
TEST(ShearedCells, HaveChannelFlow) {
  if (!test::has_order(2, 2)) GTEST_SKIP();
  Problem problem{.mesh = Mesh::sheared(2, {Point{1, 0, 0}, Point{0.5, 0.8, 0}, Point{}}, 3), .order = 2};
  problem.boundary = {};
  for (const int side : {0, 1}) problem.boundary.sides[side].kind = SideKind::periodic;
  problem.force[0] = 2.0;
  const VectorField velocity{ScalarField([](const Point& x) { return x[1] * (0.8 - x[1]); }), ScalarField(0.0)};
  const auto [solution, report] = solve(problem, with_exact(velocity, ScalarField(0.0), 1e-12));
  EXPECT_LE(report.errors.velocity.value(), 1e-10);
  EXPECT_LE(report.errors.pressure.value(), 1e-9);
}

/// A mass term: u = grad-free part of a force alpha u.
TEST(ShearedCells, HaveAMassTerm) {
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, 1)) continue;
    const LinearFlow flow(dim);
    Problem problem{.mesh = Mesh::sheared(dim, some_edges(dim), 2), .order = 1};
    problem.mass = 40.0;
    for (int c = 0; c < dim; ++c) {
      const ScalarField u = flow.velocity()[c];
      const double slope = LinearFlow::force()[c].constant().value();
      problem.force[c] = ScalarField([=](const Point& x) { return 40.0 * u(x) + slope; });
    }
    for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].data = flow.velocity();
    const Report report = solve(problem, with_exact(flow.velocity(), LinearFlow::pressure(), 1e-13)).report;
    EXPECT_LE(report.errors.velocity.value(), 1e-10) << dim << "D: " << report.reason;
    EXPECT_LE(report.errors.pressure.value(), 1e-9) << dim << "D";
  }
}

// Solutions ----------------------------------------------------------------------------------------------------------

/// A flow past a hole, with a part of a side that is open.
Problem with_an_opening(int order, int refine) {
  Problem problem{.mesh = Mesh::sheared(2, some_edges(2), refine), .order = order};
  problem.mesh.lower = {0.3, 0.2, 0.0};
  problem.mesh.cells = {2, 2, 1};
  problem.mesh.holes = {{{0, 0, 0}, {1, 1, 1}}};
  const AffineMap map(2, problem.mesh.lower, *problem.mesh.edges);
  const double half = 0.5 * length_along(problem.mesh, 1);
  const ScalarField where([=](const Point& x) { return map.pulled_back(x)[1] > half ? 1.0 : 0.0; });
  problem.boundary.regions.push_back({1, where, {SideKind::outflow}});
  problem.force[0] = ScalarField([](const Point& x) { return std::sin(5.0 * x[1]); });
  return problem;
}

TEST(ShearedCells, AreSavedAndStartedFrom) {
  if (!test::has_order(2, 1) || !test::has_order(2, 2)) GTEST_SKIP();
  const auto file = std::filesystem::path(testing::TempDir()) / "sheared.h5";
  const Solution solution = solve(with_an_opening(2, 3), on_cpu()).solution;
  solution.save(file);
  const Solution loaded = load_solution(file);
  std::filesystem::remove(file);
  EXPECT_EQ(loaded.problem().mesh.edges, solution.problem().mesh.edges);
  EXPECT_EQ(test::relative_difference(loaded, solution), 0.0);
  const std::vector<Point> points{{0.9, 0.8, 0.0}, {0.7, 0.9, 0.0}};
  EXPECT_EQ(loaded.velocity(points), solution.velocity(points));
  EXPECT_LE(solve(with_an_opening(2, 3), loaded, on_cpu(1e-8)).report.iterations, 1);
  // From coarser cells of a lower order.
  const Solution coarse = solve(with_an_opening(1, 2), on_cpu()).solution;
  const auto [again, report] = solve(with_an_opening(2, 3), coarse, on_cpu());
  EXPECT_TRUE(report.converged) << report.reason;
  EXPECT_LE(test::relative_difference(solution, again), 1e-8);
  Problem other = with_an_opening(2, 3);
  (*other.mesh.edges)[1][0] += 0.1;
  EXPECT_THROW(solve(other, loaded, on_cpu()), InputError);
  other = with_an_opening(2, 3);
  other.mesh.edges.reset();
  other.boundary.regions.clear();
  EXPECT_THROW(solve(other, loaded, on_cpu()), InputError);
}

/// As many iterations to the same flow.
TEST(ShearedCells, AreTheSameOnAGpu) {
  if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
  for (const int dim : {2, 3}) {
    for (const int order : orders_for(DeviceChoice::cuda, dim, EquationKind::stokes)) {
      if (order == 0 || order > 3) continue;
      Problem problem{.mesh = Mesh::sheared(dim, some_edges(dim), dim == 2 ? 4 : 2), .order = order, .mass = 3.0};
      problem.force[0] = ScalarField([](const Point& x) { return std::sin(5.0 * x[1]); });
      problem.boundary.sides[1].kind = SideKind::outflow;
      problem.boundary.sides[2].kind = SideKind::slip;
      for (const Precision precision : {Precision::full_double, Precision::mixed}) {
        SolverOptions options = on_cpu(1e-9);
        options.precision = precision;
        const Result expected = solve(problem, options);
        options.device = DeviceChoice::cuda;
        const Result result = solve(problem, options);
        EXPECT_NEAR(result.report.iterations, expected.report.iterations, 1) << dim << "D, k = " << order;
        EXPECT_LE(test::relative_difference(result.solution, expected.solution), 1e-7) << dim << "D, k = " << order;
        EXPECT_LE(result.solution.divergence_max(), 1e-10) << dim << "D, k = " << order;
      }
    }
  }
}

TEST(ShearedCells, HavePicturesAndFiles) {
  if (!test::has_order(2, 1)) GTEST_SKIP();
  for (const int dim : {2, 3}) {
    if (!test::has_order(dim, 1)) continue;
    Problem problem{.mesh = Mesh::sheared(dim, some_edges(dim), 2), .order = 1};
    problem.force[0] = ScalarField([](const Point& x) { return std::sin(5.0 * x[1]); });
    const Solution solution = solve(problem, on_cpu(1e-6)).solution;
    const auto folder = std::filesystem::path(testing::TempDir());
    for (const auto* const name : {"sheared.png", "sheared.vtu"}) {
      const auto file = folder / name;
      if (file.extension() == ".png") {
        write_picture(solution, file);
      } else {
        write_vtu(solution, file);
      }
      EXPECT_GT(std::filesystem::file_size(file), 1000U);
      std::filesystem::remove(file);
    }
  }
}

/// More iterations want more memory, which is known beforehand.
TEST(ShearedCells, TakeTheMemoryThatIsExpected) {
  for (const int dim : {2, 3}) {
    for (const int order : {1, 2}) {
      if (!test::has_order(dim, order)) continue;
      for (const double angle : {75.0, 60.0, 45.0}) {
        if (dim == 3 && angle < 60.0) continue;
        std::array<Point, 3> edges = rhombus(angle);
        if (dim == 3) edges[2] = {0.0, 0.0, 1.0};
        Problem problem{.mesh = Mesh::sheared(dim, edges, dim == 2 ? 6 : 4), .order = order};
        problem.force[0] = ScalarField::expression("sin(3*y)", dim);
        const SolverOptions options = test::on_cpu(1e-8);
        const auto expected = static_cast<double>(estimate(problem, options).bytes_needed);
        const Report report = solve(problem, options).report;
        EXPECT_TRUE(report.converged) << report.reason;
        EXPECT_NEAR(expected / static_cast<double>(report.memory_bytes), 1.0, 0.1)
            << dim << "D, k = " << order << ", " << angle << " degrees, " << report.iterations << " iterations";
      }
    }
  }
}

// What is refused ----------------------------------------------------------------------------------------------------

template <class Run>
void expect_refused(const Run& run, const std::string& what) {
  try {
    run();
    ADD_FAILURE() << "expected: " << what;
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}

TEST(ShearedCells, RefuseWhatIsNotThere) {
  if (!test::has_order(2, 1)) GTEST_SKIP();
  const Problem sheared{.mesh = Mesh::sheared(2, rhombus(60), 2), .order = 1};
  const auto refused = [&](const auto& change, const std::string& what) {
    Problem problem = sheared;
    change(problem);
    expect_refused([&] { solve(problem, on_cpu()); }, what);
  };
  refused([](Problem& p) { (*p.mesh.edges)[1] = {2, 0, 0}; }, "determinant");
  refused([](Problem& p) { std::swap((*p.mesh.edges)[0], (*p.mesh.edges)[1]); }, "right-handed");
  refused([](Problem& p) { (*p.mesh.edges)[1] = {1, 0.05, 0}; }, "smallest angle");
  refused([](Problem& p) { (*p.mesh.edges)[0] = {0, 0, 0}; }, "mesh.edges[0]");
  refused([](Problem& p) { (*p.mesh.edges)[0][2] = 1.0; }, "plane");
  if (test::has_order(2, 0)) refused([](Problem& p) { p.order = 0; }, "at least 1");
  if (test::has_order(2, 1, EquationKind::poisson)) {
    refused([](Problem& p) { p.equation = EquationKind::poisson; }, "Stokes' equation");
  }
  refused(
      [](Problem& p) {
        p.mesh.cells = {801, 1, 1};
        p.mesh.refine = 0;
      },
      "refine = 1");
}

}  // namespace
}  // namespace solenoid
