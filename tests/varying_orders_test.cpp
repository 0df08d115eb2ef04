/// \file
/// Orders of convergence with viscosities that are smooth, of which each cell has the mean, or the values at Gauss
/// points: against flows that are known.

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "flows.hpp"
#include "levels.hpp"
#include "problem/names.hpp"
#include "solenoid/solver.hpp"

namespace solenoid {
namespace {

using std::numbers::pi;
using test::Polynomial;

/// Errors over norms.
struct Relative {
  double velocity;
  double pressure;
};

Relative errors_of(const Problem& problem, const VectorField& velocity, const ScalarField& pressure) {
  SolverOptions options;
  options.device = DeviceChoice::cpu;
  options.threads = 1;
  options.rtol = 1e-10;
  options.max_iterations = 200;
  const auto [solution, report] = solve(problem, options);
  EXPECT_TRUE(report.converged) << report.reason;
  const Solution exact = interpolate(problem, velocity, pressure);
  const Solution zero = interpolate(problem, VectorField{});
  return {solution.velocity_error(velocity) / std::sqrt(2.0 * exact.kinetic_energy()),
          solution.pressure_error(pressure) / zero.pressure_error(pressure)};
}

double order(double coarse, double fine) { return std::log2(coarse / fine); }

/// SolKz (Revenaugh and Parsons 1987): nu = exp(2 B y), f = (0, sin(m y) cos(k x)) between slip sides. With
/// v = V(y) cos(kx), u = - V' / k sin(kx), p = P(y) cos(kx) and w = V'' + k^2 V the equations are
///
///     P = (nu w)' / k^2 - 2 nu V',   - nu w + 4 (nu V')' - (nu w)'' / k^2 + sin(my) = 0:
///
/// over nu an equation with constant coefficients, so that V is a sum of exponentials. (A contrast of 1 has double
/// roots.)
class SolKz {
 public:
  using Complex = std::complex<double>;

  explicit SolKz(double contrast) : b_(0.5 * std::log(contrast)) {
    // Q(r) = - (r^2 + k^2) + 4 (r^2 + 2 B r) - (r^2 + k^2) (r + 2 B)^2 / k^2, times - k^2
    const double k2 = k * k;
    const std::array<double, 4> low{k2 * k2 + 4 * b_ * b_ * k2, 4 * b_ * k2 - 8 * b_ * k2,
                                    k2 + k2 + 4 * b_ * b_ - 4 * k2, 4 * b_};
    Eigen::Matrix4d companion = Eigen::Matrix4d::Zero();
    for (int i = 0; i < 4; ++i) {
      companion(i, 3) = -low[i];
      if (i < 3) companion(i + 1, i) = 1.0;
    }
    const Eigen::Vector4cd roots = companion.eigenvalues();
    const Complex s{-2.0 * b_, m};
    const Complex factor = k2 / (((s + low[3]) * s + low[2]) * s * s + low[1] * s + low[0]);
    terms_ = {{s, factor / Complex(0, 2)}, {std::conj(s), -std::conj(factor) / Complex(0, 2)}};
    Eigen::Matrix4cd conditions;  // V = V'' = 0 at both ends
    Eigen::Vector4cd ends;
    for (int row = 0; row < 4; ++row) {
      const double y = row / 2;
      for (int i = 0; i < 4; ++i) conditions(row, i) = std::pow(roots[i], 2 * (row % 2)) * std::exp(roots[i] * y);
      ends[row] = -derivative(2 * (row % 2), y);
    }
    const Eigen::Vector4cd factors = conditions.fullPivLu().solve(ends);
    for (int i = 0; i < 4; ++i) terms_.push_back({roots[i], factors[i]});
  }

  [[nodiscard]] Problem problem(int order, int refine) const {
    Problem problem{.mesh = Mesh::unit(2, refine), .order = order};
    problem.varying_viscosity = ScalarField([b = b_](const Point& x) { return std::exp(2 * b * x[1]); });
    problem.force[1] = ScalarField([](const Point& x) { return std::sin(m * x[1]) * std::cos(k * x[0]); });
    for (Side& side : problem.boundary.sides) side.kind = SideKind::slip;
    return problem;
  }
  [[nodiscard]] VectorField velocity() const {
    return {ScalarField([*this](const Point& x) { return -derivative(1, x[1]) / k * std::sin(k * x[0]); }),
            ScalarField([*this](const Point& x) { return derivative(0, x[1]) * std::cos(k * x[0]); })};
  }
  [[nodiscard]] ScalarField pressure() const {
    return ScalarField([*this](const Point& x) {
      const double y = x[1];
      const double w = derivative(2, y) + k * k * derivative(0, y);
      const double slope = derivative(3, y) + k * k * derivative(1, y);
      return std::exp(2 * b_ * y) * ((slope + 2 * b_ * w) / (k * k) - 2 * derivative(1, y)) * std::cos(k * x[0]);
    });
  }

 private:
  static constexpr double k = pi;
  static constexpr double m = 2.0 * pi;

  [[nodiscard]] double derivative(int d, double y) const {
    Complex sum = 0.0;
    for (const auto& [exponent, factor] : terms_) sum += factor * std::pow(exponent, d) * std::exp(exponent * y);
    return sum.real();
  }

  double b_;
  std::vector<std::pair<Complex, Complex>> terms_;  // exponents and factors of V
};

/// Means over cells: velocities of order 2 and pressures of order 1, whatever k.
TEST(VaryingOrders, OfSolKz) {
  for (const double contrast : {100.0, 1e6}) {
    const SolKz exact(contrast);
    for (const int k : {1, 2}) {
      if (!test::has_order(2, k)) continue;
      SCOPED_TRACE(testing::Message() << "contrast " << contrast << ", k = " << k);
      const Relative coarse = errors_of(exact.problem(k, 4), exact.velocity(), exact.pressure());
      const Relative fine = errors_of(exact.problem(k, 5), exact.velocity(), exact.pressure());
      EXPECT_GT(order(coarse.velocity, fine.velocity), 1.7);
      EXPECT_GT(order(coarse.pressure, fine.pressure), 0.9);
      EXPECT_LT(fine.velocity, contrast > 1e3 ? 2.5e-2 : 1e-2);
      EXPECT_LT(fine.pressure, contrast > 1e3 ? 0.15 : 5e-2);
    }
  }
}

/// At Gauss points: velocities of order k + 1, pressures of order k at least.
TEST(VaryingOrders, OfSolKzAtPoints) {
  for (const double contrast : {100.0, 1e6}) {
    const SolKz exact(contrast);
    for (const int k : {1, 2, 3, 4}) {
      if (!test::has_order(2, k)) continue;
      SCOPED_TRACE(testing::Message() << "contrast " << contrast << ", k = " << k);
      const int refine = k < 3 ? 5 : 4;
      std::array<Relative, 2> errors{};
      for (int i = 0; i < 2; ++i) {
        Problem problem = exact.problem(k, refine - 1 + i);
        problem.viscosity_points = ViscosityPlaces::gauss;
        errors.at(i) = errors_of(problem, exact.velocity(), exact.pressure());
      }
      EXPECT_GT(order(errors[0].velocity, errors[1].velocity), k + (contrast > 1e3 ? 0.6 : 0.8));
      EXPECT_GT(order(errors[0].pressure, errors[1].pressure), k - 0.1);
    }
  }
}

/// A flow with nu = exp(1 - beta (x (1 - x) + y (1 - y) + z (1 - z))), beta = 4, of which f is made by hand:
/// f = - nu Laplace u - 2 eps(u) grad nu + grad p.
struct SmoothFlow {
  int dim;
  std::array<Polynomial, 3> u;
  Polynomial p;

  [[nodiscard]] VectorField velocity() const {
    VectorField result;
    for (int c = 0; c < dim; ++c) result[c] = u[c].field();
    return result;
  }
  [[nodiscard]] Problem problem(const Mesh& mesh) const {
    const auto nu = [dim = dim](const Point& x) {
      double sum = 0.0;
      for (int a = 0; a < dim; ++a) sum += x[a] * (1 - x[a]);
      return std::exp(1 - beta * sum);
    };
    Problem problem{.mesh = mesh};
    problem.varying_viscosity = ScalarField(nu);
    for (int c = 0; c < dim; ++c) {
      problem.force[c] = ScalarField([*this, nu, c](const Point& x) {
        double f = p.derivative(c)(x);
        for (int a = 0; a < dim; ++a) {
          const double slope = -beta * (1 - 2 * x[a]) * nu(x);
          f -= nu(x) * u[c].derivative(a).derivative(a)(x);
          f -= (u[c].derivative(a)(x) + u[a].derivative(c)(x)) * slope;
        }
        return f;
      });
    }
    for (Side& side : problem.boundary.sides) side.data = velocity();
    return problem;
  }

 private:
  static constexpr double beta = 4.0;
};

/// That of Burstedde et al. (2013).
TEST(VaryingOrders, OfASmoothFlowInThreeDimensions) {
  if (!test::has_order(3, 1) || !test::has_order(3, 2)) GTEST_SKIP();
  const SmoothFlow exact{3,
                         {Polynomial{{1, {1, 0, 0}}, {1, {2, 0, 0}}, {1, {1, 1, 0}}, {1, {3, 1, 0}}},
                          Polynomial{{1, {0, 1, 0}}, {1, {1, 1, 0}}, {1, {0, 2, 0}}, {1, {2, 2, 0}}},
                          Polynomial{{-2, {0, 0, 1}}, {-3, {1, 0, 1}}, {-3, {0, 1, 1}}, {-5, {2, 1, 1}}}},
                         Polynomial{{1, {1, 1, 1}}, {1, {3, 3, 1}}, {-5.0 / 32, {0, 0, 0}}}};
  Problem problem = exact.problem(Mesh::unit(3, 2));
  for (const ViscosityPlaces places : {ViscosityPlaces::cell, ViscosityPlaces::gauss}) {
    problem.viscosity_points = places;
    for (const int k : {1, 2}) {
      SCOPED_TRACE(testing::Message() << (places == ViscosityPlaces::cell ? "means" : "points") << ", k = " << k);
      problem.order = k;
      std::array<Relative, 2> errors{};
      for (int i = 0; i < 2; ++i) {
        problem.mesh.refine = i + 2;
        errors.at(i) = errors_of(problem, exact.velocity(), exact.p.field());
      }
      const double of_velocity = order(errors[0].velocity, errors[1].velocity);
      const double of_pressure = order(errors[0].pressure, errors[1].pressure);
      if (places == ViscosityPlaces::gauss) {
        EXPECT_GT(of_velocity, k + 0.7);
        EXPECT_GT(of_pressure, k + 0.4);
        continue;
      }
      // Towards 2 and 1. The pressure is small beside the viscous stress, whose error it takes.
      EXPECT_GT(of_velocity, 1.5);
      EXPECT_GT(of_pressure, 0.75);
      EXPECT_LT(errors[1].velocity, 1e-2);
    }
  }
}

/// On sheared cells: velocities of order k + 1, pressures of order k (docs/sheared.md), and of order 2 and 1 from
/// means.
TEST(VaryingOrders, OfASmoothFlowOnShearedCells) {
  for (const int dim : {2, 3}) {
    for (const int k : {1, 2, 3}) {
      if (!test::has_order(dim, k) || (dim == 3 && k == 3)) continue;
      const auto flow = test::PolynomialFlow::of_order(dim, k + 1);
      const SmoothFlow exact{dim, flow.velocity, flow.pressure};
      for (const ViscosityPlaces places : {ViscosityPlaces::cell, ViscosityPlaces::gauss}) {
        SCOPED_TRACE(testing::Message() << dim << "D, k = " << k << name_of(places));
        std::array<Relative, 2> errors{};
        for (int i = 0; i < 2; ++i) {
          const std::array<Point, 3> edges =
              dim == 2 ? std::array{Point{1, 0, 0}, Point{0.4, 0.8, 0}, Point{}}
                       : std::array{Point{1, 0, 0}, Point{0.3, 0.9, 0}, Point{-0.1, 0.2, 0.8}};
          Problem problem = exact.problem(Mesh::sheared(dim, edges, i + (dim == 2 ? 4 : 2)));
          problem.order = k;
          problem.viscosity_points = places;
          errors.at(i) = errors_of(problem, exact.velocity(), exact.p.field());
        }
        const bool means = places == ViscosityPlaces::cell;
        const double of_velocity = order(errors[0].velocity, errors[1].velocity);
        EXPECT_GT(of_velocity, means ? 1.2 : k + 0.6);
        EXPECT_LT(of_velocity, means && k > 1 ? 2.5 : k + 2.0);
        EXPECT_GT(order(errors[0].pressure, errors[1].pressure), means ? 0.5 : k - 0.3);
      }
    }
  }
}

}  // namespace
}  // namespace solenoid
