#include "base/interrupt.hpp"

#include <utility>

namespace solenoid {
namespace {

// Of this thread: the scope that is asked, and what says that the work ends, its own or that of another thread.
thread_local Interruptible* innermost = nullptr;
thread_local const std::atomic<bool>* ends = nullptr;

}  // namespace

Interruptible::Interruptible(std::function<bool()> asked)
    : asked_(std::move(asked)), outer_(std::exchange(innermost, this)), outer_ends_(std::exchange(ends, &ends_)) {}

Interruptible::~Interruptible() {
  innermost = outer_;
  ends = outer_ends_;
}

bool ends_early() {
  if (ends == nullptr) return false;
  if (Interruptible* const scope = innermost; scope != nullptr) {
    constexpr auto between_looks = std::chrono::milliseconds(50);
    const auto now = Interruptible::Clock::now();
    if (now >= scope->next_) {
      scope->next_ = now + between_looks;
      if (scope->asked_()) scope->ends_ = true;
    }
  }
  return *ends;
}

SharedInterruption::SharedInterruption() : ends_(ends) {}

SharedInterruption::Here::Here(const SharedInterruption& shared) : before_(std::exchange(ends, shared.ends_)) {}
SharedInterruption::Here::~Here() { ends = before_; }

}  // namespace solenoid
