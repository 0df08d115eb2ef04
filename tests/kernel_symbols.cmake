# Script: every symbol that a kernel object shares by name (an inline function, a template) must carry its instruction
# set in its name. Otherwise the linker may keep, say, the AVX-512 copy of std::max for the whole program, which then
# dies of an illegal instruction on a lesser machine.

set(leaks "")
foreach(target IN LISTS targets)
  string(LENGTH ${target} length)
  file(GLOB_RECURSE files ${objects}/${target}_*.o)
  if(NOT files)
    message(FATAL_ERROR "No kernel objects ${objects}/${target}_*.o")
  endif()
  execute_process(COMMAND ${nm} --defined-only --format=posix ${files}
    OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n ]+ [WVu] " weak "${symbols}")
  list(REMOVE_DUPLICATES weak)
  list(FILTER weak EXCLUDE REGEX "${length}${target}|^DW\\.ref\\.")
  list(TRANSFORM weak REPLACE "^(.*) . $" "  ${target}: \\1\n")
  list(APPEND leaks ${weak})
endforeach()
if(leaks)
  list(JOIN leaks "" leaks)
  message(FATAL_ERROR "Shared symbols compiled for one instruction set (read them with c++filt); "
    "put them into the target's namespace or force them inline:\n${leaks}")
endif()
