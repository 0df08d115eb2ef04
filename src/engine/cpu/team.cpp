#include "engine/cpu/team.hpp"

namespace solenoid::cpu {
namespace {

// Regions follow each other closely inside a solve: look often before going to sleep.
constexpr int spins = 4000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Team::Team(int size) : size_(size) {
  for (int t = 1; t < size; ++t) threads_.emplace_back([this, t] { serve(t); });
}

Team::~Team() {
  stop_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Team::run(const std::function<void(int)>& work) {
  if (size_ == 1) return work(0);
  work_ = &work;
  running_.store(size_ - 1, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  work(0);
  for (int spin = 0;; ++spin) {
    const int left = running_.load(std::memory_order_acquire);
    if (left == 0) return;
    if (spin < spins) {
      pause();
    } else {
      running_.wait(left, std::memory_order_acquire);
    }
  }
}

void Team::serve(int t) {
  std::uint32_t seen = 0;
  for (;;) {
    for (int spin = 0; round_.load(std::memory_order_acquire) == seen; ++spin) {
      if (spin < spins) {
        pause();
      } else {
        round_.wait(seen, std::memory_order_acquire);
      }
    }
    ++seen;
    if (stop_) return;
    (*work_)(t);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace solenoid::cpu
