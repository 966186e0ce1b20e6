// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "warpline/base/statistics/run_totals.h"
#include "warpline/capture/capture_totals.h"
#include "warpline/report/ingest_report.h"
#include "warpline/report/injected_faults.h"
#include "warpline/traffic/queue_totals.h"
#include "warpline/workload/count.h"

namespace warpline::report {

/// As the device counts them.
struct PortTotals {
  std::string name;
  Tally rx;
  Tally tx;
  std::uint64_t missed = 0;   ///< the receive ring was full
  std::uint64_t no_mbuf = 0;  ///< the pool was empty
  std::uint64_t errors = 0;
  std::string mac{};                    ///< its address; empty: it has none
  std::uint64_t address_conflicts = 0;  ///< frames by which another station claimed an address of the port
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
  std::optional<workload::FrameTally> counted;  ///< by the count workload
  std::optional<GpuTotals> gpu;
  std::optional<RecycleTotals> recycle;
  std::optional<RoutingTotals> routing;
  std::optional<IngestReport> ingest;
  std::optional<InjectedFaults> injected;  ///< that the command was asked for, and that do not make a run fail
  std::optional<capture::CaptureTotals> capture;
  std::vector<traffic::QueueTotals> queues;  ///< of a generator
  std::vector<PortTotals> ports;
  std::vector<std::string> lcores;  ///< one line a worker: what runs where
  std::vector<std::string> notes;   ///< what cost rate or latency
  std::vector<std::string> refused_offloads;

  /// Adds what a capture that has ended counted, and a note if it left packets out.
  void add_capture(const capture::CaptureTotals& ended);

  /// The contract's object, schema_version 1. What does not apply is absent; drops names reasons that occurred.
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  /// For people: an aligned table, ending in a newline.
  [[nodiscard]] std::string to_text() const;
};

/// Rows of the report for people.
[[nodiscard]] std::string to_text(const traffic::QueueTotals& queue);

/// Parts of the report's object, which the interval lines use too.
[[nodiscard]] nlohmann::ordered_json to_json(const Tally& tally);
[[nodiscard]] nlohmann::ordered_json to_json(const DropTotals& drops);
[[nodiscard]] nlohmann::ordered_json to_json(const Throughput& rate);
[[nodiscard]] nlohmann::ordered_json to_json(const LatencyTotals& latency);
[[nodiscard]] nlohmann::ordered_json to_json(const StageTotals& stage);
[[nodiscard]] nlohmann::ordered_json to_json(const VerifyTotals& verify);
[[nodiscard]] nlohmann::ordered_json to_json(const PortTotals& port);
[[nodiscard]] nlohmann::ordered_json to_json(const traffic::QueueTotals& queue);
[[nodiscard]] nlohmann::ordered_json to_json(const workload::FrameTally& counted);
[[nodiscard]] nlohmann::ordered_json to_json(const GpuTotals& gpu);
[[nodiscard]] nlohmann::ordered_json to_json(const RecycleTotals& recycle);
[[nodiscard]] nlohmann::ordered_json to_json(const RoutingTotals& routing);
[[nodiscard]] nlohmann::ordered_json to_json(const capture::CaptureTotals& capture);

}  // namespace warpline::report
