// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/counter.h"

namespace warpline {

/// What one stage of a loop did and cost. One writer: the stage's lcore.
struct StageCounters {
  Counter calls;            ///< bursts that the stage handled
  Counter packets;          ///< packets in them
  Counter sampled_ticks;    ///< ticks spent in the bursts that were timed
  Counter sampled_packets;  ///< packets in those
};

/// Times one burst in kPeriod, so that knowing what a stage costs costs nothing itself.
class StageSampler {
 public:
  static constexpr std::uint32_t kPeriod = 256;

  /// Begins a burst; it is timed if it is this one's turn.
  void begin() {
    timed_ = countdown_ == 0;
    if (timed_) [[unlikely]]
      lap_start_ = ticks_now();
  }

  /// Ends a stage of the burst begun, and starts the next.
  [[gnu::always_inline]] void lap(StageCounters& stage, std::uint32_t packets) {
    stage.calls.add(1);
    stage.packets.add(packets);
    if (!timed_) [[likely]]
      return;
    const std::uint64_t now = ticks_now();
    stage.sampled_ticks.add(now - lap_start_);
    stage.sampled_packets.add(packets);
    lap_start_ = now;
  }

  /// Ends the burst. Not called for empty polls: they keep the turn.
  void end() { countdown_ = timed_ ? kPeriod - 1 : countdown_ - 1; }

  [[nodiscard]] bool timed() const { return timed_; }
  /// When the last lap ended; of a timed burst only.
  [[nodiscard]] std::uint64_t lap_start() const { return lap_start_; }

 private:
  std::uint32_t countdown_ = 0;
  bool timed_ = false;
  std::uint64_t lap_start_ = 0;
};

}  // namespace warpline
