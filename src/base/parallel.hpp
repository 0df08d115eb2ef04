#pragma once
/// \file
/// Work on all cores that gives the same result for any number of them.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/threads.hpp"

namespace solenoid {

/// Calls work(i) once for every i in [0, count) from `workers` threads; each uses its own work = make_worker().
/// An exception of the smallest i that threw is rethrown here. Results do not depend on the number of threads if
/// work(i) writes only what belongs to i.
template <class MakeWorker>
void parallel_for(std::int64_t count, MakeWorker make_worker, int workers = cores()) {
  std::atomic<std::int64_t> next{0};
  std::mutex guard;
  std::exception_ptr error;
  std::int64_t failed = count;
  const auto run = [&] {
    std::int64_t i = 0;
    try {
      auto work = make_worker();
      while ((i = next.fetch_add(1)) < count) work(i);
    } catch (...) {
      const std::lock_guard lock(guard);
      next = count;
      if (i < failed || !error) {
        failed = i;
        error = std::current_exception();
      }
    }
  };
  const auto threads = std::min<std::int64_t>(workers, count);
  std::vector<std::jthread> others;
  for (std::int64_t t = 1; t < threads; ++t) others.emplace_back(run);
  run();
  others.clear();  // joins
  if (error) std::rethrow_exception(error);
}

/// A range [begin, end) of cells: a piece of work whose size depends on nothing but the number of cells.
struct CellRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// [0, count) cut into ranges of `size`.
struct Ranges {
  std::int64_t count = 0;
  std::int64_t size = 1 << 14;  // enough work to be worth a thread, small enough to share out evenly

  [[nodiscard]] std::int64_t number() const { return (count + size - 1) / size; }
  [[nodiscard]] CellRange operator[](std::int64_t i) const { return {i * size, std::min(count, (i + 1) * size)}; }
};

/// Calls work(range, its number) for every range, from `workers` threads.
template <class Work>
void parallel_ranges(const Ranges& ranges, Work work, int workers = cores()) {
  parallel_for(
      ranges.number(), [&] { return [&](std::int64_t i) { work(ranges[i], i); }; }, workers);
}

/// Sums over cells. Each range of cells has its own Partial; make_worker()(range, partial) fills it, and
/// partials are joined by `total.merge(partial)` in the order of the cells.
template <class Partial, class MakeWorker>
Partial reduce_cells(std::int64_t cells, MakeWorker make_worker) {
  const Ranges ranges{cells, 256};
  std::vector<Partial> partials(ranges.number());
  parallel_for(ranges.number(),
               [&] { return [&, work = make_worker()](std::int64_t i) mutable { work(ranges[i], partials[i]); }; });
  Partial total{};
  for (const Partial& partial : partials) total.merge(partial);
  return total;
}

}  // namespace solenoid
