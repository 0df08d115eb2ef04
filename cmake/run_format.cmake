# Script: formats the sources in place, or with -D check=ON only says which lines would change.

file(GLOB_RECURSE files ${source}/include/*.hpp ${source}/src/*.[ch]pp ${source}/src/*.cu ${source}/src/*.cuh
  ${source}/studies/*.[ch]pp ${source}/studies/*.cu ${source}/studies/*.cuh
  ${source}/tests/*.[ch]pp
  ${source}/python/binding/*.[ch]pp)
if(check)
  set(mode --dry-run -Werror)
else()
  set(mode -i)
endif()
execute_process(COMMAND ${clang_format} ${mode} ${files} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "Not in the project's style. To reformat: cmake --build --preset release --target format")
endif()
