// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "warpline/base/kinds.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/port/port.h"
#include "warpline/service/streams/stream_frame_totals.h"
#include "warpline/stream_port/stream_port.h"

namespace warpline::service {

/// What a StreamQueue and its receiver have counted, at one moment.
struct StreamTotals : StreamFrameTotals {
  std::uint64_t bytes = 0;  ///< of payload
  std::uint64_t opened = 0, finished = 0, reset = 0, timed_out = 0, aborted = 0;
  std::uint64_t acknowledgements = 0, cookies = 0, refused_replies = 0;

  [[nodiscard]] static StreamTotals of(const stream_port::StreamQueue& queue);
  [[nodiscard]] static StreamTotals of(stream_port::StreamPort& port);  ///< of all its queues
  [[nodiscard]] std::uint64_t open() const { return opened - finished - reset - timed_out - aborted; }
  /// True if every frame received is accounted for. Of a queue that rests.
  [[nodiscard]] bool conserved() const { return received == accounted(); }
};

/// A line of people's table or of --json-stream: what happened between two samples.
struct StreamInterval {
  double time_s = 0;
  double seconds = 0;
  StreamTotals before, now;

  [[nodiscard]] static std::string header();
  [[nodiscard]] std::string row() const;
  [[nodiscard]] std::string json() const;
};

/// What a run of `stream receive` or `stream proxy` reports at its end.
struct StreamReport {
  /// What was written to files.
  struct Written {
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
  };

  /// What was handed on as messages.
  struct Relayed {
    std::uint64_t connections = 0, bytes = 0, ended = 0, lost_sessions = 0, no_session = 0;
  };

  /// What takes segments, if that is not the thread of the queue.
  struct Engine {
    std::string_view name;               ///< as --engine has it
    std::string_view memory;             ///< where the rings are
    std::string gpu;                     ///< its name; empty: none
    LatencyTotals bursts;                ///< ns from when a burst is handed over until its records are taken in
    std::uint64_t acknowledgements = 0;  ///< that it wrote

    /// What a port's lanes are, and what they did. `gpu`: its name, or nothing.
    [[nodiscard]] static Engine of(stream_port::StreamPort& port, EngineKind kind, memory::MemoryKind rings,
                                   std::string gpu);
  };

  std::string command = "stream receive";
  /// What was compared with what was to come.
  struct Verified {
    std::uint64_t checked = 0;  ///< bytes
    std::uint64_t bad = 0;      ///< pieces with a wrong byte
  };

  bool processing = true;  ///< bytes were put in place, not only acknowledged
  nlohmann::json config;
  double duration_s = 0;
  double receiving_s = 0;  ///< from the first byte of payload to the last
  StreamTotals totals;
  std::optional<Written> written;
  std::optional<Verified> verified;
  std::optional<Relayed> relayed;
  std::optional<Engine> engine;
  LatencyTotals chunks;  ///< ns from the first byte of a chunk to its last: as of StreamChunks
  port::PortCounters device;
  std::uint32_t leaked = 0;  ///< packet buffers not given back
  std::vector<std::string> lcores;
  std::vector<std::string> notes;

  [[nodiscard]] bool conserved() const { return totals.conserved() && leaked == 0; }
  [[nodiscard]] double gbps() const;  ///< goodput: bits of payload, 10^9 a second
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_text() const;
};

}  // namespace warpline::service
