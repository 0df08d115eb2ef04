#pragma once
/// \file
/// Conditions on parts of the boundary: which of them holds where.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "solenoid/problem.hpp"

namespace solenoid {

/// The kinds of conditions on the faces of coarse boxes on one side of the bounding box.
class SideKinds {
 public:
  /// The regions must be valid.
  SideKinds(const Mesh& mesh, const Boundary& boundary, int side);

  /// Behind the coarse box.
  [[nodiscard]] SideKind at(const std::array<int, 3>& box) const {
    const auto i = [&](int a) { return boxes_[a] == 1 ? 0 : box[a]; };
    return kinds_[i(0) + boxes_[0] * (i(1) + std::int64_t{boxes_[1]} * i(2))];
  }
  [[nodiscard]] bool uniform() const { return kinds_.size() == 1; }
  /// Whether so many boxes that follow each other in direction a have one kind, from each multiple of that number on.
  [[nodiscard]] bool in_blocks(int a, int size) const;

 private:
  std::array<int, 3> boxes_{1, 1, 1};  ///< on the side, if there are regions of other kinds
  std::vector<SideKind> kinds_;
};

/// What is prescribed on a side, regions included.
VectorField data_on(const Boundary& boundary, int side);

/// The conditions on holes by number: that on all holes, then those on single ones.
const Side& hole_side(const Boundary& boundary, int number);
/// The number of each hole's condition.
std::vector<int> hole_sides(const Mesh& mesh, const Boundary& boundary);

/// The same kinds of conditions, with zero data.
Boundary without_data(Boundary boundary);

/// Directions that wrap around.
std::vector<int> periodic_directions(const Problem& problem);

/// All conditions of a problem.
std::vector<Side> conditions(const Problem& problem);

/// The sides of the bounding box that are not periodic, and the holes: "xmin", "holes[0]".
std::vector<std::string> bodies(const Problem& problem);

/// \throws InvalidEntry if conditions on single holes name no hole, or the same one.
void validate_single_holes(const Problem& problem);
/// \throws InvalidEntry if a region does not fit the mesh or the rest of the boundary. What else is wrong with the
/// problem must have been found.
void validate_regions(const Problem& problem);

}  // namespace solenoid
