// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "warpline/base/statistics/run_totals.h"

namespace warpline::report {

/// What a run of `ingest` reports beyond a RunTotals.
struct IngestReport {
  /// Batches that were copied to where the consumer reads them.
  struct Copies {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;  ///< the alignment between packets included
    double submit_ns = 0;     ///< CPU time to queue one, mean of those that were timed; 0: none was
  };
  /// What the consumer counted where it ran.
  struct Consumed {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::uint64_t sum = 0;  ///< of all bytes, whatever order the packets came in
  };

  std::string path;                ///< as on the command line
  std::string consumer;            ///< as on the command line
  std::string engine;              ///< as on the command line
  Tally received;                  ///< by the program
  Tally delivered;                 ///< taken by the consumer
  std::uint64_t missed = 0;        ///< dropped at the port: its receive ring was full
  std::uint64_t no_mbuf = 0;       ///< dropped at the port: no buffer was free
  std::uint64_t errors = 0;        ///< refused by the port
  std::uint32_t slots = 0;         ///< batches that may be with the consumer at a time, of each queue
  std::uint64_t ring_full = 0;     ///< polls that took nothing from the port because no slot was free
  std::uint64_t memory_bytes = 0;  ///< of GPU memory that packets are copied into or received into
  std::optional<Copies> copies;
  std::optional<Consumed> consumed;
  /// What net_vnic did on purpose, by the names of its counters.
  std::vector<std::pair<std::string, std::uint64_t>> faults;
  /// With frames: frames handed over or not and packets missing of them, and what became of each packet, by name.
  std::vector<std::pair<std::string, std::uint64_t>> frames;
  std::vector<std::pair<std::string, std::uint64_t>> frame_packets;
  LatencyTotals batching;        ///< ns that the first packet of a batch waited for it to close
  LatencyTotals gpu;             ///< ns from then until its consumer was seen done
  LatencyTotals sending;         ///< ns from then until all of it was given to the transmit queue
  double cycles_per_packet = 0;  ///< of the lcores that receive, gather, submit, deliver and send

  /// Adds `ingest`, `delays_ns` and `cycles_per_packet` to a report's object.
  void add_to(nlohmann::ordered_json& json) const;
  /// Rows of the report for people.
  [[nodiscard]] std::string to_text() const;
};

}  // namespace warpline::report
