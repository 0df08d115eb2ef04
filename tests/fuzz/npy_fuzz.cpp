// Fuzz target of the reader of .npy headers: any bytes give a header or an InputError, nothing else. How to run it:
// docs/building.md.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "image/array_file.hpp"
#include "solenoid/error.hpp"

// Whether it is a header.
bool read_header(std::string_view text) {
  try {
    const solenoid::NpyHeader header = solenoid::parse_npy_header(text);
    return header.bytes <= static_cast<std::int64_t>(text.size());
  } catch (const solenoid::InputError&) {
    return false;
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_header({reinterpret_cast<const char*>(data), size});
  return 0;
}
