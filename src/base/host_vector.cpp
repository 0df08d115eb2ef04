#include "base/host_vector.hpp"

#include <algorithm>

#include "base/parallel.hpp"

namespace solenoid {

HostVector zeros(std::int64_t count) {
  HostVector values(static_cast<std::size_t>(count));
  parallel_ranges(
      {count, 1 << 18},  // a huge page
      [&](CellRange range, std::int64_t) { std::fill(values.begin() + range.begin, values.begin() + range.end, 0.0); });
  return values;
}

}  // namespace solenoid
