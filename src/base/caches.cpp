#include "base/caches.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace solenoid {

std::int64_t cache_bytes(int level) {
  for (int index = 0;; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    int this_level = 0;
    std::int64_t size = 0;
    char unit = ' ';
    std::string type;
    if (!(std::ifstream(folder + "level") >> this_level)) break;
    std::ifstream(folder + "size") >> size >> unit;
    std::ifstream(folder + "type") >> type;
    if (this_level == level && type != "Instruction" && size > 0) {
      return size * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
    }
  }
  return level == 2 ? 1 << 19 : 1 << 22;
}

}  // namespace solenoid
