# Script: writes `header` from `template` with the commit checked out in `source`, "unknown" if there is none.

set(commit unknown)
find_program(git git)
if(git AND EXISTS ${source}/.git)
  execute_process(COMMAND ${git} -C ${source} describe --always --abbrev=12 --dirty --exclude=*
    OUTPUT_VARIABLE description OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(commit ${description})
  endif()
endif()
configure_file(${template} ${header} @ONLY)
