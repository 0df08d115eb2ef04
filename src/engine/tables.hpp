#pragma once
/// \file
/// Levels and local solvers in precision T, laid out as the kernels of all engines want them (kernel_data.hpp).

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/unset.hpp"
#include "engine/kernel_data.hpp"
#include "level/level.hpp"
#include "level/patch_solver.hpp"
#include "problem/affine_map.hpp"

namespace solenoid {

/// What is around the cells of a grid, which must outlive it, in host memory.
CellTopology topology_of(const Grid& grid);

/// Inverse Schur blocks that an engine makes where its tables are.
struct MissingInverses {
  PatchSolver solver;               ///< without them
  std::vector<std::size_t> places;  ///< of each of its blocks among the tables
};

/// Matrices of the local solvers of kinds of patches in one array, so that an engine may copy it to its memory. Kinds
/// that share an inverse Schur complement share its table.
template <class T>
class PatchTables {
 public:
  /// Of a level's `kinds`, given by their indices, with its coefficients or others, constant in any case. `by_parity`:
  /// of those that split by parity only the parts of the lower cell, split into even and odd. With `room` inverse Schur
  /// blocks are left out, and found behind all others: room(n) numbers each, for a block of n unknowns.
  PatchTables(const Level& level, const std::vector<int>& kinds, LocalSolverKind local, bool by_parity,
              const std::function<std::size_t(int)>& room = {})
      : PatchTables(level, level.coefficients, kinds, local, by_parity, room) {}
  PatchTables(const Level& level, const Coefficients& coefficients, const std::vector<int>& kinds,
              LocalSolverKind local, bool by_parity, const std::function<std::size_t(int)>& room = {});

  [[nodiscard]] std::span<const T> values() const { return {values_.get(), made_}; }
  /// Those that are left out, too.
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::vector<MissingInverses>& missing() const { return missing_; }
  /// The tables of kinds[i], given where a copy of values() lies.
  [[nodiscard]] PatchData<T> data(std::size_t i, const T* values) const;

 private:
  std::vector<PatchData<T>> kinds_;                   // with pointers into values_
  std::vector<std::vector<std::size_t>> inverse_at_;  // of each kind and block
  std::unique_ptr<T[]> values_;
  std::size_t made_ = 0;
  std::size_t size_ = 0;
  std::vector<MissingInverses> missing_;
};

template <class T>
CellData<T> make_cell_data(const Level& level);

/// [shape]: where the unknowns of small patches of a level are.
std::vector<std::vector<SmallPlace>> small_places(const Level& level);
/// [shape]: the inverses of their matrices.
template <class T>
std::vector<std::vector<T>> small_inverses(const Level& level);

/// 1 / (h_a sqrt(volume)), by direction, for the convective term: functions carry 1 / sqrt(volume), so that this is the
/// factor of all integrals of theirs with a derivative in direction a, or over faces across it, and that of |u_a| /
/// h_a.
std::array<double, 3> convection_scale(const Grid& grid);
/// g / J^2: what convection carries in parallelepipeds is this times the velocity of their boxes.
Matrix3 convection_metric(const AffineMap& map);

/// For Kernels::use_tables. \throws std::logic_error unless `complete`: they have those of all smoothers there are.
void require_tables_of_smoothers(bool complete);

/// The fine cells inside each coarse cell, [coarse cell][direction bits]; the fine grid's null record where there is
/// none (bits of directions that are not coarsened).
Unset<Record> children_of(const Level& fine, const Level& coarse);

}  // namespace solenoid
