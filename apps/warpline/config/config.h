// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/exporter_settings.h"
#include "setup/hugepage_request.h"
#include "warpline/base/address.h"
#include "warpline/base/enum_names.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/capture/capture_settings.h"
#include "warpline/daemon/settings.h"
#include "warpline/datapath/forward_settings.h"
#include "warpline/ingest/ingest_settings.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/message/cc_config.h"
#include "warpline/message/config.h"
#include "warpline/port/port_settings.h"
#include "warpline/report/run_settings.h"
#include "warpline/router/router_settings.h"
#include "warpline/runtime/runtime_settings.h"
#include "warpline/stream/receiver_settings.h"
#include "warpline/stream/sender_settings.h"
#include "warpline/traffic/traffic_settings.h"

namespace warpline::config {

/// Which part a command that has several is asked for, as in `message server` and `stream receive`.
enum class Role : std::uint8_t { server, client, daemon, receive, send, proxy, reload, nic, hugepages, user };
constexpr auto names_of(Role) {
  return enum_names<Role>(
      {"server", "client", "daemon", "receive", "send", "proxy", "reload", "nic", "hugepages", "user"});
}

/// What the client of `message` does: one request at a time a session, compared; many short ones; one at a time, for
/// its round trip; long ones, for goodput; rounds of requests to all sessions at once, for long responses.
enum class MessageTest : std::uint8_t { echo, rate, latency, bandwidth, incast };
constexpr auto names_of(MessageTest) {
  return enum_names<MessageTest>({"echo", "rate", "latency", "bandwidth", "incast"});
}

struct MessageConfig {
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
  std::uint64_t rate = 0;                    ///< requests per second of all sessions; 0: as fast as they are answered
  bool bidir = false;                        ///< bandwidth: responses are as long as requests
  message::Priority priority = message::Priority::normal;  ///< of requests and their responses
  bool reconnect = false;                                  ///< sessions that are lost are opened again, until the end
  message::CcKind cc = message::CcKind::swift;
  std::string key;                     ///< a file, as protection/key_file.h has it; empty: nothing is encrypted
  bool go_back_n = false;              ///< for comparison: eRPC's published way instead of selective repeat
  Nanos rto{5'000'000};                ///< go-back-n: fixed retransmission timeout
  std::uint32_t credits = 32;          ///< go-back-n: packets in flight
  Nanos peer_timeout{15'000'000'000};  ///< silence after which a peer is lost
  std::uint32_t grants = 0;            ///< bytes of long messages on the way here at once, of each worker; 0: any
  std::uint32_t datagram = 0;          ///< most bytes of a UDP payload; 0: what fits the MTU
  std::uint16_t workers = 1;           ///< threads, each with an endpoint and a queue pair or socket of its own
  std::uint16_t gpu = 0;               ///< CUDA ordinal, if messages are in memory of a GPU or pinned for one
  std::uint32_t sessions = 1024;       ///< most of each worker
  message::SessionQuotas quotas{};     ///< server: what one address and one prefix may have of each worker
  std::uint32_t strangers = 100'000;   ///< server: packets a second outside of sessions that each worker looks at
  daemon::DaemonSettings daemon{};     ///< daemon: whom it lets in, and what each may have
  bool operator==(const MessageConfig&) const = default;
};

/// What `stream` does with TCP connections.
struct StreamConfig {
  std::vector<std::uint16_t> listen{};     ///< ports
  std::string output{};                    ///< folder, one file a connection; empty: bytes are counted
  std::optional<SocketAddress> connect{};  ///< proxy: the server of messages; send: the receiver
  std::string key{};                       ///< proxy: a file, as protection/key_file.h has it; empty: no encryption
  Nanos peer_timeout{10'000'000'000};      ///< proxy: silence of the server after which its connections are reset
  std::uint32_t connections = 64;          ///< at once
  std::uint64_t ring = 4U << 20;           ///< bytes that wait for the consumer, of each connection: its largest window
  std::uint16_t pipelines = 1;             ///< queues of the port, each with a core and connections of its own
  std::uint16_t vlan = 0;                  ///< ID of the VLAN of all that comes and goes; 0: untagged
  Nanos keepalive{};                       ///< silence of a peer after which it is asked for a sign of life; 0: never
  bool populate = false;                   ///< take the memory of all rings at the start
  EngineKind engine = EngineKind::inline_;     ///< receive: what takes segments with bytes; send: fills
  std::optional<memory::MemoryKind> memory{};  ///< receive, send: where the rings are; unset: by the engine
  std::uint16_t gpu = 0;                       ///< receive, send: CUDA ordinal
  ProcessorKind io = ProcessorKind::cpu;       ///< receive: who takes packets; gpu: the engine, out of queues
  ProcessorKind ack = ProcessorKind::cpu;      ///< receive: who writes acknowledgements; gpu: the engine
  Nanos watchdog{5'000'000'000};               ///< receive, send: an engine without progress for so long has failed
  bool processing = true;                      ///< receive: bytes are put in place, not only acknowledged
  std::optional<IpAddress> gateway{};          ///< send: for a receiver that is not on the port's link
  std::uint64_t bytes = 0;                     ///< send: of each connection; 0: until the end
  std::uint64_t chunk =
      0;  ///< send: bytes that are acknowledged before the next are sent; receive: that are taken at once; 0: any
  std::uint32_t parallel = 1;                                         ///< send: connections
  stream::CongestionKind congestion = stream::CongestionKind::cubic;  ///< send
  std::uint64_t window = 4U << 20;  ///< send: most bytes of each connection on their way; fixed: just so many

  /// What a receiver of streams takes of it, with a secret that is drawn. Environment error: the kernel gives none.
  [[nodiscard]] Result<stream::ReceiverSettings> receiver() const;
  /// Where the rings are.
  [[nodiscard]] memory::MemoryKind rings() const {
    return memory.value_or(runs_on_gpu(engine) ? memory::MemoryKind::device : memory::MemoryKind::host);
  }
  bool operator==(const StreamConfig&) const = default;
};

/// What `bench` measures, each cell of a table once a round: `forward` in child processes, or for "recycle" the loops
/// themselves.
struct BenchConfig {
  std::string name = "list";
  std::uint16_t rounds = 0;                ///< 0: the table's own
  Nanos seconds{500'000'000};              ///< of each run
  std::uint16_t pipelines = 0;             ///< 0: four, or as many as the machine has pairs of cores; stream-chunk: one
  std::uint16_t parallel = 1;              ///< stream-chunk: connections of each pipeline
  std::vector<std::uint16_t> rows;         ///< frame sizes or bursts; none: those of the table
  std::vector<std::uint16_t> sizes;        ///< copy-batch: of frames; stream-chunk: MTUs; none: all
  std::vector<std::string> batches;        ///< copy-batch: packets, or "adaptive"; none: all
  std::vector<std::string> paths;          ///< copy-batch: as ingest --path names them; none: all
  std::vector<std::uint64_t> chunks;       ///< stream-chunk: bytes; none: all
  std::uint64_t bytes = 0;                 ///< stream-chunk: of each run; 0: as many as go in `seconds`
  std::vector<std::string> only;           ///< recycle: factors; none: all
  std::vector<std::string> ways;           ///< recycle: as --recycle names them; none: all
  std::uint64_t packets = 0;               ///< recycle: of each measurement; 0: its own
  bool keep_disturbed = false;             ///< recycle: also what was measured while the thread lost its processor
  ProcessorKind ack = ProcessorKind::cpu;  ///< stream-chunk: who writes acknowledgements; gpu: the engine
  ProcessorKind io = ProcessorKind::cpu;   ///< stream-chunk: who takes packets; gpu: the engine, which acknowledges
  EngineKind send_engine = EngineKind::inline_;  ///< stream-chunk: what puts payload into frames, beside the core
  std::vector<std::string> processing;           ///< stream-chunk: on: bytes are put in place, off: not; none: both
  EngineKind engine = EngineKind::thread;        ///< adaptive, copy-batch, stream-chunk: beside the core that receives
  std::uint16_t gpu = 0;                         ///< CUDA ordinal
  std::uint64_t seed = 1;                        ///< of the order in a round
  bool operator==(const BenchConfig&) const = default;
};

/// What `message key` makes or shows.
struct KeyConfig {
  std::string task;                ///< "new" or "show"
  std::vector<std::string> files;  ///< one
  std::string name;                ///< new: of the key; empty: none
  bool append = false;             ///< new: to a file that is there
  bool operator==(const KeyConfig&) const = default;
};

/// Which running process `ctl`, `top`, `capture` and `trace` are about.
struct AttachConfig {
  std::string telemetry;     ///< the name that it was started with; empty: pid says which
  std::uint32_t pid = 0;     ///< 0: telemetry says which
  std::uint32_t one_in = 1;  ///< trace: of each so manieth batch a packet
  bool operator==(const AttachConfig&) const = default;
};

/// What `setup` gives a machine, or puts back.
struct SetupConfig {
  std::string pci;               ///< nic: its address
  std::string name;              ///< user
  setup::HugepageRequest pages;  ///< hugepages
  bool apply = false;            ///< do it, rather than print what is to be done
  bool undo = false;             ///< put back what was there before
  bool operator==(const SetupConfig&) const = default;
};

/// What `selftest` tries, and where it keeps what it finds.
struct SelftestConfig {
  std::vector<std::string> ports;    ///< two that a cable joins, or one whose frames come back to it
  std::optional<std::uint16_t> gpu;  ///< CUDA ordinal
  std::uint16_t mtu = 1500;          ///< of the steps that are not about another one
  std::string output = "selftest";   ///< folder
  bool quick = false;                ///< fewer steps, and shorter ones
  bool again = false;                ///< from the beginning, whatever was kept
  bool operator==(const SelftestConfig&) const = default;
};

/// What `report` draws, and where to.
struct ReportConfig {
  std::vector<std::string> files;  ///< JSON of runs and benchmarks
  std::string html;                ///< the page
  bool operator==(const ReportConfig&) const = default;
};

/// What `bench rate` searches for, in terms of RFC 9971. Rates are frames per second of one port, or requests per
/// second.
struct RateSearchSettings {
  std::string of;                               ///< the command line that is offered load, without the program's name
  std::vector<double> loss_ratios{0, 0.005};    ///< one goal each
  double exceed_ratio = 0.5;                    ///< part of the trials at a load that may lose more
  double width = 0.005;                         ///< of the bounds, as part of the upper one
  Nanos initial_trial_duration{1'000'000'000};  ///< of the first trials
  Nanos final_trial_duration{1'000'000'000};    ///< of those that count in full
  Nanos duration_sum{21'000'000'000};           ///< of these at one load, which always decides
  double min_rate = 10'000;                     ///< Min Load
  double max_rate = 1e9;                        ///< Max Load
  bool operator==(const RateSearchSettings&) const = default;
};

enum class Command : std::uint8_t {
  forward,
  l3forward,
  ingest,
  generate,
  message,
  message_key,
  stream,
  bench,
  report,
  config,
  doctor,
  selftest,
  ctl,
  top,
  capture,
  trace,
  setup
};
constexpr auto names_of(Command) {
  return enum_names<Command>({"forward", "l3forward", "ingest", "generate", "message", "message key", "stream", "bench",
                              "report", "config", "doctor", "selftest", "ctl", "top", "capture", "trace", "setup"});
}

/// Everything a command needs to know. Made only by config/load.h, so every value has passed its checks.
struct Config {
  Command command = Command::forward;
  Role role = Role::server;  ///< of commands that have some
  std::vector<port::PortSettings> ports;
  port::PortSettings port_defaults;  ///< set-up of ports that the program makes itself (loopback); its spec is empty
  memory::PoolSettings pool;
  runtime::RuntimeSettings runtime;
  datapath::ForwardSettings forward;
  router::RouterSettings l3forward;
  ingest::IngestSettings ingest;
  traffic::TrafficSettings traffic;
  MessageConfig message;
  StreamConfig stream;
  report::RunSettings run;
  exporter::ExporterSettings metrics;
  capture::CaptureSettings capture;
  std::string crash_report{};    ///< file of a crash's report; empty: there is to be none
  bool keep_privileges = false;  ///< a run gives up nothing that it does not need any more
  BenchConfig bench;
  ReportConfig report;
  SelftestConfig selftest;
  SetupConfig setup;
  AttachConfig attach;
  KeyConfig key;
  RateSearchSettings rate_search;

  /// What the datapath takes of it.
  [[nodiscard]] datapath::DatapathSettings datapath() const {
    return {ports, port_defaults, pool, forward, runtime.lcores, run.packets, ingest.faults};
  }
  bool operator==(const Config&) const = default;
};

}  // namespace warpline::config
