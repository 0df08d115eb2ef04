#pragma once
/// \file
/// Which rank owns which cells.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "solenoid/communicator.hpp"

namespace solenoid {

/// Lattice cells lower[a] <= i < upper[a].
struct LatticeBox {
  std::array<int, 3> lower{};
  std::array<int, 3> upper{1, 1, 1};

  [[nodiscard]] int extent(int a) const { return upper[a] - lower[a]; }
  bool operator==(const LatticeBox&) const = default;
};

/// A box of the lattice for each rank of a group. Boxes are cut on a coarse lattice, that of the seeds; cells of finer
/// lattices belong to who owns their seed, so that children stay with their parents and cuts lie at multiples of the
/// ratio of the lattices on each level.
class Partition {
 public:
  /// Layers of cells around its box that a rank has copies of: a patch with an owned cell reads two beyond it. Where
  /// cells are parallelepipeds all derivatives count on a face, that along the edge across it too: they take the hat
  /// that is behind the second, and the row of a hat, which takes the faces below and above both of its cells, a third
  /// one below.
  static constexpr int layers = 2;
  static constexpr int sheared_layers = 3;

  /// By recursive bisection: boxes of about equal weight in proportion to their ranks, cut where fewest faces are cut;
  /// ties across y, then z, then x, as that breaks no rows. `weight` is that of a seed. \throws InputError if there are
  /// more ranks than seeds that weigh something.
  Partition(std::shared_ptr<const Communicator> communicator, int dim, const std::array<int, 3>& seeds,
            const std::function<std::int64_t(const std::array<int, 3>&)>& weight);

  [[nodiscard]] const Communicator& communicator() const { return *communicator_; }
  [[nodiscard]] const std::array<int, 3>& seeds() const { return seeds_; }
  /// Whether the cells of a lattice are whole parts of seeds.
  [[nodiscard]] bool refines_to(const std::array<int, 3>& extent) const;
  /// The cells of a rank on a lattice that refines that of the seeds.
  [[nodiscard]] LatticeBox box(int rank, const std::array<int, 3>& extent) const;

 private:
  std::shared_ptr<const Communicator> communicator_;
  std::array<int, 3> seeds_;
  std::vector<LatticeBox> boxes_;  // [rank], of seeds
};

}  // namespace solenoid
