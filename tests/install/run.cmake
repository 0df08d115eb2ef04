# Script: installs the build in `build` under a temporary prefix, and there builds and runs what the documentation in
# `root` shows: the README's example with the README's lines of CMake, and that of docs/cpp-api.md with its line for
# pkg-config.

set(work ${build}/install_test)
file(REMOVE_RECURSE ${work})

# The first block of a language on a page.
function(write_block page language target)
  file(READ ${root}/${page} text)
  set(fence "```${language}\n")
  string(FIND "${text}" "${fence}" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${page} has no example (a block that begins with ```${language})")
  endif()
  string(LENGTH "${fence}" length)
  math(EXPR begin "${begin} + ${length}")
  string(SUBSTRING "${text}" ${begin} -1 text)
  string(FIND "${text}" "```" end)
  string(SUBSTRING "${text}" 0 ${end} text)
  file(WRITE ${work}/${target} "${text}")
endfunction()
write_block(README.md cpp example.cpp)
write_block(README.md cmake usage.cmake)
write_block(docs/cpp-api.md cpp flow.cpp)
write_block(docs/cpp-api.md sh flow.sh)

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${work} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${root}/tests/install -B ${work}/build -G ${generator}
  -D CMAKE_BUILD_TYPE=${build_type} -D CMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${flags}"
  -D CMAKE_PREFIX_PATH=${work}/prefix -D example=${work}/example.cpp -D usage=${work}/usage.cmake -D version=${version})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/my_program)
run(${work}/prefix/bin/solenoid info)

find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE pc ${work}/prefix/*/solenoid.pc)
  get_filename_component(folder ${pc} DIRECTORY)
  get_filename_component(library_folder ${folder} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  set(ENV{LD_LIBRARY_PATH} ${library_folder}:$ENV{LD_LIBRARY_PATH})
  run(${pkg_config} --exact-version=${version} solenoid)
  file(READ ${work}/flow.sh line)
  string(REGEX REPLACE "^g\\+\\+" "${compiler} ${flags}" line "${line}")
  run(sh -c ${line})
  run(${work}/flow)
endif()
