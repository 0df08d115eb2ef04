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

namespace solenoid {

/// Calls work(i) once for every i in [0, count) from several threads; each thread uses its own work = make_worker().
/// An exception of the smallest i that threw is rethrown here. Results do not depend on the number of threads if
/// work(i) writes only what belongs to i.
template <class MakeWorker>
void parallel_for(std::int64_t count, MakeWorker make_worker) {
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
  const auto threads = std::min<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()), count);
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

/// Sums over cells. Each range of cells has its own Partial; make_worker()(range, partial) fills it, and
/// partials are joined by `total.merge(partial)` in the order of the cells.
template <class Partial, class MakeWorker>
Partial reduce_cells(std::int64_t cells, MakeWorker make_worker) {
  constexpr std::int64_t chunk = 256;
  std::vector<Partial> partials((cells + chunk - 1) / chunk);
  parallel_for(static_cast<std::int64_t>(partials.size()), [&] {
    return [&, work = make_worker()](std::int64_t i) mutable {
      work(CellRange{i * chunk, std::min(cells, (i + 1) * chunk)}, partials[i]);
    };
  });
  Partial total{};
  for (const Partial& partial : partials) total.merge(partial);
  return total;
}

}  // namespace solenoid
