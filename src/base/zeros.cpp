#include "base/zeros.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "base/parallel.hpp"

namespace solenoid {

std::vector<double> zeros(std::int64_t count) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
#if defined(MADV_POPULATE_WRITE)
  constexpr std::int64_t page = std::int64_t{1} << 21;
  const auto address = reinterpret_cast<std::intptr_t>(values.data());
  const std::intptr_t begin = (address + page - 1) / page * page;
  const std::int64_t pages = (address + count * static_cast<std::int64_t>(sizeof(double)) - begin) / page;
  // These are hints: where they fail, resize() makes the pages.
  if (pages > 0) madvise(reinterpret_cast<void*>(begin), static_cast<std::size_t>(pages * page), MADV_HUGEPAGE);
  parallel_ranges({pages, 4}, [&](CellRange range, std::int64_t) {
    madvise(reinterpret_cast<void*>(begin + range.begin * page),
            static_cast<std::size_t>((range.end - range.begin) * page), MADV_POPULATE_WRITE);
  });
#endif
  values.resize(static_cast<std::size_t>(count));
  return values;
}

}  // namespace solenoid
