#pragma once
/// \file
/// The local solver of one kind of patch (paper, Section 3.2): fast diagonalisation and the pressure Schur complement.
///
/// In each direction L S = M S Lambda on P and on O. In the eigenbasis the velocity block of component c is
/// diag(lambda_c), lambda_c = nu (lambda^P_c + sum of the other lambda^O) + alpha, each term times its weight
/// (level/patch_weights.hpp; 1 for boxes), the divergence of component c is the
/// univariate C = S_O^T D S_P acting along c, and
///     S = sum_c C diag(1 / lambda_c) C^T
/// couples along grid lines only. In directions whose ends are mirror symmetric eigenvectors are even or odd
/// (even ones first), C maps even to odd, and S splits into one block per parity class.
///
/// Eigenfunctions of a direction that is the mirror image of another are the images of the other's, those of P with the
/// sign that leaves C as it is. So S and its inverse are the same for all mirror images of a kind.
///
/// Iterative solvers of S p = r need another basis where there is a reaction. Without viscosity alpha S is
///     G = sum_c C C^T,    C C^T = R diag(gamma) R^T in each direction,
/// a Laplacian, badly conditioned for high orders. Between both ends S^-1 is near
///     P^-1 = nu + alpha G^+
/// (J. Cahouet and J.-P. Chabert, Int. J. Numer. Meth. Fluids 8, 1988), and P^-1 S is conditioned best where the
/// reaction dominates. Without reaction P is a number, and left out.
///
/// Poisson's local problem is diagonal in the eigenbasis of O: eigenvectors and 1 / lambda are all that it needs.

#include <functional>
#include <memory>
#include <vector>

#include "element/matrices.hpp"
#include "level/level.hpp"
#include "level/schur_inverses.hpp"

namespace solenoid {

/// Eigenpairs of one direction of a patch kind, scaled to the cell size.
struct PatchDirection {
  int first = 1;  ///< first and last of the 2n + 1 functions of P (PatchMatrices) that are patch unknowns
  int last = 1;
  bool parity = false;  ///< PatchEnds::symmetric
  Matrix eigen_o;       ///< S_O, 2n x 2n, columns are eigenvectors
  Matrix eigen_p;       ///< S_P, (last - first + 1) squared
  Eigen::VectorXd lambda_o;
  Eigen::VectorXd lambda_p;
  Matrix divergence;  ///< C = S_O^T D S_P
};

/// One diagonal block of the Schur complement: the pressure eigenfunctions start[a] <= i_a < start[a] + length[a].
struct SchurBlock {
  std::array<int, 3> start{0, 0, 0};
  std::array<int, 3> length{1, 1, 1};
  /// Pseudo-inverse without the constant, x fastest; nullptr unless the local solver is `direct`.
  std::shared_ptr<const Matrix> inverse;

  [[nodiscard]] int size() const { return length[0] * length[1] * length[2]; }
  /// visit(place among all `modes`^dim pressures), x fastest.
  template <class F>
  void for_each(int modes, F&& visit) const {
    for (int z = start[2]; z < start[2] + length[2]; ++z) {
      for (int y = start[1]; y < start[1] + length[1]; ++y) {
        for (int x = start[0]; x < start[0] + length[0]; ++x) visit(x + modes * (y + modes * z));
      }
    }
  }
};

/// P^-1 = R diag(inverse) R^T, R the product of `modes`; zero for the constant pressure.
struct SchurPreconditioner {
  std::array<Matrix, 3> modes;  ///< columns are eigenvectors of C C^T in the eigenbasis of O; even ones first, as there
  std::vector<double> inverse;  ///< x fastest; empty without reaction and for local solvers that do not iterate
};

class PatchSolver {
 public:
  /// What all local solvers have in common: eigenpairs and Schur blocks, these without inverses.
  PatchSolver(const Equation& equation, const Coefficients& coefficients, const Point& h, const PatchKind& kind);
  /// `known`: where inverse blocks are looked for before they are made, and left for other levels; or nullptr.
  PatchSolver(const Equation& equation, const Coefficients& coefficients, const Point& h, const PatchKind& kind,
              LocalSolverKind local, SchurInverses* known = nullptr);

  /// Leaves the inverse blocks of kinds of a level where its levels look for them, each made once. On all cores.
  static void invert(const Level& level, const Coefficients& coefficients, const std::vector<int>& kinds);

  [[nodiscard]] int dim() const { return equation_.dim; }
  [[nodiscard]] const PatchDirection& direction(int a) const { return directions_[a]; }
  /// 1 / lambda_c, index (i_c N_b + i_b) N_a + i_a with a = c + 1, b = c + 2 (mod dim). Poisson's 1 / lambda is that of
  /// c = 0, x fastest.
  [[nodiscard]] const std::vector<double>& inverse_lambda(int c) const { return inverse_lambda_[c]; }
  [[nodiscard]] const std::vector<SchurBlock>& blocks() const { return blocks_; }
  /// Of all blocks, to be shared.
  [[nodiscard]] SchurInverses::Blocks inverses() const;
  /// The constant pressure in the eigenbasis (unit length, x fastest); empty if the patch has a free end.
  [[nodiscard]] const Eigen::VectorXd& constant() const { return constant_; }
  /// The part of it inside a block; empty if there is none.
  [[nodiscard]] Eigen::VectorXd constant_in(const SchurBlock& block) const;
  [[nodiscard]] const SchurPreconditioner& preconditioner() const { return preconditioner_; }
  /// Bounds of the non-zero eigenvalues of P^-1 S, or of S if there is no P; for Chebyshev.
  [[nodiscard]] std::array<double, 2> schur_bounds() const { return bounds_; }
  /// Dense (pseudo-)inverse of the patch matrix; empty unless the local solver is `dense`. Order of unknowns:
  /// components, each (e, i_b, i_a) with e = first..last slowest, then pressures (z, y, x), cell coordinates.
  [[nodiscard]] const Matrix& dense() const { return dense_; }

 private:
  void make_preconditioner();
  [[nodiscard]] Matrix schur(const SchurBlock& block, int threads) const;
  /// Adds shift times null null^T, null the constant in a block, to the lower triangle of its S, so that it has an
  /// inverse; returns shift.
  [[nodiscard]] static double regularise(const Eigen::VectorXd& null, Matrix& s);
  [[nodiscard]] std::shared_ptr<const Matrix> pseudo_inverse(const SchurBlock& block, int threads) const;
  void find_inverses(const SchurKey& key, SchurInverses* known);
  void find_bounds();
  /// R D for the modes of a block, D = diag(inverse)^(1/2).
  [[nodiscard]] Matrix preconditioned_modes(const SchurBlock& block) const;
  void make_dense(const Point& h, const PatchKind& kind);

  Equation equation_;
  Coefficients coefficients_;
  std::array<PatchDirection, 3> directions_;
  std::array<std::vector<double>, 3> inverse_lambda_;
  std::vector<SchurBlock> blocks_;
  Eigen::VectorXd constant_;
  SchurPreconditioner preconditioner_;
  std::array<double, 2> bounds_{};
  Matrix dense_;
};

/// Who makes the inverse Schur blocks of `direct` local solvers.
enum class BlockInverses { here, elsewhere };

/// visit(i, local solver of kinds[i]) for patch kinds of a level, given by their indices, with coefficients that are
/// constant: on all cores where that is worth it, so that `visit` writes what belongs to i only.
void for_each_local_solver(const Level& level, const Coefficients& coefficients, const std::vector<int>& kinds,
                           LocalSolverKind local, BlockInverses inverses,
                           const std::function<void(std::size_t, const PatchSolver&)>& visit);
/// With those of the level.
inline void for_each_local_solver(const Level& level, const std::vector<int>& kinds, LocalSolverKind local,
                                  BlockInverses inverses,
                                  const std::function<void(std::size_t, const PatchSolver&)>& visit) {
  for_each_local_solver(level, level.coefficients, kinds, local, inverses, visit);
}

}  // namespace solenoid
