#include "base/threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/binding.hpp"
#include "solenoid/error.hpp"

namespace solenoid {

int cores() {
  // What the standard library says may be all of the machine, whatever the process is bound to.
  const std::size_t allowed = allowed_cores().size();
  return static_cast<int>(allowed > 0 ? allowed : std::max<std::size_t>(1, std::thread::hardware_concurrency()));
}

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
