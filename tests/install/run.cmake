# Script: installs the build in `build` under a temporary prefix, takes the C++ example out of the README, builds it
# against the installed package, with CMake and with pkg-config, and runs it.

set(work ${build}/install_test)
file(REMOVE_RECURSE ${work})

file(READ ${readme} text)
string(FIND "${text}" "```cpp\n" begin)
if(begin EQUAL -1)
  message(FATAL_ERROR "${readme} has no C++ example (a block that begins with ```cpp)")
endif()
math(EXPR begin "${begin} + 7")
string(SUBSTRING "${text}" ${begin} -1 text)
string(FIND "${text}" "```" end)
string(SUBSTRING "${text}" 0 ${end} text)
file(WRITE ${work}/example.cpp "${text}")

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${work} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${source} -B ${work}/build -G ${generator}
  -D CMAKE_BUILD_TYPE=${build_type} -D CMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${flags}"
  -D CMAKE_PREFIX_PATH=${work}/prefix -D example=${work}/example.cpp -D version=${version})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
run(${work}/prefix/bin/solenoid info)

find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE pc ${work}/prefix/*/solenoid.pc)
  get_filename_component(folder ${pc} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  execute_process(COMMAND ${pkg_config} --cflags --libs solenoid = ${version}
    OUTPUT_VARIABLE options OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(options UNIX_COMMAND "${flags} -std=c++20 example.cpp -o with_pkg_config ${options}")
  get_filename_component(library_folder ${folder} DIRECTORY)
  run(${compiler} ${options} -Wl,-rpath,${library_folder})
  run(${work}/with_pkg_config)
endif()
