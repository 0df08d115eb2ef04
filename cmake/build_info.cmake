# build_info.hpp: what `solenoid info` says about the build. All but the commit is known when CMake configures;
# the commit is asked for at every build, and the header is rewritten only if something changed.

list(JOIN SOLENOID_CPU_TARGETS ", " cpu_targets)
# Architectures: 80-real is code for sm_80, 90-virtual PTX, 90 both.
set(cuda_build "")
if(solenoid_cuda)
  foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
    string(REGEX REPLACE "-.*" "" number ${architecture})
    if(NOT architecture MATCHES "-virtual")
      list(APPEND cuda_build "sm_${number}")
    endif()
    if(NOT architecture MATCHES "-real")
      list(APPEND cuda_build "PTX ${number}")
    endif()
  endforeach()
  list(JOIN cuda_build ", " cuda_build)
  foreach(dim 2 3)
    list(JOIN SOLENOID_CUDA_ORDERS_${dim}D ", " cuda_orders)
    list(JOIN SOLENOID_CUDA_POISSON_ORDERS_${dim}D ", " cuda_poisson_orders)
    string(APPEND cuda_build "; ${dim}D orders ${cuda_orders}, of Poisson's equation ${cuda_poisson_orders}")
  endforeach()
endif()
set(library_kind "static")
if(BUILD_SHARED_LIBS)
  set(library_kind "shared")
endif()
# Name, version, licence (SPDX). Reasons and lowest versions: packaging/dependencies.md.
set(dependencies "")
function(add_dependency_info name version licence)
  string(APPEND dependencies "    {\"${name}\", \"${version}\", \"${licence}\"},\n")
  set(dependencies "${dependencies}" PARENT_SCOPE)
endfunction()
add_dependency_info("CLI11" "${CLI11_VERSION}" "BSD-3-Clause")
add_dependency_info("Eigen" "${Eigen3_VERSION}" "MPL-2.0")
add_dependency_info("fmt" "${fmt_VERSION}" "MIT")
add_dependency_info("libpng" "${PNG_VERSION_STRING}" "libpng-2.0")
add_dependency_info("muParser" "${muparser_VERSION}" "BSD-2-Clause")
add_dependency_info("nlohmann-json" "${nlohmann_json_VERSION}" "MIT")
add_dependency_info("toml++" "${tomlplusplus_VERSION}" "MIT")
add_dependency_info("zlib" "${ZLIB_VERSION_STRING}" "Zlib")
if(solenoid_hdf5)
  add_dependency_info("HDF5" "${HDF5_VERSION}" "BSD-3-Clause")
endif()
if(solenoid_mpi)
  add_dependency_info("MPI" "${MPI_CXX_VERSION}" "BSD-3-Clause")
endif()
if(solenoid_cuda)
  add_dependency_info("CUDA runtime" "${CUDAToolkit_VERSION}" "LicenseRef-NVIDIA-CUDA")
endif()
set(commit "@commit@")  # stays a placeholder in the first pass
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.hpp.in ${PROJECT_BINARY_DIR}/build_info.hpp.in @ONLY)

set(build_info_header ${PROJECT_BINARY_DIR}/generated/build_info.hpp)
add_custom_target(solenoid_commit
  COMMAND ${CMAKE_COMMAND} -D source=${PROJECT_SOURCE_DIR} -D template=${PROJECT_BINARY_DIR}/build_info.hpp.in
          -D header=${build_info_header} -P ${CMAKE_CURRENT_LIST_DIR}/commit.cmake
  BYPRODUCTS ${build_info_header}
  COMMENT "Looking up the commit"
  VERBATIM)

add_library(solenoid_build_info INTERFACE)
target_include_directories(solenoid_build_info INTERFACE ${PROJECT_BINARY_DIR}/generated)
add_dependencies(solenoid_build_info solenoid_commit)
