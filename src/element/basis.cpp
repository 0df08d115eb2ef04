#include "element/basis.hpp"

#include <cmath>
#include <numbers>

namespace solenoid {

namespace {

// Legendre polynomials P_0..P_count-1 on [-1, 1], or their derivatives, by the three-term recurrences
//   (j+1) P_{j+1} = (2j+1) z P_j - j P_{j-1},   P'_{j+1} = P'_{j-1} + (2j+1) P_j.
std::vector<double> classical(int count, double z, int derivative) {
  std::vector<double> p(count);
  if (count > 0) p[0] = 1.0;
  if (count > 1) p[1] = z;
  for (int j = 1; j + 1 < count; ++j) p[j + 1] = ((2 * j + 1) * z * p[j] - j * p[j - 1]) / (j + 1);
  if (derivative == 0) return p;
  std::vector<double> slope(count);
  if (count > 1) slope[1] = 1.0;
  for (int j = 1; j + 1 < count; ++j) slope[j + 1] = slope[j - 1] + (2 * j + 1) * p[j];
  return slope;
}

}  // namespace

Quadrature gauss(int points) {
  Quadrature rule{std::vector<double>(points), std::vector<double>(points)};
  for (int i = 0; i < (points + 1) / 2; ++i) {
    // Newton's method from an asymptotic guess of the i-th largest root; 8 steps are far more than it needs.
    double z = std::cos(std::numbers::pi * (i + 0.75) / (points + 0.5));
    const auto slope = [&] { return classical(points + 1, z, 1)[points]; };
    for (int step = 0; step < 8; ++step) z -= classical(points + 1, z, 0)[points] / slope();
    if (2 * i + 1 == points) z = 0.0;
    const double weight = 1.0 / ((1.0 - z) * (1.0 + z) * slope() * slope());
    rule.points[i] = 0.5 * (1.0 - z);
    rule.points[points - 1 - i] = 0.5 * (1.0 + z);
    rule.weights[i] = rule.weights[points - 1 - i] = weight;
  }
  return rule;
}

std::vector<double> legendre(int k, double x, int derivative) {
  std::vector<double> psi = classical(k + 1, 2.0 * x - 1.0, derivative);
  for (int j = 0; j <= k; ++j) psi[j] *= std::sqrt(2.0 * j + 1.0) * (derivative == 0 ? 1.0 : 2.0);
  return psi;
}

std::vector<double> continuous(int k, double x, int derivative) {
  std::vector<double> b(k + 2);
  if (derivative == 0) {
    // The integral of P_j is (P_{j+1} - P_{j-1}) / (2j+1).
    const std::vector<double> p = classical(k + 2, 2.0 * x - 1.0, 0);
    b[0] = 1.0 - x;
    for (int j = 1; j <= k; ++j) b[j] = 0.5 * (p[j + 1] - p[j - 1]) / std::sqrt(2.0 * j + 1.0);
    b[k + 1] = x;
  } else {
    const std::vector<double> psi = legendre(k, x);
    b[0] = -1.0;
    for (int j = 1; j <= k; ++j) b[j] = psi[j];
    b[k + 1] = 1.0;
  }
  return b;
}

GaussInterpolation::GaussInterpolation(int m) : rule_(gauss(m)) {
  for (const double x : rule_.points) psi_.push_back(legendre(m - 1, x));
}

std::vector<double> GaussInterpolation::at(double x) const {
  const std::vector<double> here = legendre(points() - 1, x);
  std::vector<double> factors(points(), 0.0);
  for (int q = 0; q < points(); ++q) {
    for (int j = 0; j < points(); ++j) factors[q] += rule_.weights[q] * psi_[q][j] * here[j];
  }
  return factors;
}

}  // namespace solenoid
