#pragma once
/// \file
/// Threads of this machine.

#include <atomic>

namespace solenoid {

/// Waits until `value` is not `old` any more: looks often, as what threads do together takes microseconds, then sleeps.
template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  for (int look = 0; look < 4000; ++look) {
    if (value.load(std::memory_order_acquire) != old) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  value.wait(old, std::memory_order_acquire);
}

/// Threads that the machine runs at a time for this process, at least 1: the cores that it is bound to.
int cores();

/// Threads of a CPU engine, asked for as an option: 0 for all cores. Threads wait for each other in every step, so that
/// a solve with far more than the machine runs does not end. \throws InputError if asked is negative or more than eight
/// for each core
int threads_for(int asked);

}  // namespace solenoid
