// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/time/clock.h"

namespace warpline::datapath {

/// What a stage costs, from the bursts that were timed. One writer: the stage's lcore.
struct StageSamples {
  Counter ticks;
  Counter packets;
};

/// Times one burst in kPeriod, so that knowing what a stage costs costs nothing itself.
class StageSampler {
 public:
  static constexpr std::uint32_t kPeriod = 256;

  /// Whether the coming burst is to be timed. Empty polls keep the turn.
  [[nodiscard]] bool due() const { return countdown_ == 0; }

  /// Begins a timed poll.
  void start() { lap_start_ = ticks_now(); }

  /// Ends a stage of the timed burst, and starts the next.
  void lap(StageSamples& stage, std::uint32_t packets) {
    const std::uint64_t now = ticks_now();
    stage.ticks.add(now - lap_start_);
    stage.packets.add(packets);
    lap_start_ = now;
  }
  /// When the last lap ended.
  [[nodiscard]] std::uint64_t lap_start() const { return lap_start_; }

  /// Ends a burst, timed or not.
  void count_burst() { countdown_ = countdown_ == 0 ? kPeriod - 1 : countdown_ - 1; }

 private:
  std::uint32_t countdown_ = 0;
  std::uint64_t lap_start_ = 0;
};

}  // namespace warpline::datapath
