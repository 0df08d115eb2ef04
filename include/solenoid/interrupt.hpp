#pragma once
/// \file
/// Ending work before it is done: Ctrl-C, a limit of time.

#include <atomic>
#include <chrono>
#include <functional>

#include "solenoid/error.hpp"

namespace solenoid {

bool ends_early();  // base/interrupt.hpp

/// Thrown by a function of the library that was asked to end before it was done. What it was making is not there: no
/// solution, no file. What was there before may be used again.
struct Interrupted : Error {
  using Error::Error;
};

/// Lets functions of the library that this thread calls end early, while it lives:
///
///     std::atomic<bool> stop = false;  // set by a signal handler, for example
///     const Interruptible scope([&] { return stop.load(); });
///     const auto [flow, report] = solve(problem);  // throws Interrupted within a second of stop == true
///
/// Set-up, solves, evaluation and the writing of files can all be ended so. The innermost of several scopes holds.
class Interruptible {
 public:
  /// `asked` says whether to end; it is called from this thread only, at most some ten times a second, and must not
  /// throw.
  explicit Interruptible(std::function<bool()> asked);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  friend bool ends_early();
  using Clock = std::chrono::steady_clock;

  std::function<bool()> asked_;
  Interruptible* outer_;
  const std::atomic<bool>* outer_ends_;
  std::atomic<bool> ends_{false};
  Clock::time_point next_{};  // look
};

}  // namespace solenoid
