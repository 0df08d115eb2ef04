#pragma once
/// \file
/// Univariate matrices on the unit interval and on the two cells of a patch, of which every tensor-product matrix is
/// made. On cells of size h: mass and transfers as they are, `divergence` times 1/h, `stiffness`, `volume` and the
/// interior-penalty matrices times 1/h^2 (all functions carry 1/sqrt(h), see basis.hpp).

#include <Eigen/Dense>
#include <array>

namespace solenoid {

using Matrix = Eigen::MatrixXd;

/// The tensor product of two matrices: `fast` at each entry of `slow`.
Matrix kronecker(const Matrix& slow, const Matrix& fast);

/// Matrices of one cell, k = order, n = k + 1.
struct CellMatrices {
  /// `relative_penalty`: of the interior penalty, to that of the element. `lumped`: with order 0 the mass matrix of P
  /// by the trapezoidal rule, the marker-and-cell scheme.
  explicit CellMatrices(int order, double relative_penalty = 1.0, bool lumped = false);

  /// Interior-penalty matrix of O with weights s of the face form E at the lower and upper end.
  [[nodiscard]] Matrix laplace_o(int lower_weight, int upper_weight) const;

  int order;
  double penalty;         ///< gamma h: (k+1)(k+2), or 1 for k = 0, times the relative penalty
  Matrix mass;            ///< P: (b_i, b_j), (n+1) x (n+1); couples hats, hats with b_1 and b_2, and j with j+-2
  Matrix stiffness;       ///< P: (b_i', b_j'); identity on bubbles, [1 -1; -1 1] on hats
  Matrix divergence;      ///< O x P: (psi_i, b_j'), n x (n+1); identity on bubbles, -1 and +1 on hats
  Matrix volume;          ///< O: (psi_i', psi_j'), n x n; couples equal parities only
  Eigen::VectorXd value;  ///< psi_j(1); psi_j(0) = (-1)^j value_j
  Eigen::VectorXd slope;  ///< psi_j'(1); psi_j'(0) = -(-1)^j slope_j
  /// Embedding of a cell of size 2h into its lower and upper child of size h: fine coefficients x coarse coefficients.
  std::array<Matrix, 2> embed_o;
  std::array<Matrix, 2> embed_p;  ///< with both hats on both sides
};

/// Matrices of the two cells of a patch in one direction. O: n modes of the lower cell, then n of the upper.
/// P, 2n + 1 functions: lower end hat, k bubbles, middle hat, k bubbles, upper end hat.
struct PatchMatrices {
  explicit PatchMatrices(const CellMatrices& cell);

  /// As CellMatrices::laplace_o, with the face between the cells.
  [[nodiscard]] Matrix laplace_o(int lower_weight, int upper_weight) const;

  Matrix mass_p;
  Matrix stiffness_p;
  Matrix divergence;  ///< 2n x (2n + 1)

 private:
  const CellMatrices* cell_;
};

}  // namespace solenoid
