#pragma once
/// \file
/// The domain: a union of equal coarse boxes, refined uniformly.

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace solenoid {

class VoxelImage;

/// A point in space; in 2D the last coordinate is 0.
using Point = std::array<double, 3>;

/// A box of coarse cells: lower inclusive, upper exclusive, in coarse-box indices.
struct IndexBox {
  std::array<int, 3> lower{0, 0, 0};
  std::array<int, 3> upper{1, 1, 1};
};

/// [lower, upper] cut into `cells` equal coarse boxes per direction, those in `holes` or solid in `image` removed,
/// every remaining box refined `refine` times into 2^dim children. In 2D the third entries are 0, 1 and 1.
struct Mesh {
  int dim = 3;
  Point lower{0, 0, 0};
  Point upper{1, 1, 1};
  std::array<int, 3> cells{1, 1, 1};
  int refine = 0;
  std::vector<IndexBox> holes;  ///< where two overlap, the condition on the later one holds
  /// Holes are the solid voxels, each a coarse box; they are one hole, "holes[0]" in results. nullptr: none of this.
  std::shared_ptr<const VoxelImage> image{};
  /// Cells that are parallelepipeds: the edges of the domain that begin at `lower`, a vector for each direction, in
  /// place of `upper`; right-handed. In 2D the third one means nothing.
  std::optional<std::array<Point, 3>> edges{};

  /// The unit square or cube as one coarse box.
  static Mesh unit(int dim, int refine);
  /// A coarse box for each voxel. It is 1 wide in x, and in other directions as wide as voxels are relative to that.
  static Mesh of(std::shared_ptr<const VoxelImage> image, int refine = 0);
  /// A parallelogram or parallelepiped with these edges as one coarse box, from the origin.
  static Mesh sheared(int dim, const std::array<Point, 3>& edges, int refine);
};

}  // namespace solenoid
