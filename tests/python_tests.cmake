# SPDX-License-Identifier: Apache-2.0
# python_tests(LABEL): one ctest test for each test_*.py of the calling folder, run with the system's Python, whose
# standard library is all they need. Two at once on two cores: their programs spend more time starting and waiting for each
# other than forwarding, and no test asserts how long something took.

find_program(WARPLINE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

# python_long_tests(NAME...): tests of the calling folder that python_tests() made, once more with all their cases, as
# NAME.all for `make test-long`.
function(python_long_tests)
  foreach(name IN LISTS ARGN)
    if(TEST ${name})
      string(REGEX REPLACE "^.*\\." "test_" module ${name})
      get_property(environment TEST ${name} PROPERTY ENVIRONMENT)
      add_test(NAME ${name}.all COMMAND ${WARPLINE_PYTHON} -m unittest -v ${module} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
      set_tests_properties(${name}.all PROPERTIES TIMEOUT 900 ENVIRONMENT "${environment};WARPLINE_LONG=1")
      warpline_long_tests(${name}.all)
    endif()
  endforeach()
endfunction()

function(python_tests label)
  if(NOT TARGET warpline)
    return()
  endif()
  file(GLOB scripts CONFIGURE_DEPENDS test_*.py)
  set(environment WARPLINE_BINARY=$<TARGET_FILE:warpline> WARPLINE_HAS_VNIC=$<TARGET_EXISTS:warpline_vnic>
                  PYTHONPATH=${PROJECT_SOURCE_DIR}/tests PYTHONDONTWRITEBYTECODE=1)
  if(TARGET malformed_pcap)
    list(APPEND environment WARPLINE_MALFORMED_PCAP=$<TARGET_FILE:malformed_pcap>)
  endif()
  if(TARGET frame_sink)
    list(APPEND environment WARPLINE_FRAME_SINK=$<TARGET_FILE:frame_sink>)
  endif()
  if(TARGET warpline_library_client)
    list(APPEND environment LIBWARPLINE_CLIENT=$<TARGET_FILE:warpline_library_client>)
  endif()
  list(APPEND environment WARPLINE_RELAYED_STREAMS=$<TARGET_FILE:example_relayed_streams>)
  foreach(script ${scripts})
    cmake_path(GET script STEM module)
    string(REGEX REPLACE "^test_" "" name ${module})
    add_test(NAME ${label}.${name} COMMAND ${WARPLINE_PYTHON} -m unittest -v ${module}
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set_tests_properties(${label}.${name} PROPERTIES LABELS ${label} TIMEOUT 600
                                                     ENVIRONMENT "${environment}")
  endforeach()
endfunction()
