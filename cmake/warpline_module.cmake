# SPDX-License-Identifier: Apache-2.0
# warpline_module(NAME LEVEL n [USES modules...] [EXTERNAL targets...])
#
# Makes the library warpline_NAME from src/NAME/*.cc and, with tests on, one test program from its *_test.cc and one
# benchmark from its *_bench.cc. A folder without sources makes a header-only target. Where there is an nvcc, *.cu are
# compiled for the device (warpline_NAME_device): a check that the device takes them, linked into nothing yet.

if(WARPLINE_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  add_custom_target(unit_tests)
  add_library(warpline_testing INTERFACE)
  target_link_libraries(warpline_testing INTERFACE GTest::gtest GTest::gmock GTest::gtest_main ${RAPIDCHECK_LIBRARY})
endif()

# Each header compiles alone. Those with a source or test of their name show it there, being its first #include; the
# others get a source that includes nothing else.
function(warpline_check_headers name folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.h)
  set(alone)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "\\.h$" "" stem ${header})
    if(NOT EXISTS ${folder}/${stem}.cc AND NOT EXISTS ${folder}/${stem}_test.cc)
      set(source ${PROJECT_BINARY_DIR}/headers/${name}/${stem}.cc)
      file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${name}/${header}\"\n")
      list(APPEND alone ${source})
    endif()
  endforeach()
  if(alone)
    add_library(warpline_${name}_headers OBJECT ${alone})
    target_link_libraries(warpline_${name}_headers PRIVATE warpline_${name})
  endif()
endfunction()

function(warpline_module name)
  cmake_parse_arguments(arg "" "LEVEL" "USES;EXTERNAL" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")

  list(TRANSFORM arg_USES PREPEND warpline_ OUTPUT_VARIABLE uses)
  if(sources)
    add_library(warpline_${name} STATIC ${sources})
    target_link_libraries(warpline_${name} PUBLIC warpline_options ${uses} ${arg_EXTERNAL})
  else()
    add_library(warpline_${name} INTERFACE)
    target_link_libraries(warpline_${name} INTERFACE warpline_options ${uses} ${arg_EXTERNAL})
  endif()

  if(WARPLINE_TESTS AND NOT WARPLINE_SANITIZE)
    warpline_check_headers(${name} ${folder})
  endif()

  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${folder}/*.cu)
  if(WARPLINE_DEVICE_CODE AND kernels)
    add_library(warpline_${name}_device OBJECT ${kernels})
    target_include_directories(warpline_${name}_device PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_compile_options(warpline_${name}_device PRIVATE --Werror=all-warnings --expt-relaxed-constexpr
                                                           -Xcompiler=-Wall,-Wextra,-Werror)
  endif()

  if(WARPLINE_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE warpline_${name} warpline_testing)
    add_test(NAME unit.${name} COMMAND ${name}_test)
    add_dependencies(unit_tests ${name}_test)
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 300)
  endif()
  if(WARPLINE_TESTS AND benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE warpline_${name} benchmark::benchmark_main)
  endif()
endfunction()
