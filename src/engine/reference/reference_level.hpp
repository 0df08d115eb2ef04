#pragma once
/// \file
/// The kernels with mathematics in them, in double precision, for one level. Vectors have Level::size() numbers.

#include <Eigen/Dense>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/reference/small_system.hpp"
#include "engine/reference/spatial_form.hpp"
#include "engine/reference/weak_form.hpp"
#include "level/level.hpp"

namespace solenoid::reference {

/// The local problem of a patch kind, solved with dense factorisations: each velocity component by Cholesky, then the
/// Schur complement of the pressure, with the constant pressure removed explicitly where it is in the kernel.
class PatchSystem {
 public:
  /// \throws std::logic_error if the local matrix has a kernel other than the constant pressure.
  PatchSystem(const WeakForm& form, int dim, const PatchKind& kind);

  /// True if the patch has cut ends, so that its residual is its own.
  [[nodiscard]] bool cut() const { return components_[0].subspace.size() > 0; }
  /// b - A_j x on the patch alone, zero elsewhere.
  [[nodiscard]] Eigen::VectorXd own_residual(const Grid& grid, const std::array<Record, 8>& cells,
                                             const Eigen::VectorXd& b, const Eigen::VectorXd& x) const;
  /// The local A_j^+: adds to `correction` the solution for the values of `residual` on the patch around these cells.
  void solve_add(const Grid& grid, const std::array<Record, 8>& cells, const Eigen::VectorXd& residual,
                 Eigen::VectorXd& correction) const;

 private:
  /// A function of the patch, as function `function` of the field on cell `bits` of the patch.
  struct Unknown {
    int bits = 0;
    int function = 0;
  };
  struct Component {
    std::vector<Unknown> unknowns;
    Eigen::MatrixXd local;               // Poisson only
    Eigen::MatrixXd subspace;            // of functions that vanish at cut ends, a column each; empty: all functions
    Eigen::LLT<Eigen::MatrixXd> matrix;  // on the subspace
    Eigen::MatrixXd divergence;
  };

  /// Functions of the patch that vanish at its cut ends.
  [[nodiscard]] Eigen::MatrixXd without_traces(const PatchKind& kind) const;

  /// Numbers the unknowns of component c: number[bits][function], -1 for what is no unknown of the patch.
  std::vector<std::vector<int>> enumerate(const LocalField& field, const PatchKind& kind, Component& component) const;
  /// Where the unknowns are in a vector.
  std::vector<std::int64_t> numbers(const Grid& grid, const std::array<Record, 8>& cells, const LocalField& field,
                                    const std::vector<Unknown>& unknowns) const;

  const WeakForm& form_;
  int dim_;
  std::vector<Component> components_;
  std::vector<Unknown> pressure_;
  Eigen::VectorXd constant_;  // the normalised constant pressure; zero if it is not in the kernel
  Eigen::LLT<Eigen::MatrixXd> schur_;
};

class ReferenceLevel {
 public:
  /// `at_points`: the operator has the viscosity of points (Kernels::take_points).
  explicit ReferenceLevel(const Level& level, bool at_points = false);

  [[nodiscard]] const Level& level() const { return level_; }
  [[nodiscard]] Eigen::VectorXd apply(const Eigen::VectorXd& x) const;
  /// sum of R_j^T A_j^+ R_j (b - A x) over the patches of a colour; patches with cut ends have residuals of their own.
  [[nodiscard]] Eigen::VectorXd correction(int colour, const Eigen::VectorXd& b, const Eigen::VectorXd& x);
  /// sum of R_j^T A_j^+ R_j r over the patches of a group of small ones.
  [[nodiscard]] Eigen::VectorXd small_correction(int group, const Eigen::VectorXd& r);
  /// P^T fine and P coarse; `coarse_level` is the next coarser level.
  [[nodiscard]] Eigen::VectorXd restricted(const Level& coarse_level, const Eigen::VectorXd& fine) const;
  [[nodiscard]] Eigen::VectorXd prolonged(const Level& coarse_level, const Eigen::VectorXd& coarse) const;
  [[nodiscard]] Eigen::VectorXd projected(Eigen::VectorXd x) const;
  /// Of the velocity, or of Poisson's u.
  [[nodiscard]] double l2_norm(const Eigen::VectorXd& x) const;

 private:
  /// Calls visit(coarse numbers, fine numbers, matrix) for every fine cell and field: the coarse functions expressed in
  /// the unknowns that the fine cell's record and the hat-only records above it carry. Each fine unknown occurs once.
  template <class Visit>
  void for_each_embedding(const Level& coarse_level, const Visit& visit) const;
  /// The same where coefficients vary: local problems are scaled (level/patch_scale.hpp).
  [[nodiscard]] Eigen::VectorXd varying_correction(int colour, const Eigen::VectorXd& residual);
  /// Zeroes what is not an unknown of the level.
  static void mask(const Level& level, Eigen::VectorXd& x);

  const Level& level_;
  bool at_points_;
  WeakForm form_;
  std::unique_ptr<SpatialForm> spatial_;               // where coefficients vary or cells are parallelepipeds
  std::vector<std::unique_ptr<PatchSystem>> systems_;  // by patch kind, made on first use
  /// The same by patch kind and reaction where coefficients vary, with the weak forms that they refer to.
  std::map<std::pair<int, double>, std::unique_ptr<PatchSystem>> varying_systems_;
  std::map<double, std::unique_ptr<WeakForm>> varying_forms_;
  std::vector<std::unique_ptr<SmallSystem>> small_systems_;  // by shape, the same
};

/// True for the places in a vector that hold unknowns that are solved for.
std::vector<bool> unknowns(const Level& level);

}  // namespace solenoid::reference
