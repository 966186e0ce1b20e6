// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "warpline/base/statistics/counter.h"
#include "warpline/port/port.h"
#include "warpline/stream/disposition.h"
#include "warpline/stream_port/queue_frames.h"

namespace warpline::service {

/// What a queue of a stream port and its sender or receiver have counted of frames, at one moment.
struct StreamFrameTotals {
  std::uint64_t received = 0, received_bytes = 0;
  std::uint64_t sent = 0, sent_bytes = 0;
  std::uint64_t answered = 0, not_answered = 0, too_many_pieces = 0, other_vlan = 0, no_mbuf = 0;
  std::array<std::uint64_t, stream::kDispositions> dispositions{};

  StreamFrameTotals() = default;
  StreamFrameTotals(const stream_port::FrameCounters& frames,
                    const std::array<Counter, stream::kDispositions>& dispositions_so_far);
  StreamFrameTotals& operator+=(const StreamFrameTotals& other);

  /// Returns the frames that were dropped by the program, for whichever reason.
  [[nodiscard]] std::uint64_t dropped() const;
  /// Returns the frames of which is known what became of them: all that were received, in a queue that rests.
  [[nodiscard]] std::uint64_t accounted() const;
  /// Returns frames by the reason of their drop, the device's among them; without zeros.
  [[nodiscard]] nlohmann::ordered_json drops(const port::PortCounters& device) const;
  /// Adds to `frames` those of each disposition that is no drop.
  void add_kept(nlohmann::ordered_json& frames) const;
};

/// Returns bits of payload, 10^9 a second; 0 in no time.
[[nodiscard]] inline double goodput_gbps(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0;
}

}  // namespace warpline::service
