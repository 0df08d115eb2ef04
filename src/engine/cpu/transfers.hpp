#pragma once
/// \file
/// Transfers between a level and the next coarser one.

#include <vector>

#include "engine/cpu/kernels/table.hpp"
#include "engine/cpu/team.hpp"
#include "level/level.hpp"

namespace solenoid::cpu {

/// Kernels do the cells; what coarse hat-only records add is done here.
template <class T>
class Transfers {
 public:
  /// `fine` and `cell`, its data, must outlive this.
  Transfers(Team& team, const Level& fine, const CellData<T>& cell, const KernelTable<T>& table)
      : team_(team), level_(fine), cell_(cell), table_(table) {}

  void restrict_to(const Level& coarse, const T* fine_vector, T* coarse_vector);
  void prolong_add(const Level& coarse, const T* coarse_vector, T* fine_vector);

 private:
  /// The fine hats that a coarse hat on an upper outflow face is made of: those on the same face, and those in the
  /// middle of the coarse cell.
  enum class FineHat { same_face, middle };

  const Unset<Record>& children(const Level& coarse);
  void run(const Level& coarse, const T* from, T* to, void (*kernel)(const TransferArguments<T>&));
  template <class F>
  void for_hat_only(const Level& coarse, F&& visit);
  template <class F>
  void couple_hat_only(const Level& coarse, FineHat which, F&& couple);

  Team& team_;
  const Level& level_;
  const CellData<T>& cell_;
  const KernelTable<T>& table_;
  Unset<Record> children_;
};

}  // namespace solenoid::cpu
