# SPDX-License-Identifier: Apache-2.0
# The module graph: the one place that says who may use whom. It makes the targets, and setup/check_layers.py holds
# every #include against it. A module uses modules that are declared before it, only those that it names, and all of them.

include(warpline_module)

# warpline_user_header(VARIABLE default CLASS module scope): a header of the builder's own, which defines CLASS, for the
# sources of a module to include by the macro VARIABLE.
function(warpline_user_header variable default class module scope)
  set(${variable} ${default} CACHE STRING "header that defines ${class}")
  cmake_path(ABSOLUTE_PATH ${variable} BASE_DIRECTORY ${PROJECT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE header)
  if(NOT EXISTS ${header} OR IS_DIRECTORY ${header})
    message(FATAL_ERROR "${variable}: there is no file ${header}")
  endif()
  target_compile_definitions(warpline_${module} ${scope} ${variable}="${header}")
endfunction()

# Of fmt and OpenSSL alone.
warpline_module(base ABOUT "results and errors, units, addresses, verdicts, frames, counters, histograms, clocks, names of enumerators"
               EXTERNAL fmt::fmt)
warpline_module(batching ABOUT "when packets that wait are submitted to an engine, and how many; no I/O"
               USES base)
warpline_module(packet ABOUT "headers of packets: parse, emit, checksums, answers to ARP, ND and echo; no I/O"
               USES base)
warpline_module(metrics ABOUT "what a process counts, as metrics; no I/O"
               USES base EXTERNAL fmt::fmt)
warpline_module(queues ABOUT "packet queues that an engine consumes and fills by itself"
               USES base EXTERNAL fmt::fmt)
warpline_module(message ABOUT "reliable messages and requests over datagrams; no I/O"
               USES base packet)
# An endpoint's rooms, lowest first; what lies beside them is above them all.
warpline_rooms(src/warpline/message/internal parts cc core transfer send receive session datagrams)
warpline_module(inspect ABOUT "digests and patterns of streams of bytes, on host and GPU; no I/O"
               USES base EXTERNAL fmt::fmt ${WARPLINE_CUDA_LIBRARIES})
warpline_module(flow ABOUT "frames in memory, assembled from packets; no I/O"
               USES base packet EXTERNAL fmt::fmt ${WARPLINE_CUDA_LIBRARIES})
warpline_module(stream ABOUT "TCP connections received into rings, and sent; no I/O"
               USES base packet queues EXTERNAL ${WARPLINE_CUDA_LIBRARIES})
warpline_module(transport ABOUT "datagrams of messages through the kernel's sockets, and messages in memory that the CPU does not reach"
               EXCEPT ethdev USES base packet message)
warpline_module(protection ABOUT "encryption of messages, keys and key files"
               USES base packet message EXTERNAL OpenSSL::Crypto)
warpline_module(rpc ABOUT "an endpoint with its loop, calls to it from any thread, handlers on threads"
               USES base packet message transport)
warpline_module(client ABOUT "what programs attach to a message daemon by, of the C library alone")
warpline_module(daemon ABOUT "one endpoint for many programs"
               USES base client message transport EXTERNAL fmt::fmt)

# NCCL's network over messages; what NCCL loads is made of it in its folder library.
warpline_module(nccl ABOUT "NCCL's network over messages"
               FOLDER plugins/nccl EXCEPT library USES base message rpc transport EXTERNAL fmt::fmt)
target_include_directories(warpline_nccl PUBLIC ${PROJECT_SOURCE_DIR}/plugins)

if(NOT WARPLINE_DATAPLANE)
  return()
endif()

warpline_module(gpu ABOUT "owners of what CUDA gives; the only module that calls CUDA"
               USES base EXTERNAL ${WARPLINE_CUDA_LIBRARIES})
warpline_module(machine ABOUT "processors, hugepages, PCI devices and privileges, as the kernel tells"
               USES base)
warpline_module(capture ABOUT "packets copied to pcapng files, dropped ones with the reason, also by another process"
               USES base EXTERNAL fmt::fmt PkgConfig::pcap)
warpline_module(vnic_api ABOUT "what net_vnic offers beyond ethdev"
               DPDK FOLDER src/warpline/vnic)

warpline_module(handoff ABOUT "the burst ring, and engines on threads and GPUs"
               USES base gpu queues)
warpline_module(route ABOUT "route files, neighbours, ICMP errors; no I/O"
               USES base packet)
warpline_module(workload ABOUT "what is done to each packet, on host and GPU"
               USES base packet)
warpline_module(runtime ABOUT "DPDK's environment, lcores, signals"
               DPDK USES base machine EXTERNAL PkgConfig::dpdk PkgConfig::pcap spdlog::spdlog)
# DPDK calls experimental: rte_dev_dma_map (unchanged since 19.11), rte_intr_instance_alloc and what sets one up (21.11).
target_compile_definitions(warpline_runtime PRIVATE ALLOW_EXPERIMENTAL_API)

# What --workload user does. A header of your own: -DWARPLINE_USER_WORKLOAD=PATH, absolute or from the project's root.
warpline_user_header(WARPLINE_USER_WORKLOAD examples/decrement_ttl.h UserWork workload INTERFACE)

warpline_module(port ABOUT "ethdevs: set-up, offloads, links"
               DPDK USES base packet machine runtime vnic_api EXTERNAL ${DPDK_NET_RING_LIBRARY} ${DPDK_BUS_VDEV_LIBRARY} PkgConfig::dpdk)
target_compile_definitions(warpline_port PRIVATE ALLOW_EXPERIMENTAL_API)
warpline_module(doctor ABOUT "what a machine lacks, and the command that mends it"
               DPDK USES base gpu machine runtime port)
warpline_module(memory ABOUT "packet pools in host, pinned and GPU memory, and recycling of sent buffers"
               DPDK USES base packet gpu machine runtime port EXTERNAL PkgConfig::dpdk)

warpline_module(datapath ABOUT "who does what for which queue, the loops, transmit"
               DPDK USES base batching capture packet gpu queues runtime memory handoff port workload EXTERNAL PkgConfig::dpdk)
warpline_module(ethdev_transport ABOUT "messages through any ethdev port"
               DPDK FOLDER src/warpline/transport/ethdev USES base packet runtime memory message port route transport EXTERNAL PkgConfig::dpdk)
# NCCL's network over DPDK ports.
warpline_module(nccl_dpdk ABOUT "NCCL's network over DPDK ports"
               FOLDER plugins/nccl_dpdk EXCEPT library USES base memory nccl runtime ethdev_transport EXTERNAL fmt::fmt PkgConfig::dpdk)
warpline_module(stream_port ABOUT "TCP connections received and sent through any ethdev port"
               DPDK USES base packet gpu handoff runtime memory port route stream transport EXTERNAL PkgConfig::dpdk)

warpline_module(router ABOUT "l3forward: lookup tables that change under traffic, and the stages that route"
               DPDK USES base packet runtime memory port route datapath EXTERNAL PkgConfig::dpdk)
warpline_module(traffic ABOUT "frames with number, time and pattern, and the check of every byte of them"
               DPDK USES base packet runtime memory port datapath EXTERNAL PkgConfig::dpdk)
warpline_module(forward ABOUT "forwarding between ports, on host threads or GPUs"
               DPDK USES base packet gpu machine queues runtime memory handoff port workload datapath traffic EXTERNAL PkgConfig::dpdk)

warpline_module(ingest ABOUT "packets for a consumer on a GPU or the CPU, and what consumers check"
               DPDK USES base batching flow packet gpu runtime memory handoff port transport datapath forward traffic EXTERNAL PkgConfig::dpdk)
# What ingest's --consumer user does. A header of your own: -DWARPLINE_USER_CONSUMER=PATH, absolute or from the project's root.
warpline_user_header(WARPLINE_USER_CONSUMER examples/take_udp.h UserConsumer ingest PUBLIC)

warpline_module(report ABOUT "the table while a run lasts, and the JSON at its end"
               DPDK USES base capture memory metrics runtime port workload datapath forward router traffic
               EXTERNAL PkgConfig::dpdk nlohmann_json::nlohmann_json)
# What the report says about the program.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/warpline/report/facts.cc PROPERTIES COMPILE_DEFINITIONS
                            "WARPLINE_VERSION=\"${PROJECT_VERSION}\";WARPLINE_BUILD_TYPE=\"$<CONFIG>\"")

warpline_module(service ABOUT "the program's message server and client, and what `stream` does with the bytes of connections"
               DPDK USES base packet gpu memory metrics handoff message port transport ethdev_transport rpc stream stream_port report
               EXTERNAL PkgConfig::dpdk nlohmann_json::nlohmann_json)
# What `ingest` reports, made from what it counted.
warpline_module(ingest_totals ABOUT "the report of an ingest run, for the program and Python"
               FOLDER apps/warpline/ingest_totals USES base forward ingest port report traffic)
target_include_directories(warpline_ingest_totals PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)
# Where metrics are asked for: HTTP and DPDK's telemetry.
warpline_module(exporter ABOUT "where metrics are asked for: HTTP and DPDK's telemetry"
               DPDK FOLDER apps/warpline/exporter USES base metrics EXTERNAL ${EVENT_HTTP_LIBRARIES} PkgConfig::dpdk spdlog::spdlog)
target_include_directories(warpline_exporter PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)
# What a run gives up once it is set up.
warpline_module(sandbox ABOUT "what a run gives up once it is set up"
               FOLDER apps/warpline/sandbox USES base EXTERNAL ${SECCOMP_LIBRARY} fmt::fmt)
target_include_directories(warpline_sandbox PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)
# What a machine is given, and what puts it back.
warpline_module(setup ABOUT "what a machine is given, and what puts it back"
               FOLDER apps/warpline/setup USES base machine EXTERNAL fmt::fmt nlohmann_json::nlohmann_json)
target_include_directories(warpline_setup PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)
# What asks a running process.
warpline_module(attach ABOUT "what asks a running process, and the table of `top`"
               FOLDER apps/warpline/attach USES base runtime EXTERNAL nlohmann_json::nlohmann_json)
target_include_directories(warpline_attach PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)
# The command line: options, files and environment become the settings of the modules above.
warpline_module(config ABOUT "the command line, the environment and files as settings of the modules below"
               FOLDER apps/warpline/config USES base capture daemon datapath exporter flow ingest memory message port report route router runtime setup stream traffic workload
               EXTERNAL CLI11::CLI11 PkgConfig::tomlplusplus nlohmann_json::nlohmann_json)
target_include_directories(warpline_config PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)
warpline_module(bench ABOUT "the tables that the program makes"
               DPDK FOLDER apps/warpline/bench USES base packet config memory port route workload datapath router report
               EXTERNAL PkgConfig::dpdk nlohmann_json::nlohmann_json)
target_include_directories(warpline_bench PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)
# What copies between host and GPU memory cost.
warpline_module(copies ABOUT "what copies to and from GPU memory cost: `bench memcpy`"
               FOLDER apps/warpline/copies USES base gpu EXTERNAL nlohmann_json::nlohmann_json)
target_include_directories(warpline_copies PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)
# The search for the highest rate without loss.
warpline_module(rate ABOUT "the search for the highest rate without loss: `bench rate`"
               FOLDER apps/warpline/rate USES base bench config EXTERNAL nlohmann_json::nlohmann_json)
target_include_directories(warpline_rate PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)

# What reaches a consumer by the size of batches.
warpline_module(batches ABOUT "what reaches a consumer, by the size of batches: `bench copy-batch`"
               FOLDER apps/warpline/batches USES base bench config ingest EXTERNAL PkgConfig::dpdk nlohmann_json::nlohmann_json)
target_include_directories(warpline_batches PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)

# Streams from one port of the software NIC to the other.
warpline_module(transfers ABOUT "streams in chunks: `bench stream-chunk`"
               FOLDER apps/warpline/transfers USES base config memory port runtime service stream_port transport
               EXTERNAL PkgConfig::dpdk nlohmann_json::nlohmann_json)
target_include_directories(warpline_transfers PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)

# The page that `report` makes: text from text, without DPDK.
warpline_module(page ABOUT "JSON of runs and benchmarks as one HTML page; no I/O"
               FOLDER apps/warpline/page USES base EXTERNAL nlohmann_json::nlohmann_json)
target_include_directories(warpline_page PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)
# Keys, numbers and text as HTML; what a file says; scales, charts and tables; all of a document below its head.
warpline_rooms(apps/warpline/page text document draw body)

# What two ports can do, step by step.
warpline_module(selftest ABOUT "what two ports can do, step by step"
               FOLDER apps/warpline/selftest USES base bench EXTERNAL nlohmann_json::nlohmann_json)
target_include_directories(warpline_selftest PUBLIC ${PROJECT_SOURCE_DIR}/apps/warpline)

# Modules that set up, control and report runs and process no packets. They emit no inline function of the data path, of
# which the linker might keep their copy. -O1 takes the compiler two thirds of the time of -O3, -O0 with sanitizers a third of
# that of -O1; so there it is also for those whose tests take longer to compile than to run.
set(outside_runs attach batches config doctor exporter page rate report sandbox selftest setup)
if(WARPLINE_SANITIZE)
  warpline_optimise(-O0 ${outside_runs} bench capture copies forward ingest route router runtime service transfers)
else()
  warpline_optimise($<$<CONFIG:Release>:-O1> ${outside_runs})
endif()

# Folders that are no modules, and the modules that their sources may include. Nobody includes them but themselves.
warpline_folder(include         USES base client forward handoff ingest message packet protection rpc runtime stream_port transport workload)
warpline_folder(drivers/vnic    USES base packet vnic_api)
warpline_folder(apps/manual    USES base config)
warpline_folder(apps/warpline   USES base attach batches bench capture config copies daemon datapath doctor ethdev_transport exporter flow forward gpu ingest ingest_totals machine memory metrics
                                     page port protection rate report route router runtime sandbox selftest service setup stream stream_port traffic transfers transport workload)
warpline_folder(bench/frames    USES base flow ingest packet)
warpline_folder(bench/gpu       USES base packet stream)
warpline_folder(bench/inspect   USES base inspect stream)
warpline_folder(bench/l3forward USES base memory packet port datapath route router runtime workload)
warpline_folder(bench/message   USES base client gpu machine message packet port protection ethdev_transport report rpc runtime service transport)
warpline_folder(bench/nccl      USES base nccl)
warpline_folder(bench/stream    USES base machine packet runtime stream transfers)
warpline_folder(examples        USES base client ethdev_transport flow forward gpu handoff ingest inspect machine message packet port rpc runtime stream stream_port transport)
warpline_folder(python/src      USES base batching config datapath flow forward gpu handoff ingest ingest_totals machine message packet port protection report rpc runtime service stream
                                     stream_port traffic transport)
warpline_folder(tests/examples  USES packet)
warpline_folder(tests/flow      USES base flow)
warpline_folder(tests/frames    USES base packet workload)
warpline_folder(tests/fuzz USES attach bench capture client config daemon exporter flow message metrics packet page protection rate route rpc runtime selftest setup stream vnic_api)
warpline_folder(tests/memory    USES base memory port runtime)
warpline_folder(tests/nccl      USES base nccl)
warpline_folder(tests/message   USES base message ethdev_transport port protection rpc runtime transport)
warpline_folder(tests/proof     USES handoff datapath forward runtime workload)
warpline_folder(tests/receive   USES memory datapath forward port runtime)
warpline_folder(tests/recycle   USES base memory packet port datapath router runtime)
warpline_folder(tests/sim       USES base message packet rpc)
warpline_folder(tests/stream    USES base gpu stream_port memory packet port runtime stream)
warpline_folder(tests/vnic      USES base packet port runtime vnic_api)
warpline_folder(tests/wireshark USES base packet)

# Rooms of the software NIC, lowest first: each includes itself and those before it. Tests that drive the NIC may include
# any of them, all other folders only the first, which is its interface beyond ethdev. drivers/vnic/README.md says what
# they are.
warpline_rooms(drivers/vnic api common faults personas args rings steering wire sources engine bursts device setup)
