# The Python package with library and programs of another build of these sources, SOLENOID_BUILD: they are installed into
# this one, and found there.

if(NOT EXISTS ${SOLENOID_BUILD}/cmake_install.cmake)
  message(FATAL_ERROR "SOLENOID_BUILD: no build of solenoid in '${SOLENOID_BUILD}', expected the folder of one, such as "
    "build/release")
endif()
set(installed ${PROJECT_BINARY_DIR}/other_build)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${SOLENOID_BUILD} --prefix ${installed}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
find_package(solenoid ${PROJECT_VERSION} EXACT REQUIRED CONFIG PATHS ${installed} NO_DEFAULT_PATH)
get_target_property(kind solenoid::solenoid TYPE)
if(NOT kind STREQUAL "STATIC_LIBRARY")
  message(FATAL_ERROR "SOLENOID_BUILD: the library in '${SOLENOID_BUILD}' is a shared one, expected a static one, which "
    "becomes part of the package: build it with BUILD_SHARED_LIBS=OFF")
endif()

add_library(solenoid_internal INTERFACE)
target_include_directories(solenoid_internal INTERFACE src ${SOLENOID_BUILD}/generated)
target_link_libraries(solenoid_internal INTERFACE
  solenoid::solenoid solenoid_warnings ${linked_dependencies} ${header_dependencies})
set(solenoid_programs ${installed}/bin/solenoid ${installed}/bin/solenoid-studies)
