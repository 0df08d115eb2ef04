#pragma once
/// \file
/// The two univariate spaces on the unit interval and their Gauss quadrature (DESIGN: P and O).
///
/// O_k: orthonormal Legendre, psi_j(x) = sqrt(2j+1) P_j(2x-1), j = 0..k (discontinuous).
/// P_k: degree k+1, continuous: b_0 = 1-x (lower hat), b_j(x) = integral_0^x psi_j, j = 1..k (bubbles),
///      b_{k+1} = x (upper hat). So b_j' = psi_j for bubbles and -psi_0, +psi_0 for the hats.
///
/// On a cell of size h every function is scaled by 1/sqrt(h), so that mass matrices do not depend on h.

#include <vector>

namespace solenoid {

/// Gauss-Legendre rule on [0, 1], exact for degree 2 points - 1.
struct Quadrature {
  std::vector<double> points;
  std::vector<double> weights;
};
Quadrature gauss(int points);

/// The polynomial through values at the points of gauss(m). It is the sum of Legendre polynomials times its moments,
/// which the rule takes exactly.
class GaussInterpolation {
 public:
  explicit GaussInterpolation(int m);
  [[nodiscard]] int points() const { return static_cast<int>(psi_.size()); }
  /// What each of the values counts at x.
  [[nodiscard]] std::vector<double> at(double x) const;

 private:
  Quadrature rule_;
  std::vector<std::vector<double>> psi_;  // [point]
};

/// psi_0..psi_k at x; `derivative` 0 or 1.
std::vector<double> legendre(int k, double x, int derivative = 0);

/// b_0..b_{k+1} at x; `derivative` 0 or 1.
std::vector<double> continuous(int k, double x, int derivative = 0);

}  // namespace solenoid
