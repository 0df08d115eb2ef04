# `format` rewrites the sources in the project's style; the test `format` checks them. Other versions of clang-format
# disagree in details, so only version 14 counts.

find_program(SOLENOID_CLANG_FORMAT NAMES clang-format-14 clang-format)
mark_as_advanced(SOLENOID_CLANG_FORMAT)
set(clang_format_found FALSE)
if(SOLENOID_CLANG_FORMAT)
  execute_process(COMMAND ${SOLENOID_CLANG_FORMAT} --version OUTPUT_VARIABLE clang_format_version)
  if(clang_format_version MATCHES "version 14\\.")
    set(clang_format_found TRUE)
  endif()
endif()

set(format_command ${CMAKE_COMMAND} -D clang_format=${SOLENOID_CLANG_FORMAT} -D source=${PROJECT_SOURCE_DIR}
  -P ${PROJECT_SOURCE_DIR}/cmake/run_format.cmake)
if(clang_format_found AND PROJECT_IS_TOP_LEVEL)
  add_custom_target(format COMMAND ${format_command} VERBATIM)
endif()
