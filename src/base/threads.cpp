#include "base/threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "solenoid/error.hpp"

namespace solenoid {

int cores() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

int threads_for(int asked) {
  if (asked < 0) throw InputError(fmt::format("threads: expected an integer >= 0, got {}", asked));
  constexpr int most_per_core = 8;
  if (asked > most_per_core * cores()) {
    throw InputError(fmt::format(
        "threads: {} are too many for this machine, which runs {} at a time: ask for at most {}, or for 0, which takes "
        "all cores",
        asked, cores(), most_per_core * cores()));
  }
  return asked == 0 ? cores() : asked;
}

}  // namespace solenoid
