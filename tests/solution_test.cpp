#include "solenoid/solution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <random>
#include <span>

#include "base/host_vector.hpp"
#include "element/basis.hpp"
#include "interpolate.hpp"
#include "solenoid/error.hpp"

namespace solenoid {
namespace {

using test::Function;
using test::Functions;
using test::interpolate;

Problem problem(int dim, int order, std::vector<IndexBox> holes = {}) {
  Problem p;
  p.mesh.dim = dim;
  p.mesh.lower = {-0.5, 0.25, dim == 3 ? 1.0 : 0.0};
  p.mesh.upper = {1.0, 2.25, dim == 3 ? 1.75 : 1.0};
  p.mesh.cells = {3, 2, dim == 3 ? 2 : 1};
  p.mesh.refine = 1;
  p.mesh.holes = std::move(holes);
  p.order = order;
  p.viscosity = 0.7;
  return p;
}

double monomial(double x, int degree) { return std::pow(x, degree); }

// Component c: a polynomial of degree k + 1 in x_c and k in the others; the pressure has degree k.
struct Polynomials {
  int dim;
  int k;
  double velocity(int c, const Point& x) const {
    double value = 0.5 + monomial(x[c], k + 1) - x[c];
    for (int a = 0; a < dim; ++a) value += (a == c ? 0.3 : monomial(x[a], k) * (a + 0.4) * x[c]);
    return value;
  }
  double derivative(int c, int a, const Point& x) const {
    if (a != c) return k == 0 ? 0.0 : k * monomial(x[a], k - 1) * (a + 0.4) * x[c];
    double value = (k + 1) * monomial(x[c], k) - 1.0;
    for (int b = 0; b < dim; ++b) value += b == c ? 0.0 : monomial(x[b], k) * (b + 0.4);
    return value;
  }
  double pressure(const Point& x) const {
    double value = 1.25;
    for (int a = 0; a < dim; ++a) value += (a + 1) * monomial(x[a], k);
    return value;
  }
  Functions velocities() const {
    Functions f;
    for (int c = 0; c < dim; ++c) f[c] = [*this, c](const Point& x) { return velocity(c, x); };
    return f;
  }
  Solution solution(const Problem& p) const {
    return interpolate(p, velocities(), [*this](const Point& x) { return pressure(x); });
  }
};

VectorField fields(const Functions& f) {
  VectorField field;
  for (int c = 0; c < 3; ++c) {
    if (f[c]) field[c] = f[c];
  }
  return field;
}

std::vector<Point> random_points(const Problem& p, int count) {
  std::mt19937 random(7);
  std::vector<Point> points(count);
  for (Point& x : points) {
    for (int a = 0; a < p.mesh.dim; ++a) {
      x[a] = std::uniform_real_distribution(p.mesh.lower[a], p.mesh.upper[a])(random);
    }
  }
  return points;
}

// Integral of f over the mesh's cells with a rule that is exact for high degrees.
double integrate(const Solution& s, const Function& f) {
  const Quadrature rule = gauss(12);
  const Grid& grid = s.grid();
  const int dim = grid.dim();
  double sum = 0.0;
  for (const Record cell : grid.layout().owned_cells()) {
    for (int i = 0; i < power(12, dim); ++i) {
      Point x = grid.corner(cell);
      double weight = 1.0;
      for (int a = 0, rest = i; a < dim; ++a, rest /= 12) {
        x[a] += grid.widths(cell)[a] * rule.points[rest % 12];
        weight *= grid.widths(cell)[a] * rule.weights[rest % 12];
      }
      sum += weight * f(x);
    }
  }
  return sum;
}

class SolutionOf : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int dim() const { return std::get<0>(GetParam()); }
  int order() const { return std::get<1>(GetParam()); }
};

TEST_P(SolutionOf, PolynomialsOfTheSpaceIsExactAtPoints) {
  const Problem p = problem(dim(), order(), {{{1, 0, 0}, {2, 1, 1}}});
  const Polynomials exact{dim(), order()};
  const Solution s = exact.solution(p);
  const std::vector<Point> points = random_points(p, 300);
  const auto u = s.velocity(points);
  const auto pressure = s.pressure(points);
  const auto gradient = s.velocity_gradient(points);
  int outside = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (s.find_cell(points[i]) < 0) {
      ++outside;
      EXPECT_TRUE(std::isnan(u[i][0]) && std::isnan(u[i][1]) && std::isnan(pressure[i]));
      EXPECT_TRUE(std::isnan(gradient[i][0][1]));
      continue;
    }
    EXPECT_NEAR(pressure[i], exact.pressure(points[i]), 1e-10);
    for (int c = 0; c < dim(); ++c) {
      EXPECT_NEAR(u[i][c], exact.velocity(c, points[i]), 1e-10);
      for (int a = 0; a < dim(); ++a) {
        EXPECT_NEAR(gradient[i][c][a], exact.derivative(c, a, points[i]), 1e-8) << c << " " << a;
      }
    }
  }
  EXPECT_GT(outside, 0);
}

TEST_P(SolutionOf, PolynomialsOfTheSpaceHasExactIntegrals) {
  const Problem p = problem(dim(), order(), {{{1, 0, 0}, {2, 1, 1}}});
  const Polynomials exact{dim(), order()};
  const Solution s = exact.solution(p);
  const double energy = integrate(s, [&](const Point& x) {
    double sum = 0.0;
    for (int c = 0; c < dim(); ++c) sum += 0.5 * std::pow(exact.velocity(c, x), 2);
    return sum;
  });
  const double dissipation = integrate(s, [&](const Point& x) {
    double sum = 0.0;
    for (int c = 0; c < dim(); ++c) {
      for (int a = 0; a < dim(); ++a) sum += p.viscosity * std::pow(exact.derivative(c, a, x), 2);
    }
    return sum;
  });
  EXPECT_NEAR(s.kinetic_energy() / energy, 1.0, 1e-12);
  EXPECT_NEAR(s.dissipation() / dissipation, 1.0, 1e-11);
  EXPECT_LT(s.velocity_error(fields(exact.velocities())), 1e-10 * std::sqrt(energy));
  EXPECT_LT(s.pressure_error({[&](const Point& x) { return exact.pressure(x) + 3.0; }}), 1e-10);
}

TEST_P(SolutionOf, AFieldHasItsFluxThroughEveryPlane) {
  const Problem p = problem(dim(), order());
  const Polynomials exact{dim(), order()};
  const Solution s = exact.solution(p);
  const Quadrature rule = gauss(12);
  for (int axis = 0; axis < dim(); ++axis) {
    const double lower = p.mesh.lower[axis];
    const double length = p.mesh.upper[axis] - lower;
    for (const double t : {0.0, 0.123, 0.5, 0.75, 1.0}) {
      double flux = 0.0;
      for (int i = 0; i < power(12, dim() - 1); ++i) {
        Point x{};
        x[axis] = lower + t * length;
        double weight = 1.0;
        for (int turn = 1, rest = i; turn < dim(); ++turn, rest /= 12) {
          const int a = (axis + turn) % dim();
          x[a] = p.mesh.lower[a] + (p.mesh.upper[a] - p.mesh.lower[a]) * rule.points[rest % 12];
          weight *= (p.mesh.upper[a] - p.mesh.lower[a]) * rule.weights[rest % 12];
        }
        flux += weight * exact.velocity(axis, x);
      }
      EXPECT_NEAR(s.flux(axis, lower + t * length), flux, 1e-10 * (1.0 + std::abs(flux))) << axis << " " << t;
    }
    EXPECT_EQ(s.flux(axis, lower - 0.1), 0.0);
    EXPECT_THROW(static_cast<void>(s.flux(axis, std::nan(""))), InputError);
  }
  EXPECT_THROW((void)s.flux(dim(), 0.0), InputError);
}

TEST_P(SolutionOf, CellEvaluationAgreesWithPointEvaluation) {
  const Problem p = problem(dim(), order());
  const Solution s = Polynomials{dim(), order()}.solution(p);
  const Grid& grid = s.grid();
  const std::array<std::vector<double>, 3> xi{{{0.1, 0.7, 0.9}, {0.2, 0.6}, {0.3, 0.4, 0.5, 0.8}}};
  std::vector<double> u;
  std::vector<double> pressure;
  std::vector<double> gradient;
  const int cell = grid.layout().owned_cells().size() / 2;
  s.evaluate_cell(cell, xi, u, pressure);
  s.evaluate_cell_gradient(cell, xi, gradient);
  std::vector<Point> points;
  for (int l = 0; l < (dim() == 3 ? 4 : 1); ++l) {
    for (int j = 0; j < 2; ++j) {
      for (int i = 0; i < 3; ++i) {
        const std::array<double, 3> at{xi[0][i], xi[1][j], xi[2][l]};
        Point x = grid.corner(cell);
        for (int a = 0; a < dim(); ++a) x[a] += grid.widths(cell)[a] * at[a];
        points.push_back(x);
        EXPECT_EQ(s.find_cell(x), cell);
      }
    }
  }
  ASSERT_EQ(pressure.size(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::span<const Point> point(&points[i], 1);
    EXPECT_NEAR(pressure[i], s.pressure(point)[0], 1e-12);
    for (int c = 0; c < dim(); ++c) {
      EXPECT_NEAR(u[i * dim() + c], s.velocity(point)[0][c], 1e-12);
      for (int a = 0; a < dim(); ++a) {
        EXPECT_NEAR(gradient[(i * dim() + c) * dim() + a], s.velocity_gradient(point)[0][c][a], 1e-10);
      }
    }
  }
}

/// Of a gradient G: curl, (|W|^2 - |S|^2) / 2 by its symmetric and antisymmetric parts, nu |G|^2; and integrals of
/// these.
TEST_P(SolutionOf, PolynomialsHasTheirFlowFields) {
  const Problem p = problem(dim(), order(), {{{1, 0, 0}, {2, 1, 1}}});
  const Polynomials exact{dim(), order()};
  const Solution s = exact.solution(p);
  const auto gradient_at = [&](const Point& x) {
    Gradient g{};
    for (int c = 0; c < dim(); ++c) {
      for (int a = 0; a < dim(); ++a) g[c][a] = exact.derivative(c, a, x);
    }
    return g;
  };
  const std::vector<Point> points = random_points(p, 100);
  const auto vorticity = s.flow_field(FlowField::vorticity, points);
  const auto q = s.flow_field(FlowField::q, points);
  const auto dissipation = s.flow_field(FlowField::dissipation, points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (s.find_cell(points[i]) < 0) {
      EXPECT_TRUE(std::isnan(vorticity[i][2]) && std::isnan(q[i][0]) && std::isnan(dissipation[i][0]));
      continue;
    }
    const Gradient g = gradient_at(points[i]);
    double symmetric = 0.0;
    double antisymmetric = 0.0;
    for (int c = 0; c < 3; ++c) {
      for (int a = 0; a < 3; ++a) {
        symmetric += 0.25 * (g[c][a] + g[a][c]) * (g[c][a] + g[a][c]);
        antisymmetric += 0.25 * (g[c][a] - g[a][c]) * (g[c][a] - g[a][c]);
      }
    }
    EXPECT_NEAR(q[i][0], 0.5 * (antisymmetric - symmetric), 1e-7 * (1.0 + symmetric));
    EXPECT_NEAR(dissipation[i][0], p.viscosity * (antisymmetric + symmetric), 1e-7 * (1.0 + symmetric));
    const Point curl{g[2][1] - g[1][2], g[0][2] - g[2][0], g[1][0] - g[0][1]};
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(vorticity[i][c], curl[c], 1e-8);
  }
  double square = 0.0;
  const Quadrature rule = gauss(order() + 3);
  const int n = order() + 3;
  for (const Record cell : s.grid().layout().owned_cells()) {
    const Point corner = s.grid().corner(cell);
    const Point widths = s.grid().widths(cell);
    for (int point = 0; point < (dim() == 3 ? n * n * n : n * n); ++point) {
      const std::array<int, 3> i{point % n, point / n % n, point / n / n};
      Point x = corner;
      double weight = 1.0;
      for (int a = 0; a < dim(); ++a) {
        x[a] += widths[a] * rule.points[i[a]];
        weight *= widths[a] * rule.weights[i[a]];
      }
      const Gradient g = gradient_at(x);
      const Point curl{g[2][1] - g[1][2], g[0][2] - g[2][0], g[1][0] - g[0][1]};
      square += weight * (curl[0] * curl[0] + curl[1] * curl[1] + curl[2] * curl[2]);
    }
  }
  EXPECT_NEAR(s.enstrophy(), 0.5 * square, 1e-9 * (1.0 + square));
}

TEST_P(SolutionOf, ADivergenceFreeFieldHasNoDivergence) {
  const Problem p = problem(dim(), order());
  const Functions curl{[](const Point& x) { return std::sin(x[0]) * std::cos(x[1]); },
                       [](const Point& x) { return -std::cos(x[0]) * std::sin(x[1]); },
                       [](const Point& x) { return std::sin(x[0] + x[1]); }};
  const Function pressure = [](const Point& x) { return std::exp(x[0]); };
  EXPECT_LT(interpolate(p, curl, pressure, order() + 12).divergence_max(), 1e-11);
  const Functions source{[](const Point& x) { return x[0]; }, [](const Point&) { return 0.0; },
                         [](const Point&) { return 0.0; }};
  // div u = 1, |u| at most 1, and the smallest cell size.
  const Solution s = interpolate(p, source, pressure);
  const double h = dim() == 3 ? 0.1875 : 0.25;
  EXPECT_NEAR(s.divergence_max() * s.max_speed(), h, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Orders, SolutionOf, testing::Combine(testing::Values(2, 3), testing::Values(0, 1, 2, 4)),
                         [](const auto& info) {
                           return "d" + std::to_string(std::get<0>(info.param)) + "k" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(Solution, ErrorsConvergeWithOrderKPlus1) {
  const Functions u{[](const Point& x) { return std::sin(3 * x[0]) * std::cos(3 * x[1]); },
                    [](const Point& x) { return -std::cos(3 * x[0]) * std::sin(3 * x[1]); }};
  const Function p = [](const Point& x) { return std::cos(2 * x[0] + x[1]); };
  for (int order = 0; order <= 3; ++order) {
    std::array<double, 2> velocity{};
    std::array<double, 2> pressure{};
    for (int level = 0; level < 2; ++level) {
      Problem q = problem(2, order);
      q.mesh.refine = 3 + level;
      const Solution s = interpolate(q, u, p, order + 6);
      velocity[level] = s.velocity_error(fields(u));
      pressure[level] = s.pressure_error({p});
    }
    EXPECT_NEAR(std::log2(velocity[0] / velocity[1]), order + 1, 0.15);
    EXPECT_NEAR(std::log2(pressure[0] / pressure[1]), order + 1, 0.15);
  }
}

TEST(Solution, PressureErrorKeepsTheMeanWithAnOutflowSide) {
  Problem p = problem(2, 1);
  const Functions zero{[](const Point&) { return 0.0; }, [](const Point&) { return 0.0; }};
  const Function one = [](const Point&) { return 1.0; };
  EXPECT_NEAR(interpolate(p, zero, one).pressure_error({0.0}), 0.0, 1e-14);
  p.boundary.sides[1].kind = SideKind::outflow;
  EXPECT_NEAR(interpolate(p, zero, one).pressure_error({0.0}), std::sqrt(3.0), 1e-13);
}

TEST(Solution, PressureErrorHasNoCancellation) {
  const Problem p = problem(2, 1);
  const Functions zero{[](const Point&) { return 0.0; }, [](const Point&) { return 0.0; }};
  const Solution s = interpolate(p, zero, [](const Point&) { return 1e6; });
  // A fluctuation of 1e-3 on a mean of 1e6: its norm on (-1/2, 1) x (1/4, 9/4) is 1e-3 sqrt(9/8).
  const double error = s.pressure_error({[](const Point& x) { return 1e-3 * (x[0] - 0.25); }});
  EXPECT_NEAR(error, 1e-3 * std::sqrt(2.0 * 1.5 * 1.5 * 1.5 / 12.0), 1e-9);
}

TEST(Solution, FindsCellsArithmetically) {
  const Problem p = problem(2, 0, {{{1, 0, 0}, {2, 1, 1}}});  // the hole is (0, 1/2) x (1/4, 5/4)
  const Solution s = Polynomials{2, 0}.solution(p);
  const Grid& grid = s.grid();
  EXPECT_EQ(s.find_cell({-0.5, 0.25, 0}), grid.at({0, 0, 0}));
  EXPECT_EQ(s.find_cell({1.0, 2.25, 0}), grid.at({5, 3, 0}));   // the upper corner belongs to the last cell
  EXPECT_EQ(s.find_cell({-0.25, 0.3, 0}), grid.at({1, 0, 0}));  // a face belongs to the cell above it ...
  EXPECT_EQ(s.find_cell({0.0, 0.3, 0}), grid.at({1, 0, 0}));    // ... unless that is a hole
  EXPECT_EQ(s.find_cell({0.5, 0.3, 0}), grid.at({4, 0, 0}));
  EXPECT_EQ(s.find_cell({0.25, 1.25, 0}), grid.at({3, 2, 0}));
  EXPECT_EQ(s.find_cell({0.2, 0.5, 0}), -1);
  EXPECT_EQ(s.find_cell({-0.51, 0.5, 0}), -1);
  EXPECT_EQ(s.find_cell({0.2, 2.26, 0}), -1);
  EXPECT_EQ(s.find_cell({std::nan(""), 0.5, 0}), -1);
  EXPECT_EQ(s.find_cell({1e300, 0.5, 0}), -1);
}

TEST(Solution, PeriodicDirectionsShareHatsButDoNotWrapPoints) {
  Problem p = problem(2, 2);
  p.boundary.sides[0].kind = p.boundary.sides[1].kind = SideKind::periodic;
  const double wave = 2.0 * std::numbers::pi / 1.5;
  const Functions u{[=](const Point& x) { return std::sin(wave * x[0]); }, [](const Point&) { return 1.0; }};
  const Solution s = interpolate(
      p, u, [](const Point&) { return 0.0; }, 8);
  const std::vector<Point> points{{-0.5, 1.0, 0}, {1.0, 1.0, 0}, {1.1, 1.0, 0}};
  const auto values = s.velocity(points);
  EXPECT_NEAR(values[0][0], values[1][0], 1e-13);
  EXPECT_TRUE(std::isnan(values[2][0]));
  EXPECT_NEAR(s.flux(0, -0.5), s.flux(0, 1.0), 1e-13);
}

TEST(Solution, FluxPassesAroundAHole) {
  const Problem p = problem(2, 1, {{{1, 0, 0}, {2, 1, 1}}});
  const Functions u{[](const Point&) { return 1.0; }, [](const Point&) { return 0.0; }};
  const Solution s = interpolate(p, u, [](const Point&) { return 0.0; });
  EXPECT_NEAR(s.flux(0, -0.25), 2.0, 1e-13);
  EXPECT_NEAR(s.flux(0, 0.2), 1.0, 1e-13);
  EXPECT_NEAR(s.flux(0, 0.0), 2.0, 1e-13);  // the faces of the hole have a cell on one side
  EXPECT_NEAR(s.flux(0, 0.5), 2.0, 1e-13);
}

// Interpolation and solutions as data --------------------------------------------------------------------------------

double largest_difference(std::span<const double> a, std::span<const double> b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

/// With a hole, a periodic direction and an outflow side.
std::vector<Problem> various_problems() {
  std::vector<Problem> all;
  for (const int dim : {2, 3}) {
    for (const int order : {0, 1, 2, 4}) {
      all.push_back(problem(dim, order));
      all.push_back(problem(dim, order, {{{1, 0, 0}, {2, 1, 1}}}));
      all.back().boundary.sides[1].kind = SideKind::outflow;
      all.push_back(problem(dim, order));
      all.back().boundary.sides[2].kind = all.back().boundary.sides[3].kind = SideKind::periodic;
    }
  }
  return all;
}

/// Periodic in y.
const Functions smooth{
    [](const Point& x) { return std::sin(2 * x[0] + x[2]) * std::cos(std::numbers::pi * x[1]); },
    [](const Point& x) { return std::exp(0.3 * x[0]) * std::sin(std::numbers::pi * x[1]) + x[2]; },
    [](const Point& x) { return x[0] * std::cos(x[2]); },
};
double smooth_pressure(const Point& x) { return std::cos(x[0]) * std::sin(std::numbers::pi * x[1]) + x[2] * x[2]; }

TEST(Interpolate, IsThatByMomentsOneByOne) {
  for (const Problem& p : various_problems()) {
    const Solution found = solenoid::interpolate(p, fields(smooth), ScalarField(smooth_pressure));
    const Solution expected = test::interpolate(p, smooth, smooth_pressure);
    EXPECT_LE(largest_difference(found.coefficients(), expected.coefficients()), 1e-13) << p.mesh.dim << p.order;
  }
}

TEST(Interpolate, IsTheProjectionOfPoissonsValue) {
  for (const int dim : {2, 3}) {
    for (const int order : {0, 1, 3}) {
      Problem p = problem(dim, order, {{{1, 0, 0}, {2, 1, 1}}});
      p.equation = EquationKind::poisson;
      const Polynomials polynomials{dim, order};
      const ScalarField field(
          std::function<double(const Point&)>([&](const Point& x) { return polynomials.pressure(x); }));
      EXPECT_LE(interpolate(p, field).value_error(field), 1e-13) << dim << order;
    }
  }
}

TEST(Interpolate, TakesTheFieldsOfTheEquation) {
  Problem p = problem(2, 1);
  EXPECT_THROW(interpolate(p, ScalarField(1.0)), InputError);
  p.equation = EquationKind::poisson;
  EXPECT_THROW(interpolate(p, VectorField{1.0, 1.0}), InputError);
  p.viscosity = -1.0;
  EXPECT_THROW(interpolate(p, ScalarField(1.0)), InputError);
}

/// A solution is data on its own mesh, and on a finer one, without a loss.
TEST(SolutionAsData, InterpolatesToItself) {
  for (const Problem& p : various_problems()) {
    const Solution s = test::interpolate(p, smooth, smooth_pressure);
    const Solution again = interpolate(p, s.velocity_field(), s.pressure_field());
    EXPECT_LE(largest_difference(again.coefficients(), s.coefficients()), 1e-12) << p.mesh.dim << p.order;

    if (p.mesh.dim == 3 && p.order > 2) continue;  // takes long
    Problem fine = p;
    fine.mesh.refine = 2;
    const Solution finer = interpolate(fine, s.velocity_field(), s.pressure_field());
    EXPECT_LE(finer.velocity_error(s.velocity_field()), 1e-12);
    EXPECT_LE(finer.pressure_error(s.pressure_field()), 1e-12);
    EXPECT_GT(finer.velocity_error({}), 0.1);
  }
}

/// At points, on grids inside of cells and on grids that touch faces.
TEST(SolutionAsData, HasItsValues) {
  for (const int dim : {2, 3}) {
    const Problem p = problem(dim, 2, {{{1, 0, 0}, {2, 1, 1}}});
    const Solution s = test::interpolate(p, smooth, smooth_pressure);
    const std::vector<double> x{0.9, 0.6, -0.3, -0.45, 0.7};
    const std::vector<double> inside{2.1, 1.4, 1.9};
    const std::vector<double> touching{2.1, 2.25, 1.25};
    const std::vector<double> z = dim == 3 ? std::vector<double>{1.1, 1.3} : std::vector<double>{0.0};
    for (const auto& y : {inside, touching}) {
      std::vector<Point> points;
      for (const double c : z) {
        for (const double b : y) {
          for (const double a : x) points.push_back({a, b, c});
        }
      }
      const auto velocity = s.velocity(points);
      const auto pressure = s.pressure(points);
      std::vector<double> found(points.size());
      for (int c = 0; c < dim; ++c) {
        s.velocity_field()[c].evaluate(Axes{x, y, z}, found);
        for (std::size_t i = 0; i < points.size(); ++i) EXPECT_NEAR(found[i], velocity[i][c], 1e-13);
        s.velocity_field()[c].evaluate(points, found);
        for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(found[i], velocity[i][c]);
      }
      s.pressure_field().evaluate(Axes{x, y, z}, found);
      EXPECT_LE(largest_difference(found, pressure), 1e-13);
    }
    // In the hole, and outside.
    EXPECT_THROW(s.velocity_field()[0]({0.2, 0.5, 1.1}), InputError);
    EXPECT_THROW(s.pressure_field()({7.0, 0.5, 1.1}), InputError);
    EXPECT_THROW((void)s.value_field(), InputError);
  }
}

/// Chains of solutions whose problems have the last one as data do not grow: a field has no problem.
TEST(SolutionAsData, HoldsNoProblem) {
  const auto seen = std::make_shared<int>(0);
  Problem p = problem(2, 1);
  p.force[0] = std::function<double(const Point&)>([seen](const Point&) { return 1.0; });
  VectorField field = Solution(test::interpolate(p, smooth, smooth_pressure)).velocity_field();
  p = {};
  EXPECT_EQ(seen.use_count(), 1);
  EXPECT_NEAR(field[0]({0.9, 1.4, 0.0}), smooth[0]({0.9, 1.4, 0.0}), 0.1);
}

TEST(Solution, RejectsCoefficientsOfTheWrongSize) {
  const Problem p = problem(2, 1);
  const auto grid = std::make_shared<const Grid>(p.mesh, p.boundary, true);
  EXPECT_THROW(Solution(p, grid, HostVector(7)), InputError);
  const auto bare = std::make_shared<const Grid>(p.mesh, p.boundary, false);
  EXPECT_THROW(Solution(p, bare, HostVector(std::int64_t{bare->layout().storage()} * record_size(2, 1))), InputError);
}

TEST(Solution, ANotFiniteExactFieldIsAnError) {
  const Problem p = problem(2, 1);
  const Solution s = Polynomials{2, 1}.solution(p);
  const ScalarField bad([](std::span<const Point>, std::span<double> v) { v[0] = 0.0, throw InputError("bad"); },
                        "bad");
  EXPECT_THROW((void)s.pressure_error(bad), InputError);
}

}  // namespace
}  // namespace solenoid
