#include "engine/assembly.hpp"

#include <algorithm>

namespace solenoid {

NodeLattice NodeLattice::coarse() const {
  NodeLattice blocks = *this;
  for (int a = 0; a < 3; ++a) {
    const int pairs = extent[a] / 2;
    blocks.extent[a] = !periodic[a] ? (extent[a] + 1) / 2 : std::max(1, pairs > 1 ? pairs + pairs % 2 : pairs);
  }
  return blocks;
}

}  // namespace solenoid
