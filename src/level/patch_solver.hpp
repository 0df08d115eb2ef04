#pragma once
/// \file
/// The local solver of one kind of patch (paper, Section 3.2): fast diagonalisation and the pressure Schur complement.
///
/// In each direction L S = M S Lambda on P and on O. In the eigenbasis the velocity block of component c is
/// diag(lambda_c), lambda_c = nu (lambda^P_c + sum of the other lambda^O) + alpha, the divergence of component c is the
/// univariate C = S_O^T D S_P acting along c, and
///     S = sum_c C diag(1 / lambda_c) C^T
/// couples along grid lines only. In directions whose ends are mirror symmetric eigenvectors are even or odd
/// (even ones first), C maps even to odd, and S splits into one block per parity class.
///
/// Poisson's local problem is diagonal in the eigenbasis of O: eigenvectors and 1 / lambda are all that it needs.

#include <memory>
#include <vector>

#include "element/matrices.hpp"
#include "level/level.hpp"

namespace solenoid {

/// Eigenpairs of one direction of a patch kind, scaled to the cell size.
struct PatchDirection {
  int first = 1;  ///< first and last of the 2n + 1 functions of P (PatchMatrices) that are patch unknowns
  int last = 1;
  bool parity = false;
  Matrix eigen_o;  ///< S_O, 2n x 2n, columns are eigenvectors
  Matrix eigen_p;  ///< S_P, (last - first + 1) squared
  Eigen::VectorXd lambda_o;
  Eigen::VectorXd lambda_p;
  Matrix divergence;  ///< C = S_O^T D S_P
};

/// One diagonal block of the Schur complement: the pressure eigenfunctions start[a] <= i_a < start[a] + length[a].
struct SchurBlock {
  std::array<int, 3> start{0, 0, 0};
  std::array<int, 3> length{1, 1, 1};
  Matrix inverse;  ///< pseudo-inverse without the constant, x fastest; empty unless the local solver is `direct`
};

class PatchSolver {
 public:
  PatchSolver(const Equation& equation, const Point& h, const PatchKind& kind, LocalSolverKind local);

  [[nodiscard]] const PatchDirection& direction(int a) const { return directions_[a]; }
  [[nodiscard]] bool parity() const { return parity_; }  ///< mirror symmetric in every direction
  /// 1 / lambda_c, index (i_c N_b + i_b) N_a + i_a with a = c + 1, b = c + 2 (mod dim). Poisson's 1 / lambda is that of
  /// c = 0, x fastest.
  [[nodiscard]] const std::vector<double>& inverse_lambda(int c) const { return inverse_lambda_[c]; }
  [[nodiscard]] const std::vector<SchurBlock>& blocks() const { return blocks_; }
  /// The constant pressure in the eigenbasis (unit length, x fastest); empty if the patch has a free end.
  [[nodiscard]] const Eigen::VectorXd& constant() const { return constant_; }
  /// Bounds of the non-zero eigenvalues of S (for Chebyshev).
  [[nodiscard]] std::array<double, 2> schur_bounds() const { return bounds_; }
  /// Dense (pseudo-)inverse of the patch matrix; empty unless the local solver is `dense`. Order of unknowns:
  /// components, each (e, i_b, i_a) with e = first..last slowest, then pressures (z, y, x), cell coordinates.
  [[nodiscard]] const Matrix& dense() const { return dense_; }

 private:
  [[nodiscard]] Matrix schur(const SchurBlock& block) const;
  void make_dense(const PatchMatrices& matrices, const Point& h, const PatchKind& kind);

  Equation equation_;
  std::array<PatchDirection, 3> directions_;
  bool parity_ = true;
  std::array<std::vector<double>, 3> inverse_lambda_;
  std::vector<SchurBlock> blocks_;
  Eigen::VectorXd constant_;
  std::array<double, 2> bounds_{};
  Matrix dense_;
};

}  // namespace solenoid
