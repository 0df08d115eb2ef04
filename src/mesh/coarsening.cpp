#include "mesh/coarsening.hpp"

namespace solenoid {

Coarsening::Coarsening(const std::array<int, 3>& extent, const std::array<bool, 3>& directions) : merges_(directions) {
  for (int a = 0; a < 3; ++a) {
    const int together = directions[a] ? 2 : 1;
    for (int i = 0; i < extent[a]; ++i) {
      parent_[a].push_back(i / together);
      if (i % together == 0) first_[a].push_back(i);
    }
    first_[a].push_back(extent[a]);
  }
}

Coarsening Coarsening::then(const Coarsening& next) const {
  Coarsening both = *this;
  for (int a = 0; a < 3; ++a) {
    for (auto& parent : both.parent_[a]) parent = next.parent_[a][parent];
    both.first_[a].clear();
    for (const auto middle : next.first_[a]) both.first_[a].push_back(first_[a][middle]);
    both.merges_[a] = merges_[a] || next.merges_[a];
  }
  return both;
}

}  // namespace solenoid
