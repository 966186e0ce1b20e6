# SPDX-License-Identifier: Apache-2.0
# The libraries that other projects link, each of some modules: warpline::client, warpline::packet, warpline::message,
# warpline::dataplane, shared, and the same archived as warpline::packet_static and so on; with their headers, CMake package and pkg-config files.
#
# A shared library shows what is in the namespace warpline, that of client what begins with warpline_client_, and nothing else. Its soname has major and minor version: what
# differs in either is another ABI (docs/library.md).

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(components)
set(warpline_abi ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
file(RELATIVE_PATH prefix_from_pkgconfig /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/warpline)
configure_file(${PROJECT_SOURCE_DIR}/cmake/version.h.in ${PROJECT_BINARY_DIR}/include/warpline/version.h)
foreach(component client packet)
  install(FILES ${PROJECT_BINARY_DIR}/include/warpline/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warpline COMPONENT ${component})
endforeach()

# The headers that programs include: each has those of its module, and a small program as an example.
set(door_client client.h)
set(door_packet packet.h)
set(door_message message.h rpc.h)
set(door_dataplane forward.h ingest.h stream.h workload.h gpu_work.cuh)

# warpline_component(NAME MODULES modules... [NEEDS components...] [LINKS targets...] [INSIDE targets...] [REQUIRES pkg-config modules...] SUMMARY text)
function(warpline_component name)
  cmake_parse_arguments(arg "" "SUMMARY" "MODULES;NEEDS;LINKS;INSIDE;REQUIRES" ${ARGN})
  set(objects)
  foreach(module IN LISTS arg_MODULES)
    get_target_property(type warpline_${module} TYPE)
    if(NOT type STREQUAL INTERFACE_LIBRARY)
      list(APPEND objects $<TARGET_OBJECTS:warpline_${module}>)
    endif()
    get_target_property(folder warpline_${module} WARPLINE_FOLDER)
    get_target_property(except warpline_${module} WARPLINE_EXCEPT)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src OUTPUT_VARIABLE place)
    install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${place} COMPONENT ${name}
            FILES_MATCHING REGEX "\\.(h|cuh)$" PATTERN internal EXCLUDE PATTERN ${except} EXCLUDE REGEX "_testing\\.(h|cuh)$" EXCLUDE
            REGEX "/(with_workload|built_in_consumers)\\.h$" EXCLUDE)  # each includes a header of the builder's own
  endforeach()
  list(TRANSFORM door_${name} PREPEND ${PROJECT_SOURCE_DIR}/include/warpline/ OUTPUT_VARIABLE door)
  install(FILES ${door} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warpline COMPONENT ${name})
  foreach(kind SHARED STATIC)
    set(suffix)
    if(kind STREQUAL STATIC)
      set(suffix _static)
    endif()
    set(library warpline_library_${name}${suffix})
    add_library(${library} ${kind} ${objects})
    add_library(warpline::${name}${suffix} ALIAS ${library})
    set_target_properties(${library} PROPERTIES OUTPUT_NAME warpline_${name} EXPORT_NAME ${name}${suffix} LINKER_LANGUAGE CXX
                                                ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
                                                VERSION ${PROJECT_VERSION} SOVERSION ${warpline_abi})
    set_target_properties(${library} PROPERTIES INSTALL_RPATH $ORIGIN)
    if(NOT name STREQUAL client)  # which C programs link
      target_compile_features(${library} PUBLIC cxx_std_20)
    endif()
    target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
    list(TRANSFORM arg_NEEDS REPLACE "(.+)" "warpline_library_\\1${suffix}" OUTPUT_VARIABLE needed)
    target_link_libraries(${library} PUBLIC ${needed} ${arg_LINKS} Threads::Threads)
    # Inside of the shared library; who links the archive links its archive, too, which is installed beside it.
    target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:${arg_INSIDE}>)
    if(kind STREQUAL SHARED)
      target_link_options(${library} PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map LINKER:--no-undefined)
      set_target_properties(${library} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    endif()
    install(TARGETS ${library} EXPORT warpline_${name}_targets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name})
  endforeach()
  install(EXPORT warpline_${name}_targets NAMESPACE warpline:: FILE warpline-${name}-targets.cmake DESTINATION ${package_folder}
          COMPONENT ${name})

  list(TRANSFORM arg_NEEDS PREPEND "warpline-" OUTPUT_VARIABLE requires)
  list(APPEND requires ${arg_REQUIRES})
  list(JOIN requires ", " requires)
  set(summary ${arg_SUMMARY})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/component.pc.in ${PROJECT_BINARY_DIR}/warpline-${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/warpline-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${name})
  set(components ${components} ${name} PARENT_SCOPE)
endfunction()

warpline_component(client MODULES client
                   SUMMARY "messages through warpline message daemon, for C and C++")
warpline_component(packet MODULES base packet LINKS fmt::fmt REQUIRES fmt SUMMARY "packet headers: parse, build, checksums")
warpline_component(message MODULES message transport protection rpc NEEDS packet LINKS OpenSSL::Crypto REQUIRES libcrypto
                   SUMMARY "reliable messages and requests over UDP")
if(WARPLINE_DATAPLANE)
  warpline_component(dataplane MODULES batching capture flow inspect gpu machine vnic_api queues handoff route workload runtime port memory datapath ethdev_transport stream stream_port forward
                     router traffic ingest
                     NEEDS message LINKS PkgConfig::dpdk PkgConfig::pcap ${DPDK_NET_RING_LIBRARY} ${DPDK_BUS_VDEV_LIBRARY} spdlog::spdlog
                     INSIDE ${WARPLINE_CUDA_LIBRARIES} REQUIRES libdpdk libpcap spdlog
                     SUMMARY "packets between DPDK ports, host threads and GPUs")
endif()

if(WARPLINE_DEVICE_CODE)
  # In a folder of ours: CUDA's own packages have it beside other libraries.
  install(FILES ${CUDA_RUNTIME_ARCHIVE} DESTINATION ${CMAKE_INSTALL_LIBDIR}/warpline COMPONENT dataplane)
  cmake_path(GET CUDA_RUNTIME_ARCHIVE FILENAME cuda_runtime)
  target_link_libraries(warpline_library_dataplane_static INTERFACE
                        $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/warpline/${cuda_runtime}> ${CMAKE_DL_LIBS} rt)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/warpline-config.cmake.in ${PROJECT_BINARY_DIR}/warpline-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warpline-config-version.cmake COMPATIBILITY SameMinorVersion)
foreach(component client packet)
  install(FILES ${PROJECT_BINARY_DIR}/warpline-config.cmake ${PROJECT_BINARY_DIR}/warpline-config-version.cmake
          DESTINATION ${package_folder} COMPONENT ${component})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/warpline DESTINATION ${CMAKE_INSTALL_DATADIR}/warpline/python COMPONENT client
        FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)
