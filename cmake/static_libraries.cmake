# SPDX-License-Identifier: Apache-2.0
# The libraries of toolchain.cmake for programs that need nothing but glibc where they run (WARPLINE_STATIC). DPDK and
# libpcap come from their .a; fmt, spdlog and toml++, which Debian has as shared libraries only, from their headers.

# What is linked in and never called stays out.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections> $<$<COMPILE_LANGUAGE:CXX>:-fdata-sections>)
add_link_options(LINKER:--gc-sections)

foreach(name fmt::fmt spdlog::spdlog PkgConfig::tomlplusplus PkgConfig::dpdk PkgConfig::pcap)
  add_library(${name} INTERFACE IMPORTED)
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(spdlog::spdlog INTERFACE fmt::fmt)
target_compile_definitions(PkgConfig::tomlplusplus INTERFACE TOML_HEADER_ONLY=1)

# warpline_archive(RESULT ARCHIVE): what to link for an archive of Debian's. Theirs are compiled for programs, which may
# refer to stdin, stdout and stderr as a module may not: in what Python loads those are variables of ours.
add_library(warpline_module_streams STATIC ${CMAKE_CURRENT_LIST_DIR}/module_streams.cc)
set(is_module $<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>)
function(warpline_archive result archive)
  cmake_path(GET archive FILENAME name)
  set(copy ${PROJECT_BINARY_DIR}/module_archives/${name})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/module_archives)
  set(renamed)
  foreach(stream stdin stdout stderr)
    list(APPEND renamed --redefine-sym ${stream}=warpline_module_${stream})
  endforeach()
  execute_process(COMMAND ${CMAKE_OBJCOPY} ${renamed} ${archive} ${copy} COMMAND_ERROR_IS_FATAL ANY)
  set(${result} $<IF:${is_module},${copy},${archive}> PARENT_SCOPE)
endfunction()

find_library(EVENT_CORE_LIBRARY libevent_core.a REQUIRED)
find_library(EVENT_EXTRA_LIBRARY libevent_extra.a REQUIRED)

find_library(SECCOMP_LIBRARY libseccomp.a REQUIRED)

# libpcap.a but for its capture source that would bring in D-Bus and systemd.
add_library(warpline_pcap_without_dbus STATIC ${CMAKE_CURRENT_LIST_DIR}/pcap_without_dbus.cc)
find_library(PCAP_ARCHIVE libpcap.a REQUIRED)
warpline_archive(pcap_archive ${PCAP_ARCHIVE})
target_link_libraries(PkgConfig::pcap INTERFACE $<LINK_LIBRARY:WHOLE_ARCHIVE,warpline_pcap_without_dbus> ${pcap_archive})

# Of the archives that pkg-config names: drivers register themselves as they are loaded, so all of theirs is linked;
# of the libraries, what is used.
set(drivers bus_pci bus_vdev mempool_ring mempool_stack net_af_packet net_memif net_null net_pcap net_ring net_tap)
set(nic_drivers bus_auxiliary common_iavf common_mlx5 net_e1000 net_ena net_i40e net_iavf net_ice net_igc net_ixgbe
                net_mlx5 net_virtio net_vmxnet3)
set(driver_kinds "^(baseband|bus|common|compress|crypto|dma|event|gpu|mempool|net|raw|regex|vdpa)_")
pkg_check_modules(dpdk REQUIRED libdpdk>=22.11)
string(REGEX MATCHALL "librte_[a-z0-9_]+\\.a" names "${dpdk_STATIC_LDFLAGS}")
list(REMOVE_DUPLICATES names)
set(driver_archives)
set(nic_driver_archives)
set(library_archives)
foreach(name IN LISTS names)
  string(REGEX REPLACE "librte_(.*)\\.a" "\\1" stem ${name})
  find_library(DPDK_${stem}_ARCHIVE ${name} HINTS ${dpdk_STATIC_LIBRARY_DIRS} REQUIRED)
  mark_as_advanced(DPDK_${stem}_ARCHIVE)
  if(stem IN_LIST drivers)
    list(APPEND driver_archives ${DPDK_${stem}_ARCHIVE})
  elseif(stem IN_LIST nic_drivers)
    list(APPEND nic_driver_archives ${DPDK_${stem}_ARCHIVE})
  elseif(NOT stem MATCHES "${driver_kinds}")
    list(APPEND library_archives ${DPDK_${stem}_ARCHIVE})
  endif()
endforeach()
foreach(name bsd md numa fdt)
  find_library(${name}_ARCHIVE lib${name}.a)
  mark_as_advanced(${name}_ARCHIVE)
  if(${name}_ARCHIVE AND name STREQUAL "numa")
    # Its archive has thread-local variables that only a program can have: a wheel brings the shared library along.
    list(APPEND library_archives $<IF:${is_module},numa,${numa_ARCHIVE}>)
  elseif(${name}_ARCHIVE)
    warpline_archive(archive ${${name}_ARCHIVE})
    list(APPEND library_archives ${archive})
  endif()
endforeach()
# net_pcap's, which may come behind what else uses it, and behind what stands in for a source of it.
list(APPEND driver_archives warpline_pcap_without_dbus)
list(APPEND library_archives ${pcap_archive} $<${is_module}:warpline_module_streams>)

target_compile_options(PkgConfig::dpdk INTERFACE ${dpdk_CFLAGS_OTHER})
target_include_directories(PkgConfig::dpdk INTERFACE ${dpdk_INCLUDE_DIRS})
target_link_libraries(PkgConfig::dpdk INTERFACE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${driver_archives}>"
                                                "$<LINK_GROUP:RESCAN,${library_archives}>"
                                                PkgConfig::pcap Threads::Threads ${CMAKE_DL_LIBS} m)
# Among the drivers already.
set(DPDK_NET_RING_LIBRARY PkgConfig::dpdk)
set(DPDK_BUS_VDEV_LIBRARY PkgConfig::dpdk)

# For the program, not for each test: the NICs that a GPU host may have.
add_library(warpline_nic_drivers INTERFACE)
foreach(name mlx5 ibverbs nl-route-3 nl-3)
  find_library(${name}_ARCHIVE lib${name}.a REQUIRED)
  mark_as_advanced(${name}_ARCHIVE)
  warpline_archive(archive ${${name}_ARCHIVE})
  list(APPEND nic_libraries ${archive})
endforeach()
target_link_libraries(warpline_nic_drivers INTERFACE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${nic_driver_archives}>"
                                                     "$<LINK_GROUP:RESCAN,${nic_libraries};${library_archives}>" PkgConfig::dpdk)
