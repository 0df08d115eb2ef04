#pragma once
/// \file
/// How work looks whether it is to end early. Whatever may take a second looks more often than that: loops of
/// base/parallel.hpp before each piece, kernels of the cpu engine before each and between batches of patches,
/// iterations before each.

#include <atomic>

#include "solenoid/interrupt.hpp"

namespace solenoid {

/// Whether the innermost scope of this thread (Interruptible), or of the one whose work it shares, was asked to end.
/// Nanoseconds.
bool ends_early();

/// While one of these lives check_interrupt() does nothing: ranks that work together end together, where they have
/// agreed to (engine/distributed/).
class DeferredInterruption {
 public:
  DeferredInterruption() { ++living; }
  ~DeferredInterruption() { --living; }
  DeferredInterruption(const DeferredInterruption&) = delete;
  DeferredInterruption& operator=(const DeferredInterruption&) = delete;
  static bool now() { return living.load(std::memory_order_relaxed) > 0; }

 private:
  static inline std::atomic<int> living{0};
};

/// \throws Interrupted if so.
inline void check_interrupt() {
  if (!DeferredInterruption::now() && ends_early()) throw Interrupted("interrupted");
}

/// Lets threads that share the work of another end with it.
class SharedInterruption {
 public:
  /// Made by the thread that has the work.
  SharedInterruption();

  /// In a thread that shares it: while this lives its work ends early once the other one has seen that it is to.
  class Here {
   public:
    explicit Here(const SharedInterruption& shared);
    ~Here();
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

   private:
    const std::atomic<bool>* before_;
  };

 private:
  const std::atomic<bool>* ends_;  // or nullptr
};

}  // namespace solenoid
