#include "engine/cpu/team.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <utility>

#include "base/threads.hpp"

namespace solenoid::cpu {
namespace {

/// While there is one, this thread has zero for numbers that are too small for full precision. They tell nothing, and
/// on x86-64 each takes as long as a hundred others: rounding of components that vanish by symmetry, or a fluid at rest
/// far from what moves, in single precision.
class NoSubnormals {
#if defined(__x86_64__)
 public:
  NoSubnormals() { _mm_setcsr(before_ | flush); }
  ~NoSubnormals() { _mm_setcsr(before_); }
  NoSubnormals(const NoSubnormals&) = delete;
  NoSubnormals& operator=(const NoSubnormals&) = delete;

 private:
  static constexpr unsigned flush = 0x8040;  // results (FTZ) and operands (DAZ)
  const unsigned before_ = _mm_getcsr();
#endif
};

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
  check_interrupt();
  [[maybe_unused]] const NoSubnormals here;
  if (size_ == 1) return work(0);
  work_ = &work;
  interruption_ = SharedInterruption();
  running_.store(size_ - 1, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  take_part(0);
  for (int left = size_ - 1; left != 0; left = running_.load(std::memory_order_acquire)) wait_while(running_, left);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Team::serve(int t) {
  [[maybe_unused]] const NoSubnormals here;
  std::uint32_t seen = 0;
  for (;;) {
    wait_while(round_, seen);
    ++seen;
    if (stop_) return;
    take_part(t);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void Team::take_part(int t) {
  const SharedInterruption::Here shares(interruption_);
  try {
    (*work_)(t);
  } catch (...) {
    const std::lock_guard lock(guard_);
    if (!error_) error_ = std::current_exception();
  }
}

}  // namespace solenoid::cpu
