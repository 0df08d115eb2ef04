#pragma once
/// \file
/// A team of threads that stays alive between kernels, so that a parallel region costs microseconds.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/interrupt.hpp"

namespace solenoid::cpu {

class Team {
 public:
  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int size() const { return size_; }
  /// work(t) for t = 0..size-1, each on its own thread; returns when all are done. On x86-64 numbers below those of
  /// full precision are zero there. \throws what one of them threw, and Interrupted, if nothing is begun any more.
  void run(const std::function<void(int)>& work);

  /// The part of [0, count) that thread t works on: contiguous, starting at multiples of `grain`, always the same.
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  [[nodiscard]] Range range(std::int64_t count, int t, std::int64_t grain = 1) const {
    const std::int64_t grains = (count + grain - 1) / grain;
    return {std::min(count, grains * t / size_ * grain), std::min(count, grains * (t + 1) / size_ * grain)};
  }
  /// work(piece) for the pieces of `size` that a thread's part consists of, with a look before each whether to end
  /// early.
  template <class Work>
  static void in_pieces(Range range, std::int64_t size, Work&& work) {
    for (; range.begin < range.end; range.begin += size) {
      check_interrupt();
      work(Range{range.begin, std::min(range.end, range.begin + size)});
    }
  }

 private:
  void serve(int t);
  void take_part(int t);

  int size_;
  const std::function<void(int)>* work_ = nullptr;
  SharedInterruption interruption_;  // of the thread that runs the work
  std::mutex guard_;
  std::exception_ptr error_;
  alignas(64) std::atomic<std::uint32_t> round_{0};  // a new value starts a region
  alignas(64) std::atomic<int> running_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace solenoid::cpu
