#pragma once
/// \file
/// The coarse boxes of a domain: which lie in holes, and the parts into which holes cut the rest.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/unset.hpp"
#include "solenoid/image.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// The number of a coarse box, x fastest.
inline std::int64_t number_of_box(const Mesh& mesh, const std::array<int, 3>& at) {
  return at[0] + mesh.cells[0] * (at[1] + std::int64_t{mesh.cells[1]} * at[2]);
}

/// Holes of a mesh; the solid of an image is one.
int hole_count(const Mesh& mesh);
/// The coarse boxes as voxels, those in holes solid. The box and the holes must be valid.
std::shared_ptr<const VoxelImage> image_of(const Mesh& mesh);

/// [coarse box]: the last hole that it lies in, or -1. The box and the holes must be valid.
std::vector<std::int32_t> holes_of_boxes(const Mesh& mesh);

/// Coarse boxes that are connected through faces (periodic ones count) are a part.
struct Parts {
  int count = 0;
  /// [coarse box]: its part, in the order of their first boxes; of a hole -1 - number of its condition
  /// (hole_side in problem/regions.hpp).
  Unset<std::int32_t> of_box;
};

/// The box and the holes must be valid.
Parts parts_of(const Mesh& mesh, const Boundary& boundary);

}  // namespace solenoid
