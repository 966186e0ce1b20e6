// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "warpline/base/statistics/run_totals.h"
#include "warpline/port/port.h"
#include "warpline/service/streams/stream_frame_totals.h"
#include "warpline/stream_port/send_port.h"
#include "warpline/stream_port/send_queue.h"

namespace warpline::service {

/// What a SendQueue and its sender have counted, at one moment.
struct SendTotals : StreamFrameTotals {
  std::uint64_t neighbours = 0, asked = 0, handed_over = 0, not_taken_over = 0;  ///< frames
  std::uint64_t bytes = 0;                                                       ///< of payload, acknowledged
  std::uint64_t bytes_sent = 0;                                                  ///< of payload, each counted once
  std::uint64_t segments = 0, retransmitted = 0, retransmitted_bytes = 0;
  std::uint64_t recoveries = 0, timeouts = 0, tail_probes = 0, window_probes = 0, duplicates_told = 0;
  std::uint64_t started = 0, opened = 0, finished = 0, refused = 0, reset = 0, timed_out = 0, aborted = 0;
  std::uint64_t ignored_bytes = 0, refused_replies = 0;
  std::uint64_t made_bytes = 0, filled = 0, filled_bytes = 0;  ///< by a lane: segments, those sent again among them

  [[nodiscard]] static SendTotals of(const stream_port::SendQueue& queue);
  /// Returns those of all queues.
  [[nodiscard]] static SendTotals of(const stream_port::SendPort& port);
  SendTotals& operator+=(const SendTotals& other);
  [[nodiscard]] std::uint64_t ended() const { return finished + refused + reset + timed_out + aborted; }
  /// True if every frame received and every connection is accounted for. Of all queues, which rest.
  [[nodiscard]] bool conserved() const;
};

/// A line of people's table or of --json-stream: what happened between two samples.
struct SendInterval {
  double time_s = 0;
  double seconds = 0;
  SendTotals before, now;

  [[nodiscard]] static std::string header();
  [[nodiscard]] std::string row() const;
  [[nodiscard]] std::string json() const;
};

/// What a run of `stream send` reports at its end.
struct SendReport {
  /// Who reads payload and puts it into frames, with its share of their checksums.
  struct Payload {
    std::string_view engine;  ///< its name
    std::string_view memory;  ///< where the payload is: its name
    std::string gpu{};        ///< the GPU's name; empty: none
    bool lane = false;        ///< something beside the queue's thread
  };

  nlohmann::json config;
  Payload payload;
  double duration_s = 0;
  double sending_s = 0;  ///< from the first SYN to the last acknowledgement
  SendTotals totals;
  LatencyTotals round_trips;  ///< nanoseconds, of segments
  LatencyTotals chunks;       ///< nanoseconds from a chunk's begin to its acknowledgement
  port::PortCounters device;
  std::uint32_t leaked = 0;  ///< packet buffers not given back
  std::vector<std::string> lcores;
  std::vector<std::string> notes;

  [[nodiscard]] bool conserved() const { return totals.conserved() && leaked == 0; }
  [[nodiscard]] double gbps() const;  ///< goodput: bits of payload acknowledged, 10^9 a second
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_text() const;

 private:
  [[nodiscard]] nlohmann::ordered_json drops() const;
  [[nodiscard]] nlohmann::ordered_json payload_json() const;
};

}  // namespace warpline::service
