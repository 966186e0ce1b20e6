# SPDX-License-Identifier: Apache-2.0
# Compiler options and the libraries that modules may name.

find_package(Threads REQUIRED)
if(WARPLINE_STATIC)
  set(OPENSSL_USE_STATIC_LIBS ON)
endif()
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
if(WARPLINE_DATAPLANE)
  find_package(PkgConfig REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json REQUIRED)
endif()
if(WARPLINE_STATIC)
  include(static_libraries)
else()
  find_package(fmt REQUIRED)
endif()
if(WARPLINE_DATAPLANE AND NOT WARPLINE_STATIC)
  find_package(spdlog REQUIRED)
  pkg_check_modules(dpdk REQUIRED IMPORTED_TARGET libdpdk>=22.11)
  pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)
  pkg_check_modules(pcap REQUIRED IMPORTED_TARGET libpcap)
  # HTTP of libevent: its core, and what stands on it.
  find_library(EVENT_CORE_LIBRARY event_core REQUIRED)
  find_library(EVENT_EXTRA_LIBRARY event_extra REQUIRED)
  find_library(SECCOMP_LIBRARY seccomp REQUIRED)
  # Drivers and buses whose own calls the program uses; pkg-config names only DPDK's libraries.
  find_library(DPDK_NET_RING_LIBRARY rte_net_ring REQUIRED)
  find_library(DPDK_BUS_VDEV_LIBRARY rte_bus_vdev REQUIRED)
endif()

# Warnings, optimisation and sanitizers for everything that is ours.
add_library(warpline_options INTERFACE)
target_include_directories(warpline_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
set(cxx_options -Wall -Wextra -Wshadow -Wnon-virtual-dtor $<$<BOOL:${WARPLINE_WERROR}>:-Werror>
                # GCC 12 sees overlaps in std::string that are none (PR 105651), and in a source that is compiled together
                # with others a header's type that leaks an anonymous namespace's.
                $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict$<SEMICOLON>-Wno-subobject-linkage>)
target_compile_options(warpline_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${cxx_options}>
                       $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra
                                                  $<$<BOOL:${WARPLINE_WERROR}>:--Werror=all-warnings -Xcompiler=-Werror>>)
# What is compiled for a shared library may be inlined as in a program: nobody replaces a function of ours.
target_compile_options(warpline_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
# GCC collects its garbage when its memory has grown by a half, and takes a tenth of its time for that: let it grow first.
target_compile_options(warpline_options INTERFACE
                       "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-expand=300 --param ggc-min-heapsize=524288>")
# No path of this machine in a program, and what one clone compiled serves another.
target_compile_options(warpline_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
target_link_libraries(warpline_options INTERFACE Threads::Threads)
if(WARPLINE_SANITIZE)
  target_compile_options(warpline_options INTERFACE -fsanitize=${WARPLINE_SANITIZE} -fno-sanitize-recover=all
                                                   -fno-omit-frame-pointer)
  target_link_options(warpline_options INTERFACE -fsanitize=${WARPLINE_SANITIZE})
endif()
if(WARPLINE_FUZZ)
  target_compile_options(warpline_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(NOT WARPLINE_DATAPLANE)
  return()
endif()
set(EVENT_HTTP_LIBRARIES ${EVENT_EXTRA_LIBRARY} ${EVENT_CORE_LIBRARY})

# DPDK's headers are not ours: no warnings from them. What C++20 deprecates about volatile, they use. Its compiler options
# are the host compiler's.
set_target_properties(PkgConfig::dpdk PROPERTIES SYSTEM ON)
get_target_property(dpdk_includes PkgConfig::dpdk INTERFACE_INCLUDE_DIRECTORIES)
if(dpdk_includes)
  set_target_properties(PkgConfig::dpdk PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${dpdk_includes}")
endif()
get_target_property(dpdk_options PkgConfig::dpdk INTERFACE_COMPILE_OPTIONS)
if(dpdk_options)
  set_target_properties(PkgConfig::dpdk PROPERTIES INTERFACE_COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:CXX>:${dpdk_options}>")
endif()
