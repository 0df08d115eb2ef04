#pragma once
/// \file
/// Work on all cores that gives the same result for any number of them.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "base/threads.hpp"

namespace solenoid {

/// Calls work(i) once for every i in [0, count) from `workers` threads; each uses its own work = make_worker().
/// An exception of the smallest i that threw is rethrown here; Interrupted where the work is to end early. Results do
/// not depend on the number of threads if work(i) writes only what belongs to i.
template <class MakeWorker>
void parallel_for(std::int64_t count, MakeWorker make_worker, int workers = cores()) {
  std::atomic<std::int64_t> next{0};
  std::mutex guard;
  std::exception_ptr error;
  std::int64_t failed = count;
  const SharedInterruption interruption;
  const auto run = [&] {
    const SharedInterruption::Here shares(interruption);
    std::int64_t i = 0;
    try {
      auto work = make_worker();
      while ((i = next.fetch_add(1)) < count) {
        check_interrupt();
        work(i);
      }
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
  std::condition_variable done;
  std::int64_t running = 0;  // others
  const auto run_other = [&] {
    run();
    const std::lock_guard lock(guard);
    if (--running == 0) done.notify_one();
  };
  std::vector<std::jthread> others;
  for (std::int64_t t = 1; t < threads; ++t) {
    {
      const std::lock_guard lock(guard);
      ++running;
    }
    others.emplace_back(run_other);
  }
  run();
  {
    std::unique_lock lock(guard);
    const auto all_are = [&] { return running == 0; };
    while (!done.wait_for(lock, std::chrono::milliseconds(50), all_are)) {
      lock.unlock();
      ends_early();  // the others are only told so
      lock.lock();
    }
  }
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

/// Threads that take the same steps, each of which all of them wait for. If one throws the steps that are left are
/// empty.
class Team {
 public:
  explicit Team(int threads) : threads_(threads), awaited_(threads) {}

  /// Calls work(range, its number) once for every range, by whichever thread comes first.
  template <class Work>
  void share(const Ranges& ranges, Work work) {
    try {
      for (std::int64_t i = 0; !failed_ && (i = next_.fetch_add(1)) < ranges.number();) {
        check_interrupt();
        work(ranges[i], i);
      }
    } catch (...) {
      keep(std::current_exception());
    }
    const int step = step_;
    if (!arrive()) wait_while(step_, step);
  }
  /// Calls work() by one thread.
  template <class Work>
  void once(Work work) {
    share({1, 1}, [&](const CellRange&, std::int64_t) { work(); });
  }

 private:
  template <class Work>
  friend void parallel_team(int threads, Work work);

  /// The first exception is rethrown at the end.
  void keep(std::exception_ptr error) {
    const std::lock_guard lock(guard_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
  }
  /// Says that a thread is through with a step; true if it was the last.
  bool arrive() {
    if (awaited_.fetch_sub(1) > 1) return false;
    next_ = 0;
    awaited_ = threads_.load();
    ++step_;
    step_.notify_all();
    return true;
  }
  /// The others go on without a thread that threw, or was not started.
  void leave(std::exception_ptr error) {
    keep(std::move(error));
    --threads_;
    arrive();
  }

  std::atomic<int> threads_;
  std::atomic<int> awaited_;
  std::atomic<int> step_{0};
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex guard_;
  std::exception_ptr error_;
};

/// Calls work(team) from each thread of a team. The first exception is rethrown here.
template <class Work>
void parallel_team(int threads, Work work) {
  Team team(threads);
  const SharedInterruption interruption;
  const auto run = [&] {
    const SharedInterruption::Here shares(interruption);
    try {
      work(team);
    } catch (...) {
      team.leave(std::current_exception());
    }
  };
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t) {
    try {
      others.emplace_back(run);
    } catch (...) {
      team.leave(std::current_exception());
    }
  }
  run();
  others.clear();  // joins
  if (team.error_) std::rethrow_exception(team.error_);
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
