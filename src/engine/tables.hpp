#pragma once
/// \file
/// Levels and local solvers in precision T, laid out as the kernels of all engines want them (kernel_data.hpp).

#include <cstdint>
#include <vector>

#include "engine/kernel_data.hpp"
#include "level/level.hpp"
#include "level/patch_solver.hpp"

namespace solenoid {

/// PatchSolver's matrices in one array, so that an engine may copy it to its memory.
template <class T>
class PatchTables {
 public:
  /// `by_parity`: only the parts of the lower cell, split into even and odd; needs splits_by_parity(kind, dim). Rows of
  /// the inverse Schur blocks begin at multiples of `row_multiple` numbers.
  PatchTables(const Equation& equation, const PatchKind& kind, const PatchSolver& solver, bool by_parity,
              int row_multiple = 1);

  [[nodiscard]] const std::vector<T>& values() const { return values_; }
  /// The tables, given where a copy of values() lies.
  [[nodiscard]] PatchData<T> data(const T* values) const;

 private:
  static constexpr std::int64_t none = -1;

  std::int64_t keep(const Matrix& a, const Matrix& b = Matrix());
  std::int64_t keep(const std::vector<double>& a);
  void align();

  std::vector<T> values_;
  PatchData<T> data_{};  // without its pointers, which are offsets into values_ here:
  std::int64_t eigen_o_[3]{none, none, none};
  std::int64_t eigen_p_[3]{none, none, none};
  std::int64_t divergence_[3]{none, none, none};
  std::int64_t inverse_lambda_[3]{none, none, none};
  std::int64_t block_inverse_[PatchData<T>::max_blocks]{};
  std::int64_t constant_ = none;
  std::int64_t pressure_modes_[3]{none, none, none};
  std::int64_t preconditioner_ = none;
  std::int64_t dense_ = none;
};

template <class T>
CellData<T> make_cell_data(const Level& level);

/// For Kernels::use_tables. \throws std::logic_error unless `complete`: they have those of all smoothers there are.
void require_tables_of_smoothers(bool complete);

/// The fine cells inside each coarse cell, [coarse cell][direction bits]; the fine grid's null record where there is
/// none (bits of directions that are not coarsened).
std::vector<Record> children_of(const Level& fine, const Level& coarse);

}  // namespace solenoid
