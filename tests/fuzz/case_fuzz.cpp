// Fuzz target of the case-file reader: any text gives a case or an InputError, nothing else. How to run it:
// docs/building.md.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "solenoid/case.hpp"
#include "solenoid/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto result = solenoid::parse_case({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
    // What was read can be evaluated.
    for (const auto& component : result.problem.force) (void)component({0.25, 0.5, 0.75});
  } catch (const solenoid::InputError&) {
  }
  return 0;
}
