#pragma once
/// \file
/// The local problem of a shape of small patches, assembled by quadrature and solved with a dense factorisation.

#include <Eigen/Dense>
#include <cstdint>
#include <vector>

#include "engine/reference/weak_form.hpp"
#include "level/small_patches.hpp"

namespace solenoid::reference {

class SmallSystem {
 public:
  /// `example`: a patch of this shape; all have the same matrix.
  SmallSystem(const WeakForm& form, const Grid& grid, const SmallShape& shape, const SmallRecords& example);

  /// Adds to `correction` the solution for the values of `residual` on a patch.
  void solve_add(const Grid& grid, const SmallRecords& patch, const Eigen::VectorXd& residual,
                 Eigen::VectorXd& correction) const;

 private:
  /// Places in a vector of all functions of a field on the patch's cells, -1 for what is no unknown of the patch.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> numbers(const Grid& grid, const SmallRecords& patch,
                                                               const LocalField& field) const;
  /// Where the unknowns of the patch are in a vector, in the order of the matrix.
  [[nodiscard]] std::vector<std::int64_t> unknowns(const Grid& grid, const SmallRecords& patch) const;
  /// Whether a face of a cell of the patch is inside it: has normal unknowns that belong to the patch.
  [[nodiscard]] bool is_inside(int cell, int side) const;
  /// Weight of the face form there, if it is an end of the patch.
  [[nodiscard]] int weight(int side) const;

  const WeakForm& form_;
  SmallShape shape_;
  Eigen::VectorXd constant_;  // the normalised constant pressure; zero if it is not in the kernel
  Eigen::PartialPivLU<Eigen::MatrixXd> matrix_;
};

}  // namespace solenoid::reference
