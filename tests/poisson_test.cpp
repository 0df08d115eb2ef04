/// \file
/// Poisson's equation: the operator, whole solves against known solutions, iteration counts, and what is refused.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine.hpp"
#include "flows.hpp"
#include "levels.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"
#include "solver/hierarchy.hpp"

namespace solenoid {
namespace {

using test::Polynomial;

bool has_order(int dim, int order) { return test::has_order(dim, order, EquationKind::poisson); }

/// The problem with a known solution and its derivatives prescribed.
struct Known {
  Problem problem;
  ScalarField exact;
};

/// u on all sides of the unit square or cube; f = alpha u - nu laplacian(x).
Known known(int dim, int order, int refine, const std::function<double(const Point&)>& u,
            const std::function<double(const Point&)>& laplacian, double nu = 1.0, double alpha = 0.0) {
  Known known{{.mesh = Mesh::unit(dim, refine),
               .order = order,
               .viscosity = nu,
               .mass = alpha,
               .equation = EquationKind::poisson},
              u};
  known.problem.force[0] =
      std::function<double(const Point&)>([=](const Point& x) { return alpha * u(x) - nu * laplacian(x); });
  for (int side = 0; side < 2 * dim; ++side) known.problem.boundary.sides[side].data[0] = u;
  known.problem.boundary.holes.data[0] = u;
  return known;
}

/// sin(2 x + 1) cos(3 y) exp(z), zero on no side.
Known smooth(int dim, int order, int refine) {
  const auto u = [dim](const Point& x) {
    return std::sin(2 * x[0] + 1) * std::cos(3 * x[1]) * (dim == 3 ? std::exp(x[2]) : 1.0);
  };
  return known(dim, order, refine, u, [=](const Point& x) { return (dim == 3 ? -12.0 : -13.0) * u(x); });
}

SolverOptions options_with(double rtol) {
  SolverOptions options;
  options.rtol = rtol;
  options.device = DeviceChoice::cpu;
  options.threads = 1;
  return options;
}

TEST(Poisson, OperatorIsSymmetricAndPositive) {
  const auto engine = make_cpu_engine(2);
  for (const int dim : {2, 3}) {
    for (const auto& mesh : test::poisson_mesh_cases(dim)) {
      for (const int order : {1, 2, 3}) {
        if (!has_order(dim, order)) continue;
        const Level level = mesh.level(order);
        const auto kernels = engine->kernels_double(level, LocalSolverKind::direct);
        auto x = test::random_vector(level, 1);
        const auto y = test::random_vector(level, 2);
        std::vector<double> ax(x.size());
        std::vector<double> ay(x.size());
        kernels->apply(y.data(), ay.data());
        kernels->project(x.data());
        kernels->apply(x.data(), ax.data());
        const double yax = kernels->dot(y.data(), ax.data());
        EXPECT_NEAR(yax, kernels->dot(x.data(), ay.data()), 1e-12 * std::abs(kernels->dot(y.data(), ay.data())));
        EXPECT_GT(kernels->dot(x.data(), ax.data()), 1e-3 * kernels->dot(x.data(), x.data())) << mesh.name;
      }
    }
  }
}

/// Polynomials of the element are solved to rounding, on any mesh, with prescribed values of any kind.
TEST(Poisson, PolynomialsAreExact) {
  for (const int dim : {2, 3}) {
    for (const int order : available_orders(dim, EquationKind::poisson)) {
      if (order < 1 || order > (dim == 2 ? 5 : 2)) continue;
      const Polynomial u{{1.0, {order, order, dim == 3 ? order : 0}}, {-0.7, {1, 0, 0}}, {0.3, {0, 1, 0}}, {0.1, {}}};
      const auto laplacian = [&](const Point& x) {
        double sum = 0.0;
        for (int a = 0; a < dim; ++a) sum += u.derivative(a).derivative(a)(x);
        return sum;
      };
      Known exact = known(dim, order, 1, u, laplacian, 0.7, 1.3);
      exact.problem.mesh.cells = {3, 4, dim == 3 ? 2 : 1};
      exact.problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
      const auto [solution, report] = solve(exact.problem, options_with(1e-12));
      EXPECT_TRUE(report.converged) << dim << "D k = " << order << ": " << report.reason;
      EXPECT_LT(solution.value_error(exact.exact), 1e-10) << dim << "D k = " << order;
    }
  }
}

TEST(Poisson, ErrorsFallWithOrderKPlusOne) {
  for (const int dim : {2, 3}) {
    for (const int order : available_orders(dim, EquationKind::poisson)) {
      if (order < 1 || order > (dim == 2 ? 5 : 2)) continue;
      double coarse = 0.0;
      const int finest = dim == 3 ? 3 : order > 3 ? 3 : 5;
      for (int refine = finest - 1; refine <= finest; ++refine) {
        const Known exact = smooth(dim, order, refine);
        const auto [solution, report] = solve(exact.problem, options_with(1e-11));
        EXPECT_TRUE(report.converged);
        const double error = solution.value_error(exact.exact);
        if (refine == finest) {
          EXPECT_GT(std::log2(coarse / error), order + 0.8) << dim << "D k = " << order;
        }
        coarse = error;
      }
    }
  }
}

TEST(Poisson, AllMethodsAndPrecisionsAgree) {
  const int dim = has_order(3, 2) ? 3 : 2;
  const int order = has_order(dim, 2) ? 2 : available_orders(dim, EquationKind::poisson).back();
  const Known exact = smooth(dim, order, 3);
  const double error = solve(exact.problem, options_with(1e-10)).solution.value_error(exact.exact);
  for (const auto smoother : {SmootherKind::multiplicative, SmootherKind::additive}) {
    for (const auto precision : {Precision::mixed, Precision::full_double}) {
      for (const auto method : {Method::gmres, Method::vcycle, Method::fmg}) {
        for (const auto side : {PreconditionerSide::right, PreconditionerSide::left}) {
          if (smoother == SmootherKind::additive && method != Method::gmres) continue;
          SolverOptions options = options_with(1e-9);
          options.multigrid.smoother = smoother;
          options.precision = precision;
          options.method = method;
          options.side = side;
          const auto [solution, report] = solve(exact.problem, options);
          EXPECT_TRUE(report.converged) << report.reason;
          // One pass of full multigrid leaves a quarter of the discretisation error here.
          EXPECT_NEAR(solution.value_error(exact.exact), error, (method == Method::fmg ? 0.3 : 0.01) * error);
        }
      }
    }
  }
}

/// Table 2 of the paper at 1e-6, on smaller meshes, f = 1: 2 iterations with the exact residual; 4 for Q_4 and 5 for
/// Q_7 with the fused smoother; each within one.
TEST(Poisson, IterationsOfThePaper) {
  for (const int order : {2, 4, 7}) {
    if (!has_order(3, order)) continue;
    Problem problem{.mesh = Mesh::unit(3, 3), .order = order, .equation = EquationKind::poisson};
    problem.force[0] = 1.0;
    SolverOptions options = options_with(1e-6);
    EXPECT_LE(solve(problem, options).report.iterations, 3) << "k = " << order;
    options.multigrid.patch = PatchProblem::galerkin;
    EXPECT_LE(solve(problem, options).report.iterations, 3) << "k = " << order;
    if (order == 2) continue;
    options.multigrid.patch = PatchProblem::fused;
    const Report fused = solve(problem, options).report;
    EXPECT_TRUE(fused.converged);
    EXPECT_NEAR(fused.iterations, order == 4 ? 4 : 5, 1) << "k = " << order;
  }
}

/// Where an edge of a hole juts into the domain, its traces lie in no patch that is cut.
TEST(Poisson, FusedPatchesCorrectTheEdgesOfHoles) {
  for (const int order : {1, 2}) {
    if (!has_order(3, order)) continue;
    for (const int refine : {1, 2}) {
      Problem problem{.mesh = Mesh::unit(3, refine), .order = order, .equation = EquationKind::poisson};
      problem.mesh.cells = {2, 3, 2};
      problem.mesh.holes = {{{0, 1, 1}, {1, 2, 2}}};
      SolverOptions options = options_with(1e-8);
      options.random_load = 1;
      options.multigrid.patch = PatchProblem::fused;
      const Report report = solve(problem, options).report;
      EXPECT_TRUE(report.converged) << "k = " << order << ", refine = " << refine;
      EXPECT_LE(report.iterations, 15) << "k = " << order << ", refine = " << refine;
    }
  }
}

TEST(Poisson, IterationsStaySmallOnUnionsOfBoxesAndStretchedCells) {
  for (const int order : {1, 2, 3}) {
    if (!has_order(2, order)) continue;
    Problem problem = smooth(2, order, 4).problem;
    const int most = order == 1 ? 12 : 7;
    const auto iterations = [&] {
      SolverOptions options = options_with(1e-8);
      options.random_load = 1;
      const Report report = solve(problem, options).report;
      return report.converged ? report.iterations : 1000;
    };
    problem.mesh.cells = {2, 2, 1};
    problem.mesh.upper = {2.0, 2.0, 1.0};
    problem.mesh.holes = {{{1, 1, 0}, {2, 2, 1}}};
    EXPECT_LE(iterations(), most) << "L, k = " << order;
    problem.mesh = Mesh::unit(2, 5);
    problem.mesh.upper[0] = 4.0;
    EXPECT_LE(iterations(), most) << "stretched, k = " << order;
    problem.mesh = Mesh::unit(2, 5);
    problem.boundary.sides[0].kind = problem.boundary.sides[1].kind = SideKind::periodic;
    EXPECT_LE(iterations(), most) << "periodic in x, k = " << order;
    problem.boundary.sides[2].kind = problem.boundary.sides[3].kind = SideKind::periodic;
    EXPECT_LE(iterations(), most) << "periodic, k = " << order;
    // More coarse boxes than can be solved directly.
    problem = smooth(2, order, 1).problem;
    problem.mesh.cells = {21, 25, 1};
    problem.mesh.upper = {21.0, 25.0, 1.0};
    problem.mesh.holes = {{{5, 5, 0}, {9, 11, 1}}};
    EXPECT_LE(iterations(), most) << "many boxes, k = " << order;
  }
}

TEST(Poisson, PeriodicDomainsHaveAMeanOfZero) {
  if (!has_order(2, 3)) GTEST_SKIP() << "the order is not in this build";
  const double pi = std::acos(-1.0);
  const auto u = [pi](const Point& x) { return std::sin(2 * pi * x[0]) * std::cos(4 * pi * x[1]); };
  Known exact = known(2, 3, 4, u, [=](const Point& x) { return -20 * pi * pi * u(x); });
  for (int side = 0; side < 4; ++side) exact.problem.boundary.sides[side] = {SideKind::periodic, {}};
  const auto [solution, report] = solve(exact.problem, options_with(1e-8));
  EXPECT_TRUE(report.converged);
  EXPECT_LT(solution.value_error(exact.exact), 2e-4);
  exact.problem.force[0] = 1.0;
  EXPECT_THROW(solve(exact.problem, options_with(1e-8)), InputError);
  exact.problem.mass = 2.0;
  EXPECT_NEAR(solve(exact.problem, options_with(1e-8)).solution.value(std::vector<Point>{{0.3, 0.3, 0.0}})[0], 0.5,
              1e-7);
}

TEST(Poisson, WhatDoesNotApplyIsRefused) {
  const int order = available_orders(2, EquationKind::poisson).back();
  const Problem problem = smooth(2, order, 2).problem;
  for (const SideKind kind : {SideKind::slip, SideKind::outflow}) {
    Problem wrong = problem;
    wrong.boundary.sides[1].kind = kind;
    EXPECT_THROW(validate(wrong), InputError);
  }
  SolverOptions options;
  options.multigrid.local_solver = LocalSolverKind::cg;
  EXPECT_THROW(solve(problem, options), InputError);
  options = {};
  options.multigrid.patch = PatchProblem::fused;
  EXPECT_THROW(solve(Problem{.mesh = problem.mesh, .order = available_orders(2).back()}, options), InputError);

  const Solution solution = solve(problem, {}).solution;
  const std::vector<Point> points{{0.2, 0.3, 0.0}, {2.0, 0.0, 0.0}};
  EXPECT_NEAR(solution.value(points)[0], std::sin(1.4) * std::cos(0.9), 1e-2);
  EXPECT_TRUE(std::isnan(solution.value(points)[1]));
  EXPECT_THROW(static_cast<void>(solution.velocity(points)), InputError);
  EXPECT_THROW(static_cast<void>(solution.divergence_max()), InputError);
}

}  // namespace
}  // namespace solenoid
