// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/time/clock.h"
#include "warpline/batching/adaptive_batch.h"
#include "warpline/handoff/burst_ring.h"

namespace warpline::datapath {

/// Says when the open burst of a ring closes, in place of a BatchClock: by an AdaptiveBatch that sees bursts published
/// and done. Owner: the ring's producer.
class AdaptiveBursts {
 public:
  AdaptiveBursts(const handoff::BurstRing& ring, std::uint16_t burst, std::uint64_t deadline_ticks)
      : ring_(ring), batch_({.largest = burst, .deadline = deadline_ticks, .most_in_flight = most_in_flight()}) {}

  /// `before` packets were in the burst, `after` are now. One that closes is published at once. After every
  /// BurstRing::acquire(): a slot that comes back from there is noticed before it is published again.
  [[nodiscard]] bool closes(std::uint16_t before, std::uint16_t after) {
    look();
    if (after == 0) return false;
    const std::uint64_t now = ticks_now();
    if (before == 0) opened_ = now;
    return batch_.decide(now, after, opened_).count != 0;
  }
  /// The open burst is published with so many packets: as closes() said, or because the run ends.
  void submitted(std::uint64_t now, std::uint16_t packets) {
    look();
    if (batch_.in_flight() < most_in_flight()) batch_.submitted(now, packets);
  }
  /// Returns how many ticks the first packet of the burst that has just closed waited, at `now`.
  [[nodiscard]] std::uint64_t waited(std::uint64_t now) const { return now - opened_; }

  [[nodiscard]] const batching::AdaptiveBatch& batch() const { return batch_; }

 private:
  [[nodiscard]] std::uint32_t most_in_flight() const {
    return std::min(ring_.slots(), batching::AdaptiveBatch::kMostInFlight);
  }
  /// Takes note of bursts that the engine is done with.
  void look() {
    while (batch_.in_flight() != 0 && ring_.is_done(finished_)) {
      batch_.finished(ticks_now());
      ++finished_;
    }
  }

  const handoff::BurstRing& ring_;
  batching::AdaptiveBatch batch_;
  std::uint64_t finished_ = 0;  ///< bursts
  std::uint64_t opened_ = 0;    ///< ticks, when the open burst's first packet was received
};

}  // namespace warpline::datapath
