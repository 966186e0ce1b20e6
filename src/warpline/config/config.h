// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/kinds.h"
#include "warpline/base/units.h"

namespace warpline {

/// How one port is to be set up. What the device cannot do is masked by the runtime and reported, never silently lost.
struct PortConfig {
  std::string spec;                             ///< PCI address or vdev string
  std::uint16_t rx_ring = 1024;                 ///< descriptors a receive queue
  std::uint16_t tx_ring = 1024;                 ///< descriptors a transmit queue
  std::optional<std::uint16_t> rx_free_thresh;  ///< unset: the driver's own
  std::optional<std::uint16_t> tx_free_thresh;
  std::optional<std::uint16_t> tx_rs_thresh;
  std::vector<std::string> rx_offloads;  ///< names as DPDK prints them, lower case: "ipv4_cksum", "scatter", "rss_hash"
  std::vector<std::string> tx_offloads;
  std::uint16_t mtu = 1500;           ///< bytes of layer-3 packet
  std::vector<std::uint8_t> rss_key;  ///< empty: the driver's own
  std::vector<std::string> rss_fields = {"ip", "udp", "tcp"};
  std::vector<InterfaceAddress> addresses;  ///< answers ARP, ND and echo for them
  bool promiscuous = true;
  auto operator<=>(const PortConfig&) const = default;
};

/// Where packets or messages are: host memory, host memory that is pinned for GPUs, or the memory of a GPU.
enum class MemoryKind : std::uint8_t { host, pinned, device };

/// Who takes packet buffers from one pool: all queues of a port, or one.
enum class PoolSharing : std::uint8_t { shared, queue };

/// Packet buffers.
struct PoolConfig {
  MemoryKind memory = MemoryKind::host;  ///< not given: pinned for an engine on a GPU
  PoolSharing sharing = PoolSharing::shared;
  std::uint16_t split = 0;      ///< bytes of each frame that go to host memory, the rest to `memory`; 0: all
  std::uint32_t size = 0;       ///< buffers; 0: worked out from rings, bursts in flight and caches
  std::uint32_t cache = 256;    ///< buffers each lcore keeps to itself
  std::uint32_t data_room = 0;  ///< bytes a buffer without headroom; 0: the MTU's frame, at least 2048
  bool operator==(const PoolConfig&) const = default;
};

struct RuntimeConfig {
  std::uint32_t lcores = 0;  ///< cores the workers may use; 0: one each, as far as the machine goes
  bool share_cores = false;  ///< more lcores than cores is meant
  bool hugepages = true;     ///< false: never; true: where the machine has them
  std::string eal;           ///< further EAL arguments, separated by spaces
  bool operator==(const RuntimeConfig&) const = default;
};

/// Run-to-completion: one core receives, works and transmits. Pipeline: one receives, one transmits, an engine between
/// them.
enum class ModelKind : std::uint8_t { automatic, run_to_completion, pipeline };

/// What a run does when a GPU engine fails: end, or go on with the same work on host threads.
enum class GpuFailure : std::uint8_t { stop, failover };

/// How the buffers of sent packets come back to where packets are received into.
enum class RecycleWay : std::uint8_t {
  off,        ///< each is looked at, and they go to their pool in bulk
  fast_free,  ///< they go there unseen, where all are of one pool and nobody else's
  cache,      ///< each is looked at and goes straight into the lcore's cache of its pool
  direct,     ///< from the transmit ring into the receive ring
  automatic,  ///< direct while that pays, else the best of the others
};

[[nodiscard]] constexpr std::string_view name(RecycleWay way) {
  constexpr std::string_view kNames[] = {"off", "fast-free", "cache", "direct", "auto"};
  return kNames[static_cast<std::size_t>(way)];
}

struct ForwardConfig {
  std::uint16_t pipelines = 1;    ///< queue pairs a port, each with its own loop
  std::uint16_t burst = 64;       ///< packets a batch at most
  std::optional<Nanos> deadline;  ///< longest that a packet waits for its batch to fill; unset: 0 where nothing is won
                                  ///< by waiting, in run-to-completion inline, else 20 us
  EngineKind engine = EngineKind::inline_;
  ModelKind model = ModelKind::automatic;  ///< automatic: pipeline for the thread engine, else run-to-completion
  WorkloadKind workload = WorkloadKind::mac_swap;
  Nanos packet_time{0};           ///< of the spin workload
  std::uint16_t ctas = 1;         ///< host threads an engine, or CTAs of a persistent kernel: then 16 if not given
  std::uint16_t ring_slots = 16;  ///< bursts in flight between receive and transmit, a power of two
  std::uint32_t tx_retries = 64;  ///< transmit attempts before the rest of a batch is dropped as tx_full
  std::uint32_t tx_first = 0;     ///< packets that each port sends before forwarding begins
  std::vector<std::uint16_t> gpus = {0};  ///< CUDA ordinals: one for all pipelines, or one for each
  Nanos watchdog{1'000'000'000};          ///< a GPU engine with work that makes no progress for so long has failed
  GpuFailure on_gpu_failure = GpuFailure::stop;
  RecycleWay recycle = RecycleWay::automatic;
  bool nvtx = false;  ///< NVTX ranges for the stages of a burst
  bool loopback = false;

  /// The CUDA ordinal of one pipeline's GPU.
  [[nodiscard]] std::uint16_t gpu_of(std::size_t pipeline) const { return gpus[gpus.size() == 1 ? 0 : pipeline]; }
  bool operator==(const ForwardConfig&) const = default;
};

/// How the destination of a packet is looked up.
enum class LookupKind : std::uint8_t {
  lpm,    ///< longest prefix, by DPDK's LPM tables
  fib,    ///< the same, by its FIB tables
  exact,  ///< flows first, by its hash tables; then as lpm
};

/// What l3forward has beyond ForwardConfig.
struct L3ForwardConfig {
  std::string routes;  ///< a file, read again at SIGHUP; empty: only what is on the ports' links
  LookupKind lookup = LookupKind::lpm;
  bool operator==(const L3ForwardConfig&) const = default;
};

/// What `generate` does with its ports.
enum class TrafficRole : std::uint8_t {
  both,      ///< sends, and checks what comes back
  transmit,  ///< sends alone
  receive,   ///< checks what another `generate` of the same options sends
};

/// What the generator sends, and so what the checker expects.
struct TrafficConfig {
  TrafficRole role = TrafficRole::both;
  std::string size = "64";   ///< frame bytes without FCS: "60".."9014", or "imix" (7 x 60, 4 x 590, 1 x 1514)
  std::uint32_t flows = 64;  ///< distinct UDP 5-tuples
  Rate rate;                 ///< of each port
  std::uint16_t burst = 64;
  MacAddress src_mac{{0x02, 0, 0, 0, 0, 0x01}};
  MacAddress dst_mac{{0x02, 0, 0, 0, 0, 0x02}};
  IpAddress src_ip = Ipv4Address{{198, 18, 0, 1}};  ///< RFC 2544 benchmarking range
  IpAddress dst_ip = Ipv4Address{{198, 19, 0, 1}};
  std::uint16_t src_port = 49152;  ///< of the first flow; the others count up
  std::uint16_t dst_port = 9;      ///< discard
  std::uint16_t queues = 1;        ///< queue pairs of `generate`
  Nanos drain{200'000'000};        ///< how long to wait for what is still on its way
  bool operator==(const TrafficConfig&) const = default;
};

/// Which end of a session.
enum class MessageRole : std::uint8_t { server, client };

/// What the client of `message` does: one request at a time a session, compared; many short ones; one at a time, for
/// its round trip; long ones, for goodput; rounds of requests to all sessions at once, for long responses.
enum class MessageTest : std::uint8_t { echo, rate, latency, bandwidth, incast };

/// As message/cc names them.
enum class CongestionKind : std::uint8_t { swift, timely, dctcp, none };

struct MessageConfig {
  MessageRole role = MessageRole::server;
  SocketAddress listen{Ipv4Address{}, 24'240};
  std::vector<SocketAddress> connect;  ///< servers; sessions go to each in turn
  std::optional<IpAddress> gateway;    ///< of an ethdev port, for what is not on its link
  std::uint16_t vlan = 0;              ///< id of the tag that frames have; 0: none
  bool udp_checksum = true;            ///< of an ethdev port, over IPv4
  MessageTest test = MessageTest::echo;
  std::optional<std::uint32_t> length;       ///< bytes of a message; unset: by the test
  std::optional<std::uint32_t> outstanding;  ///< requests in flight of each session; unset: by the test
  std::uint32_t parallel = 1;                ///< sessions
  std::uint64_t requests = 0;                ///< stop after so many; 0: no bound
  bool bidir = false;                        ///< bandwidth: responses are as long as requests
  bool reconnect = false;                    ///< sessions that are lost are opened again, until the end
  CongestionKind cc = CongestionKind::swift;
  std::string key;                    ///< a file, as protection/key_file.h has it; empty: nothing is encrypted
  bool go_back_n = false;             ///< for comparison: eRPC's published way instead of selective repeat
  Nanos rto{5'000'000};               ///< go-back-n: fixed retransmission timeout
  std::uint32_t credits = 32;         ///< go-back-n: packets in flight
  Nanos peer_timeout{1'000'000'000};  ///< silence after which a peer is lost
  std::uint32_t grants = 0;           ///< bytes of long messages on the way here at once, of each worker; 0: any
  std::uint32_t datagram = 0;         ///< most bytes of a UDP payload; 0: what fits the MTU
  std::uint16_t workers = 1;          ///< threads, each with an endpoint and a queue pair or socket of its own
  std::uint16_t gpu = 0;              ///< CUDA ordinal, if messages are in memory of a GPU or pinned for one
  std::uint32_t sessions = 1024;      ///< most of each worker
  bool operator==(const MessageConfig&) const = default;
};

struct RunConfig {
  std::uint64_t packets = 0;  ///< stop after so many; 0: no bound
  Nanos seconds{0};           ///< stop after so long; 0: no bound
  std::uint64_t warmup = 0;   ///< packets before measuring begins
  bool json = false;
  bool json_stream = false;
  Nanos interval{1'000'000'000};  ///< between lines of the live table
  std::uint64_t seed = 1;
  bool verify = false;
  bool operator==(const RunConfig&) const = default;
};

/// What `bench` measures, each cell of a table once a round: `forward` in child processes, or for "recycle" the loops
/// themselves.
struct BenchConfig {
  std::string name = "list";
  std::uint16_t rounds = 0;         ///< 0: the table's own
  Nanos seconds{500'000'000};       ///< of each run
  std::uint16_t pipelines = 0;      ///< 0: four, or as many as the machine has pairs of cores
  std::vector<std::uint16_t> rows;  ///< frame sizes or bursts; none: those of the table
  std::vector<std::string> only;    ///< recycle: factors; none: all
  std::vector<std::string> ways;    ///< recycle: as --recycle names them; none: all
  std::uint64_t packets = 0;        ///< recycle: of each measurement; 0: its own
  bool keep_disturbed = false;      ///< recycle: also what was measured while the thread lost its processor
  std::uint16_t gpu = 0;            ///< CUDA ordinal
  std::uint64_t seed = 1;           ///< of the order in a round
  bool operator==(const BenchConfig&) const = default;
};

/// Everything a command needs to know. Made only by config/load.h, so every value has passed its checks.
struct Config {
  std::string command;
  std::vector<PortConfig> ports;
  PortConfig port_defaults;  ///< set-up of ports that the program makes itself (loopback); its spec is empty
  PoolConfig pool;
  RuntimeConfig runtime;
  ForwardConfig forward;
  L3ForwardConfig l3forward;
  TrafficConfig traffic;
  MessageConfig message;
  RunConfig run;
  BenchConfig bench;
  bool operator==(const Config&) const = default;
};

}  // namespace warpline
