# The cuda engine: one source file for each dimension and order, since headers and host code take nvcc as long as kernels.

set(SOLENOID_CUDA AUTO CACHE STRING
  "Build the CUDA engine: ON, OFF, AUTO (if nvcc is found) or DEVICE (if, besides, this machine has a GPU: for that one)")
set_property(CACHE SOLENOID_CUDA PROPERTY STRINGS AUTO DEVICE ON OFF)
# A build with few orders has few of both equations.
foreach(dim 2 3)
  set(cuda_poisson_orders_${dim}d "${SOLENOID_POISSON_ORDERS_${dim}D}")
  if(DEFINED SOLENOID_CUDA_ORDERS_${dim}D)
    set(cuda_poisson_orders_${dim}d "${SOLENOID_CUDA_ORDERS_${dim}D}")
  endif()
endforeach()
set(SOLENOID_CUDA_ORDERS_2D "${SOLENOID_ORDERS_2D}" CACHE STRING "Orders of the CUDA engine in 2D")
set(SOLENOID_CUDA_ORDERS_3D "${SOLENOID_ORDERS_3D}" CACHE STRING "Orders of the CUDA engine in 3D")
set(SOLENOID_CUDA_POISSON_ORDERS_2D "${cuda_poisson_orders_2d}" CACHE STRING
  "Orders of the CUDA engine in 2D for Poisson's equation")
set(SOLENOID_CUDA_POISSON_ORDERS_3D "${cuda_poisson_orders_3d}" CACHE STRING
  "Orders of the CUDA engine in 3D for Poisson's equation")

# Patches of higher orders do not fit into the shared memory of a multiprocessor (kernels/smoother/general.cuh).
set(largest_cuda_order_3d 6)
set(solenoid_cuda OFF)
if(SOLENOID_CUDA MATCHES "^(AUTO|DEVICE)$")
  if(SOLENOID_CUDA STREQUAL "AUTO" OR EXISTS /dev/nvidiactl)
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      set(solenoid_cuda ON)
    endif()
  endif()
elseif(SOLENOID_CUDA)
  set(solenoid_cuda ON)
endif()

if(solenoid_cuda)
  foreach(order IN LISTS SOLENOID_CUDA_ORDERS_3D)
    if(order GREATER largest_cuda_order_3d)
      message(FATAL_ERROR "SOLENOID_CUDA_ORDERS_3D has the order ${order}; the largest of the CUDA engine in 3D is "
        "${largest_cuda_order_3d}. Give it fewer orders than SOLENOID_ORDERS_3D, or set SOLENOID_CUDA=OFF.")
    endif()
  endforeach()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(architectures native)  # half the time to compile that two take
    if(NOT EXISTS /dev/nvidiactl)
      set(architectures 80-real 90)  # PTX of the last one serves later GPUs
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPU architectures; native: of this machine's GPU")
  endif()
  enable_language(CUDA)
  if(NOT TARGET CUDA::nvToolsExt)  # CMake 3.25 wants it, and CUDA 13 does not have it
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  find_package(CUDAToolkit REQUIRED)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc 12 and later have C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
endif()

function(solenoid_add_cuda_engine library)
  set(sources ${PROJECT_SOURCE_DIR}/src/engine/cuda)
  set(peer ${PROJECT_SOURCE_DIR}/src/engine/distributed/peer)
  # Host code, tested everywhere.
  target_sources(${library} PRIVATE ${sources}/smoother/parity_plan.cpp ${sources}/points/point_program.cpp)
  if(NOT solenoid_cuda)
    target_sources(${library} PRIVATE ${sources}/no_cuda.cpp ${peer}/no_peer.cpp)
    return()
  endif()
  set(templates ${sources}/kernels)
  set(generated ${PROJECT_BINARY_DIR}/src/engine/cuda/kernels)
  set(declarations "")
  set(cuda_sources ${sources}/vector.cu ${sources}/messages.cu ${sources}/dense.cu ${sources}/sparse.cu ${sources}/assembly.cu ${sources}/mac_operator.cu
    ${sources}/ceilings.cu ${sources}/upper_hats.cu ${sources}/convection_outflow.cu ${sources}/points/integrals.cu ${sources}/points/boundary_forces.cu
    ${sources}/smoother/patch_scaling.cu ${sources}/smoother/schur_complement.cu ${sources}/smoother/small_patches.cu)
  foreach(dim 2 3)
    set(stokes_orders ${SOLENOID_CUDA_ORDERS_${dim}D})
    set(poisson_orders ${SOLENOID_CUDA_POISSON_ORDERS_${dim}D})
    set(orders ${stokes_orders} ${poisson_orders})
    list(REMOVE_DUPLICATES orders)
    foreach(order IN LISTS orders)
      set(instances "")
      foreach(equation stokes poisson)
        if(order IN_LIST ${equation}_orders)
          foreach(real float double)
            string(APPEND instances "SOLENOID_CUDA_INSTANCE(${equation}, ${dim}, ${order}, ${real})\n")
          endforeach()
        endif()
      endforeach()
      set(source ${generated}/${dim}d_k${order}.cu)
      configure_file(${templates}/instance.cu.in ${source} @ONLY)
      list(APPEND cuda_sources ${source})
      if(order IN_LIST stokes_orders)
        foreach(part convection sheared_convection flow_integrals flow_moments point_viscosity sheared_point_viscosity varying sheared corrections)
          set(source ${generated}/${part}_${dim}d_k${order}.cu)
          configure_file(${templates}/${part}_instance.cu.in ${source} @ONLY)
          list(APPEND cuda_sources ${source})
        endforeach()
      endif()
      string(APPEND declarations "${instances}")
    endforeach()
  endforeach()
  configure_file(${templates}/dispatch.cpp.in ${generated}/dispatch.cpp @ONLY)
  # The kernels stand apart from the library: nvcc does not know its warning options.
  add_library(solenoid_cuda_kernels OBJECT ${cuda_sources})
  target_include_directories(solenoid_cuda_kernels PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(solenoid_cuda_kernels PRIVATE --expt-relaxed-constexpr --extended-lambda)
  # Kernels of several files have helpers of the same names: not to be compiled as one.
  set_target_properties(solenoid_cuda_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
  target_sources(${library} PRIVATE
    ${sources}/convection.cpp ${sources}/point_viscosity.cpp ${sources}/cuda_engine.cpp ${sources}/cuda_kernels.cpp ${sources}/dense_inverse.cpp ${sources}/device_level.cpp ${sources}/error.cpp ${sources}/flow_points.cpp ${sources}/foreign_array.cpp
    ${sources}/points/device_fields.cpp ${sources}/points/device_forces.cpp ${sources}/points/device_integrator.cpp ${sources}/points/device_load.cpp ${sources}/points/device_moments.cpp
    ${peer}/peer_transport.cpp ${sources}/profile.cpp ${sources}/staging.cpp ${sources}/tiles.cpp ${generated}/dispatch.cpp
    ${sources}/smoother/colour_smoother.cpp ${sources}/smoother/general_smoother.cpp
    ${sources}/smoother/parity_smoother.cpp ${sources}/smoother/parity_tables.cpp ${sources}/smoother/poisson_smoother.cpp
    ${sources}/smoother/device_inverses.cpp ${sources}/smoother/small_smoother.cpp
    ${sources}/smoother/element_smoother.cpp
    $<TARGET_OBJECTS:solenoid_cuda_kernels>)
  target_link_libraries(${library} PRIVATE CUDA::cudart_static)
endfunction()
