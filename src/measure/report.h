// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/histogram.h"
#include "base/verdict.h"
#include "workload/count.h"

namespace warpline {

/// Bytes are of frames without FCS; 0 beside packets means that nobody counted them, and they stay out of reports.
struct Tally {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] bool has_bytes() const { return bytes != 0 || packets == 0; }

  Tally& operator+=(const Tally& other) {
    packets += other.packets;
    bytes += other.bytes;
    return *this;
  }
  auto operator<=>(const Tally&) const = default;
};

/// As the device counts them.
struct PortTotals {
  std::string name;
  Tally rx;
  Tally tx;
  std::uint64_t missed = 0;   ///< the receive ring was full
  std::uint64_t no_mbuf = 0;  ///< the pool was empty
  std::uint64_t errors = 0;
};

struct StageTotals {
  std::string name;
  std::uint64_t calls = 0;
  std::uint64_t packets = 0;
  std::uint64_t sampled_ticks = 0;  ///< spent on `sampled_packets`
  std::uint64_t sampled_packets = 0;

  /// Ticks of the time-stamp counter; 0 when no burst was timed.
  [[nodiscard]] double cycles_per_packet() const;
  [[nodiscard]] double batch_mean() const;
};

/// One direction of a queue pair, in so many seconds from before its first burst to behind its last.
struct QueueFlow {
  Tally tally;
  double seconds = 0;
};

/// What one queue pair of a generator did.
struct QueueTotals {
  std::string port;
  std::uint16_t queue = 0;
  std::uint32_t header_bytes = 0;  ///< of a frame, Ethernet to UDP: the rest is payload
  QueueFlow tx;                    ///< given to the queue, wherever it is now
  std::uint64_t stalls = 0;        ///< transmit calls that found the ring full
  QueueFlow rx;
  /// From before the first burst until the device had reported the last of `tx`; unset where the driver does not tell.
  std::optional<double> left_s;
  std::uint32_t unreported = 0;  ///< descriptors behind the device's last report

  /// Rows of the report for people.
  [[nodiscard]] std::string to_text() const;
};

struct VerifyTotals {
  std::uint64_t checked = 0;
  std::uint64_t bad = 0;
  std::uint64_t missing = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t late = 0;

  [[nodiscard]] bool clean() const { return bad == 0 && missing == 0 && duplicated == 0; }
};

/// Nanoseconds.
struct LatencyTotals {
  std::uint64_t count = 0;
  std::uint64_t p50 = 0, p90 = 0, p99 = 0, p999 = 0, p99999 = 0, max = 0;

  [[nodiscard]] static LatencyTotals of(const Histogram& histogram);
};

using DropTotals = std::array<std::uint64_t, kVerdicts>;

/// What was counted up to some moment, over all ports that the process drives.
struct RunTotals {
  Tally rx;
  Tally tx;
  std::optional<Tally> delivered;
  std::optional<Tally> generated;
  DropTotals drops{};
  std::uint64_t in_flight = 0;
  std::optional<VerifyTotals> verify;
  std::optional<LatencyTotals> latency;
  std::vector<StageTotals> stages;
  std::optional<std::uint64_t> recycled;  ///< buffers, as RecycleTotals::recycled

  [[nodiscard]] std::uint64_t dropped() const;
  /// The conservation law: rx + generated = tx + delivered + drops + in_flight. Exact once all workers have stopped.
  [[nodiscard]] bool conserved() const;
};

/// Packets and bytes in so many seconds, the warm-up left out.
struct Throughput {
  Tally tally;
  double seconds = 0;

  [[nodiscard]] double mpps() const;
  [[nodiscard]] double gbps_l1() const;  ///< frame, FCS, preamble and gap: 24 bytes more than a Tally counts
  [[nodiscard]] double gbps_l2() const;  ///< frame and FCS: 4 bytes more
};

/// Where packets or their work were on a GPU.
struct GpuTotals {
  std::string name;                ///< of several, parted by commas
  std::string engine;              ///< as on the command line
  std::uint32_t ctas = 0;          ///< of a persistent kernel, each pipeline's; 0: not one
  std::uint64_t memory_bytes = 0;  ///< of packets
};

/// How sent buffers came back. Unset: the driver does not tell.
struct RecycleTotals {
  std::string way;                                             ///< as on the command line
  std::uint64_t recycled = 0;                                  ///< buffers, from transmit ring to receive ring
  std::vector<std::pair<std::string, std::uint64_t>> refused;  ///< reasons: buffers shared, of another pool; or calls
  std::optional<std::uint64_t> mempool_gets;                   ///< buffers that drivers took from pools
  std::optional<std::uint64_t> mempool_puts;
  std::vector<std::string> links;  ///< at the end, one line each

  /// A row of the report for people.
  [[nodiscard]] std::string to_text() const;
};

/// What a router did beside passing packets on.
struct RoutingTotals {
  std::uint64_t routes = 0;  ///< of the file in force
  std::uint64_t reloads = 0;
  std::uint64_t refused_reloads = 0;
  std::uint64_t neighbours = 0;  ///< whose MAC address is known
  std::uint64_t requests = 0;    ///< ARP requests and neighbour solicitations
  std::uint64_t replies = 0;     ///< to ARP, neighbour discovery and echo
  std::uint64_t errors = 0;      ///< ICMP

  /// A row of the report for people.
  [[nodiscard]] std::string to_text() const;
};

struct RunReport {
  std::string command;
  nlohmann::json config;  ///< LoadedConfig::to_json()
  double duration_s = 0;
  RunTotals totals;
  Throughput rate;
  std::optional<FrameTally> counted;  ///< by the count workload
  std::optional<GpuTotals> gpu;
  std::optional<RecycleTotals> recycle;
  std::optional<RoutingTotals> routing;
  std::vector<QueueTotals> queues;  ///< of a generator
  std::vector<PortTotals> ports;
  std::vector<std::string> lcores;  ///< one line a worker: what runs where
  std::vector<std::string> notes;   ///< what cost rate or latency
  std::vector<std::string> refused_offloads;

  /// The contract's object, schema_version 1. What does not apply is absent; drops names reasons that occurred.
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  /// For people: an aligned table, ending in a newline.
  [[nodiscard]] std::string to_text() const;
};

/// Parts of the report's object, which the interval lines use too.
[[nodiscard]] nlohmann::ordered_json to_json(const Tally& tally);
[[nodiscard]] nlohmann::ordered_json to_json(const DropTotals& drops);
[[nodiscard]] nlohmann::ordered_json to_json(const Throughput& rate);
[[nodiscard]] nlohmann::ordered_json to_json(const LatencyTotals& latency);
[[nodiscard]] nlohmann::ordered_json to_json(const StageTotals& stage);
[[nodiscard]] nlohmann::ordered_json to_json(const VerifyTotals& verify);
[[nodiscard]] nlohmann::ordered_json to_json(const PortTotals& port);
[[nodiscard]] nlohmann::ordered_json to_json(const QueueTotals& queue);
[[nodiscard]] nlohmann::ordered_json to_json(const FrameTally& counted);
[[nodiscard]] nlohmann::ordered_json to_json(const GpuTotals& gpu);
[[nodiscard]] nlohmann::ordered_json to_json(const RecycleTotals& recycle);
[[nodiscard]] nlohmann::ordered_json to_json(const RoutingTotals& routing);

}  // namespace warpline
