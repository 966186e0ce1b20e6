# SPDX-License-Identifier: Apache-2.0
# The module graph: the one place that says who may use whom. It makes the targets, and setup/check_layers.py holds
# every #include against it. A module uses only modules of lower levels, and only those named here.

include(warpline_module)

warpline_module(base     LEVEL 0 EXTERNAL fmt::fmt)

warpline_module(packet   LEVEL 1 USES base)
warpline_module(config   LEVEL 1 USES base EXTERNAL CLI11::CLI11 PkgConfig::tomlplusplus nlohmann_json::nlohmann_json)
warpline_module(gpu      LEVEL 1 USES base EXTERNAL ${WARPLINE_CUDA_LIBRARIES})

warpline_module(runtime  LEVEL 2 USES base config gpu EXTERNAL ${DPDK_NET_RING_LIBRARY} PkgConfig::dpdk PkgConfig::pcap spdlog::spdlog)
# DPDK calls experimental: rte_dev_dma_map (unchanged since 19.11), rte_intr_instance_alloc and what sets one up (21.11).
target_compile_definitions(warpline_runtime PRIVATE ALLOW_EXPERIMENTAL_API)
# For the public headers of net_vnic, built or not.
target_include_directories(warpline_runtime PUBLIC ${PROJECT_SOURCE_DIR}/drivers)
warpline_module(memory   LEVEL 3 USES base config gpu runtime EXTERNAL PkgConfig::dpdk)
warpline_module(handoff  LEVEL 2 USES base gpu)

warpline_module(route    LEVEL 2 USES base packet)

warpline_module(workload LEVEL 3 USES base packet)
warpline_module(message  LEVEL 3 USES base packet)

# What --workload user does. A header of your own: -DWARPLINE_USER_WORKLOAD=PATH, absolute or from the project's root.
set(WARPLINE_USER_WORKLOAD examples/decrement_ttl.h CACHE STRING "header that defines UserWork")
cmake_path(ABSOLUTE_PATH WARPLINE_USER_WORKLOAD BASE_DIRECTORY ${PROJECT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE user_workload)
if(NOT EXISTS ${user_workload} OR IS_DIRECTORY ${user_workload})
  message(FATAL_ERROR "WARPLINE_USER_WORKLOAD: there is no file ${user_workload}")
endif()
target_compile_definitions(warpline_workload INTERFACE WARPLINE_USER_WORKLOAD="${user_workload}")

warpline_module(protection LEVEL 4 USES base packet message EXTERNAL OpenSSL::Crypto)
warpline_module(transport LEVEL 4 USES base packet message)

warpline_module(pipeline LEVEL 5 USES base packet config gpu runtime memory handoff route workload message transport
                EXTERNAL PkgConfig::dpdk)

warpline_module(measure  LEVEL 6 USES base packet config gpu runtime memory handoff route workload message transport pipeline
                EXTERNAL PkgConfig::dpdk nlohmann_json::nlohmann_json)

# What the report says about the program.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/measure/facts.cc PROPERTIES COMPILE_DEFINITIONS
                            "WARPLINE_VERSION=\"${PROJECT_VERSION}\";WARPLINE_BUILD_TYPE=\"$<CONFIG>\"")

# Folders that are no modules, and the modules that their sources may include. Nobody includes them but themselves.
warpline_folder(drivers/vnic    USES base packet)
warpline_folder(apps/warpline   USES base config gpu measure memory pipeline protection route runtime transport)
warpline_folder(bench/l3forward USES base memory packet pipeline route runtime workload)
warpline_folder(bench/message   USES base gpu measure message packet pipeline runtime transport)
warpline_folder(examples        USES base message packet transport)
warpline_folder(tests/examples  USES packet)
warpline_folder(tests/frames    USES base packet workload)
warpline_folder(tests/fuzz      USES config message packet route runtime)
warpline_folder(tests/memory    USES memory runtime)
warpline_folder(tests/message   USES base message pipeline runtime)
warpline_folder(tests/proof     USES handoff pipeline runtime workload)
warpline_folder(tests/receive   USES memory pipeline runtime)
warpline_folder(tests/recycle   USES base memory packet pipeline runtime)
warpline_folder(tests/sim       USES base message packet)
warpline_folder(tests/vnic      USES base packet runtime)
warpline_folder(tests/wireshark USES base packet)
