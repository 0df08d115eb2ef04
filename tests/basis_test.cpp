#include "element/basis.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace solenoid {
namespace {

TEST(Gauss, IntegratesPolynomialsUpToDegree2PointsMinus1) {
  for (int points = 1; points <= 40; ++points) {
    const Quadrature rule = gauss(points);
    ASSERT_EQ(rule.points.size(), static_cast<std::size_t>(points));
    for (int degree = 0; degree < 2 * points; ++degree) {
      double integral = 0.0;
      for (int i = 0; i < points; ++i) integral += rule.weights[i] * std::pow(rule.points[i], degree);
      EXPECT_NEAR(integral * (degree + 1), 1.0, 1e-13) << points << " points, degree " << degree;
    }
  }
}

TEST(Gauss, PointsAreInsideIncreasingAndSymmetric) {
  for (int points = 1; points <= 40; ++points) {
    const Quadrature rule = gauss(points);
    for (int i = 0; i < points; ++i) {
      EXPECT_GT(rule.points[i], i == 0 ? 0.0 : rule.points[i - 1]);
      EXPECT_LT(rule.points[i], 1.0);
      EXPECT_NEAR(rule.points[i] + rule.points[points - 1 - i], 1.0, 1e-16);
      EXPECT_EQ(rule.weights[i], rule.weights[points - 1 - i]);
    }
  }
}

TEST(Legendre, IsOrthonormal) {
  constexpr int k = 20;
  const Quadrature rule = gauss(k + 1);
  std::vector<double> mass((k + 1) * (k + 1));
  for (std::size_t q = 0; q < rule.points.size(); ++q) {
    const auto psi = legendre(k, rule.points[q]);
    for (int i = 0; i <= k; ++i) {
      for (int j = 0; j <= k; ++j) mass[i * (k + 1) + j] += rule.weights[q] * psi[i] * psi[j];
    }
  }
  for (int i = 0; i <= k; ++i) {
    for (int j = 0; j <= k; ++j) EXPECT_NEAR(mass[i * (k + 1) + j], i == j, 1e-13) << i << " " << j;
  }
}

TEST(Legendre, HasTheKnownEndValues) {
  constexpr int k = 20;
  const auto left = legendre(k, 0.0);
  const auto right = legendre(k, 1.0);
  const auto slope = legendre(k, 1.0, 1);
  for (int j = 0; j <= k; ++j) {
    const double norm = std::sqrt(2.0 * j + 1.0);
    EXPECT_DOUBLE_EQ(right[j], norm);
    EXPECT_DOUBLE_EQ(left[j], j % 2 == 0 ? norm : -norm);
    EXPECT_DOUBLE_EQ(slope[j], norm * j * (j + 1.0));  // 2 P_j'(1) = j (j + 1)
  }
}

TEST(Legendre, DerivativeIntegratesBackToTheFunction) {
  constexpr int k = 20;
  const Quadrature rule = gauss(k);
  for (const double x : {0.17, 0.5, 0.93}) {
    std::vector<double> integral = legendre(k, 0.0);
    for (std::size_t q = 0; q < rule.points.size(); ++q) {
      const auto slope = legendre(k, x * rule.points[q], 1);
      for (int j = 0; j <= k; ++j) integral[j] += x * rule.weights[q] * slope[j];
    }
    const auto psi = legendre(k, x);
    for (int j = 0; j <= k; ++j) EXPECT_NEAR(integral[j], psi[j], 1e-12) << j;
  }
}

TEST(Continuous, BubblesVanishAtTheEndsAndHatsDoNot) {
  for (int k = 0; k <= 20; ++k) {
    for (const double end : {0.0, 1.0}) {
      const auto b = continuous(k, end);
      ASSERT_EQ(b.size(), static_cast<std::size_t>(k + 2));
      EXPECT_EQ(b.front(), 1.0 - end);
      EXPECT_EQ(b.back(), end);
      for (int j = 1; j <= k; ++j) EXPECT_NEAR(b[j], 0.0, 1e-15) << j;
    }
  }
}

TEST(Continuous, DerivativesAreLegendrePolynomials) {
  constexpr int k = 20;
  const Quadrature rule = gauss(k + 1);
  for (const double x : {0.0, 0.31, 0.5, 1.0}) {
    const auto slope = continuous(k, x, 1);
    const auto psi = legendre(k, x);
    EXPECT_EQ(slope.front(), -1.0);
    EXPECT_EQ(slope.back(), 1.0);
    for (int j = 1; j <= k; ++j) EXPECT_EQ(slope[j], psi[j]);

    // b_j(x) is the integral of psi_j over (0, x).
    const auto b = continuous(k, x);
    for (int j = 1; j <= k; ++j) {
      double integral = 0.0;
      for (std::size_t q = 0; q < rule.points.size(); ++q) {
        integral += x * rule.weights[q] * legendre(k, x * rule.points[q])[j];
      }
      EXPECT_NEAR(b[j], integral, 1e-14) << j;
    }
  }
}

}  // namespace
}  // namespace solenoid
