# SPDX-License-Identifier: Apache-2.0
# warpline_module(NAME ABOUT text [DPDK] [FOLDER folder] [EXCEPT folder] [USES modules...] [EXTERNAL targets...])
#
# ABOUT says what the module is, for the table in ARCHITECTURE.md, which setup/check_layers.py writes. DPDK: its sources may
# call DPDK. USES: whose headers they include, all declared before it; none that they do not.
#
# Makes the library warpline_NAME from the sources under src/warpline/NAME, or under FOLDER (from the project's root),
# less those of its subfolder EXCEPT, which is a module of its own; and, with tests on, one test program from its *_test.*
# and one benchmark from its *_bench.*. A folder without sources makes a header-only target. Where device code is
# compiled, *.cu and what is called *_cuda.cc (also *_cuda_test.cc) are sources; where it is not, *_nocuda.cc are.

# Where the preset asks for unity builds, so many sources of a module or program are compiled as one: headers of libraries are
# half of what the compiler reads. Tests, of which one changes more often than a library, keep the preset's number.
set(WARPLINE_UNITY_SOURCES 16)

if(WARPLINE_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  add_custom_target(unit_tests)
  # Tests are compiled more often than they run; what they test keeps its optimisation. -Og takes GCC a fifth less time than
  # -O1, and -O0 no less than -Og.
  set(test_optimisation -Og)
  if(WARPLINE_SANITIZE)
    set(test_optimisation -O0)
  endif()
  add_library(warpline_test_options INTERFACE)  # tests and the small programs that they start
  target_compile_options(warpline_test_options INTERFACE
                         $<$<COMPILE_LANGUAGE:CXX>:${test_optimisation}>
                         # With little optimisation GCC 14 sees values that are not set where they are.
                         $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  add_library(warpline_testing STATIC ${PROJECT_SOURCE_DIR}/src/warpline/base/property_testing.cc)
  target_link_libraries(warpline_testing PUBLIC GTest::gtest GTest::gmock GTest::gtest_main ${RAPIDCHECK_LIBRARY} warpline_test_options PRIVATE warpline_options)
endif()

# A test that this build cannot have: it is listed as skipped, with the reason. Of a sanitizer's build none is.
function(warpline_skipped_test name reason)
  if(NOT WARPLINE_SANITIZE)
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
  endif()
endfunction()

# What `make test` does not run and so does not build: benchmarks, programs for long runs, and the check that each header
# compiles alone. `make test-long` and `make bench` build it.
add_custom_target(long_build)
function(warpline_long_build)
  set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(long_build ${ARGN})
endfunction()

# warpline_long_tests(NAME...): tests of the calling folder that `make test` leaves to `make test-long`. Those that are not
# there are passed over.
function(warpline_long_tests)
  foreach(name IN LISTS ARGN)
    if(TEST ${name})
      set_property(TEST ${name} APPEND PROPERTY LABELS long)
    endif()
  endforeach()
endfunction()

function(warpline_module_sources folder result)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
  if(WARPLINE_DEVICE_CODE)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${folder}/*.cu)
    # nvcc takes longest of all, so kernels are compiled side by side also by a CMake that would unite them (3.31 does).
    set_source_files_properties(${kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    list(APPEND sources ${kernels})
    list(FILTER sources EXCLUDE REGEX "_nocuda(_test|_bench)?\\.cc$")
  else()
    list(FILTER sources EXCLUDE REGEX "_cuda(_test|_bench)?\\.cc$")
  endif()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# Each header compiles alone. Those with a source or test of their name show it there, being its first #include; the
# others get a source that includes nothing else.
function(warpline_check_headers name folder except)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.h)
  list(FILTER headers EXCLUDE REGEX "^${except}/")
  set(alone)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "\\.h$" "" stem ${header})
    if(NOT EXISTS ${folder}/${stem}.cc AND NOT EXISTS ${folder}/${stem}_test.cc)
      set(source ${PROJECT_BINARY_DIR}/headers/${name}/${stem}.cc)
      file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${folder}/${header}\"\n")
      list(APPEND alone ${source})
    endif()
  endforeach()
  if(alone)
    add_library(warpline_${name}_headers OBJECT ${alone})
    target_link_libraries(warpline_${name}_headers PRIVATE warpline_${name})
    target_compile_options(warpline_${name}_headers PRIVATE -O0)
    set_target_properties(warpline_${name}_headers PROPERTIES UNITY_BUILD OFF)
    warpline_long_build(warpline_${name}_headers)
  endif()
endfunction()

# warpline_folder(FOLDER [USES modules...]): what the sources of a folder outside src/ may include, for setup/check_layers.py.
function(warpline_folder folder)
  cmake_parse_arguments(arg "" "" "USES" ${ARGN})
  foreach(used IN LISTS arg_USES)
    if(NOT TARGET warpline_${used})
      message(FATAL_ERROR "${folder} uses ${used}, which is no module")
    endif()
  endforeach()
endfunction()

# warpline_rooms(FOLDER ROOM...): the subfolders that hold the sources of a folder, lowest first. A source includes
# headers of its own room and of those before it; setup/check_layers.py holds every #include against that.
function(warpline_rooms folder)
  foreach(room IN LISTS ARGN)
    if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/${room})
      message(FATAL_ERROR "${folder} has no room ${room}")
    endif()
  endforeach()
endfunction()

# warpline_optimise(OPTION NAME...): the optimisation that the C++ sources of these modules are compiled with, instead of
# the build's.
function(warpline_optimise option)
  foreach(name IN LISTS ARGN)
    target_compile_options(warpline_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${option}>
                           # With -O1 GCC 14 sees values that are not set where they are.
                           $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  endforeach()
endfunction()

function(warpline_module name)
  cmake_parse_arguments(arg "DPDK" "ABOUT;FOLDER;EXCEPT" "USES;EXTERNAL" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/src/warpline/${name})
  if(arg_FOLDER)
    set(folder ${PROJECT_SOURCE_DIR}/${arg_FOLDER})
  endif()
  warpline_module_sources(${folder} sources)
  if(NOT arg_EXCEPT)
    set(arg_EXCEPT none)
  endif()
  list(FILTER sources EXCLUDE REGEX "^${folder}/${arg_EXCEPT}/|_testing\\.cc$")
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.(cc|cu)$")
  list(FILTER benches INCLUDE REGEX "_bench\\.(cc|cu)$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.(cc|cu)$")

  list(TRANSFORM arg_USES PREPEND warpline_ OUTPUT_VARIABLE uses)
  if(sources)
    add_library(warpline_${name} STATIC ${sources})
    target_link_libraries(warpline_${name} PUBLIC warpline_options ${uses} ${arg_EXTERNAL})
    set_target_properties(warpline_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE ${WARPLINE_UNITY_SOURCES})
  else()
    add_library(warpline_${name} INTERFACE)
    target_link_libraries(warpline_${name} INTERFACE warpline_options ${uses} ${arg_EXTERNAL})
  endif()

  set_target_properties(warpline_${name} PROPERTIES WARPLINE_FOLDER ${folder} WARPLINE_EXCEPT ${arg_EXCEPT})

  if(WARPLINE_TESTS AND NOT WARPLINE_SANITIZE)
    warpline_check_headers(${name} ${folder} ${arg_EXCEPT})
  endif()

  if(WARPLINE_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE warpline_${name} warpline_testing)
    add_test(NAME unit.${name} COMMAND ${name}_test)
    add_dependencies(unit_tests ${name}_test)
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 900)
  endif()
  if(WARPLINE_TESTS AND benches)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE warpline_${name} benchmark::benchmark_main)
    warpline_long_build(${name}_bench)
  endif()
endfunction()
