#pragma once
/// \file
/// The least-squares problem of GMRES.

#include <vector>

namespace solenoid {

/// Hessenberg matrix, Givens rotations, residual.
class Hessenberg {
 public:
  explicit Hessenberg(double beta) : g_{beta} {}
  /// Appends column j (entries 0..j+1) and returns the new residual norm.
  double append(std::vector<double> column);
  /// Coefficients y of the minimiser.
  [[nodiscard]] std::vector<double> solve() const;
  /// What the minimiser leaves of beta e_0, in the basis: an entry more than there are columns.
  [[nodiscard]] std::vector<double> residual() const;

 private:
  std::vector<std::vector<double>> columns_;
  std::vector<double> cosine_;
  std::vector<double> sine_;
  std::vector<double> g_;
};

}  // namespace solenoid
