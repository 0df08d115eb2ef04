#pragma once
/// \file
/// The parts into which holes cut a domain.

#include <cstdint>
#include <vector>

#include "solenoid/problem.hpp"

namespace solenoid {

/// Coarse boxes that are connected through faces (periodic ones count) are a part.
struct Parts {
  int count = 0;
  /// [coarse box, x fastest]: its part, in the order of their first boxes; of a hole -1 - number of its condition
  /// (hole_side in problem/regions.hpp).
  std::vector<std::int32_t> of_box;
};

/// The box and the holes must be valid.
Parts parts_of(const Mesh& mesh, const Boundary& boundary);

}  // namespace solenoid
