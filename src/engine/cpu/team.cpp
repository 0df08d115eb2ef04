#include "engine/cpu/team.hpp"

#include "base/threads.hpp"

namespace solenoid::cpu {

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
  for (int left = size_ - 1; left != 0; left = running_.load(std::memory_order_acquire)) wait_while(running_, left);
}

void Team::serve(int t) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_while(round_, seen);
    ++seen;
    if (stop_) return;
    (*work_)(t);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace solenoid::cpu
