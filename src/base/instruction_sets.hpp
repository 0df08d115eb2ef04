#pragma once
/// \file
/// Instruction sets that kernels are compiled for (cmake/cpu_kernels.cmake).

#include <array>
#include <string_view>

namespace solenoid {

/// The best one first.
inline constexpr std::array<std::string_view, 4> instruction_sets{"native", "v4", "v3", "baseline"};

/// `native` and `baseline` are what the compiler made for this machine; v3 and v4 are x86-64 levels.
inline bool is_supported(std::string_view instruction_set) {
#if defined(__x86_64__)
  if (instruction_set == "v4") return __builtin_cpu_supports("x86-64-v4");
  if (instruction_set == "v3") return __builtin_cpu_supports("x86-64-v3");
#endif
  return instruction_set == "native" || instruction_set == "baseline";
}

}  // namespace solenoid
