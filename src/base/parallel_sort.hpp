#pragma once
/// \file
/// Sorting on all cores.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"

namespace solenoid {

/// As std::sort: pieces, then pairs of them, until one is left.
template <class T>
void parallel_sort(std::vector<T>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Ranges pieces{count};
  parallel_ranges(pieces, [&](CellRange range, std::int64_t) {
    std::sort(values.begin() + range.begin, values.begin() + range.end);
  });
  for (std::int64_t size = pieces.size; size < count; size *= 2) {
    parallel_ranges({count, 2 * size}, [&](CellRange range, std::int64_t) {
      const std::int64_t middle = std::min(range.begin + size, range.end);
      std::inplace_merge(values.begin() + range.begin, values.begin() + middle, values.begin() + range.end);
    });
  }
}

}  // namespace solenoid
