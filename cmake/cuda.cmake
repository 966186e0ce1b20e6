# SPDX-License-Identifier: Apache-2.0
# With WARPLINE_CUDA, makes nvcc the CUDA compiler: the one on PATH or in CUDACXX, else the one that setup/nvcc
# provides. Sets WARPLINE_DEVICE_CODE: whether device code is compiled, and WARPLINE_CUDA_LIBRARIES, with the CUDA runtime
# as an archive: the program starts on machines that have no driver.

set(WARPLINE_DEVICE_CODE OFF)
set(WARPLINE_CUDA_LIBRARIES)
if(WARPLINE_CUDA)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/setup/nvcc --print OUTPUT_VARIABLE nvcc
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(nvcc)
      set(CMAKE_CUDA_COMPILER ${nvcc})
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
    # Ampere and Hopper, and PTX for later GPUs.
    set(architectures 80-real 90)
    if(NOT WARPLINE_ALL_GPUS)
      # nvcc compiles a file once per architecture. Hopper if all GPUs of this machine are of it or later, else Ampere.
      set(architectures 80)
      execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE gpus ERROR_QUIET)
      if(gpus MATCHES "^(9|[1-9][0-9])\\." AND NOT gpus MATCHES "(^|\n)[1-8]\\.")
        set(architectures 90)
      endif()
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPU architectures")
    if(NOT DEFINED ENV{CUDAHOSTCXX})
      set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
    endif()
    enable_language(CUDA)
    # CMake before 3.26 knows no C++20 of nvcc's.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
      message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is CUDA ${CMAKE_CUDA_COMPILER_VERSION}; the device code needs 12.8 or "
                          "later. Take it off PATH and run setup/nvcc, or build with -DWARPLINE_CUDA=OFF.")
    endif()
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    # Not find_package(CUDAToolkit): before CMake 3.31 it stumbles over CUDA 13.
    find_library(CUDA_RUNTIME_ARCHIVE cudart_static REQUIRED PATHS ${CMAKE_CUDA_HOST_IMPLICIT_LINK_DIRECTORIES})
    add_library(warpline_cuda_runtime INTERFACE)
    target_include_directories(warpline_cuda_runtime SYSTEM INTERFACE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
    target_link_libraries(warpline_cuda_runtime INTERFACE ${CUDA_RUNTIME_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS} rt)
    set(WARPLINE_CUDA_LIBRARIES warpline_cuda_runtime)
    set(WARPLINE_DEVICE_CODE ON)
  else()
    message(STATUS "No nvcc: the device code is not compiled. To have one: setup/nvcc. To say so: -DWARPLINE_CUDA=OFF.")
  endif()
endif()

# For the few places that differ: 1 or 0.
target_compile_definitions(warpline_options INTERFACE WARPLINE_DEVICE_CODE=$<BOOL:${WARPLINE_DEVICE_CODE}>)
