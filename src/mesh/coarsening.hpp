#pragma once
/// \file
/// Which cells of a lattice become one on the next coarser one.

#include <array>
#include <cstdint>
#include <vector>

namespace solenoid {

/// A map from fine to coarse lattice cells for each direction: neighbours that become one, in order. A coarse cell has
/// at most two children in a direction. Today all cells of a direction pair up or none does, which is what transfers
/// are made for.
class Coarsening {
 public:
  /// Of the coarsest level: no cell becomes another.
  Coarsening() = default;
  /// Of `extent` cells, in `directions` cells 2i and 2i + 1 become one (of an odd number the last stays alone), in the
  /// others each stays itself.
  Coarsening(const std::array<int, 3>& extent, const std::array<bool, 3>& directions);

  [[nodiscard]] int fine_extent(int a) const { return static_cast<int>(parent_[a].size()); }
  [[nodiscard]] int coarse_extent(int a) const { return static_cast<int>(first_[a].size()) - 1; }
  /// The coarse cell that fine cell i of direction a becomes part of.
  [[nodiscard]] int parent(int a, int i) const { return parent_[a][i]; }
  /// The fine cells of a coarse cell: first_child(a, i) and those after it.
  [[nodiscard]] int first_child(int a, int i) const { return first_[a][i]; }
  [[nodiscard]] int children(int a, int i) const { return first_[a][i + 1] - first_[a][i]; }
  /// Whether cells become one in direction a; in all directions.
  [[nodiscard]] bool merges(int a) const { return merges_[a]; }
  [[nodiscard]] const std::array<bool, 3>& merges() const { return merges_; }

  /// This and then `next`, in one step: with more than two children.
  [[nodiscard]] Coarsening then(const Coarsening& next) const;

 private:
  std::array<std::vector<std::int32_t>, 3> parent_;  // [direction][fine cell]
  std::array<std::vector<std::int32_t>, 3> first_;   // [direction][coarse cell], and the number of fine cells
  std::array<bool, 3> merges_{};
};

}  // namespace solenoid
