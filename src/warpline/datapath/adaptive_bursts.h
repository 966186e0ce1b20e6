// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/time/clock.h"
#include "warpline/batching/adaptive_batch.h"
#include "warpline/handoff/burst_ring.h"

namespace warpline::datapath {

/// When the oldest of the packets that wait for an AdaptiveBatch came, and what that decides. Those that a batch leaves
/// are taken to have come evenly since the oldest did.
class WaitingAge {
 public:
  /// `before` packets waited, `waiting` do now. Returns how many of them are to be submitted at once.
  [[nodiscard]] std::uint16_t due(batching::AdaptiveBatch& batch, std::uint16_t before, std::uint16_t waiting) {
    if (waiting == 0 && !batch.is_learning()) return 0;
    const std::uint64_t now = ticks_now();
    if (before == 0) oldest_ = now;
    // What was decided stands until something happens.
    if (now < stands_.look_again && waiting < stands_.enough && batch.in_flight() == in_flight_) return 0;
    const batching::AdaptiveBatch::Decision decision = batch.decide(now, waiting, oldest_);
    const auto count = static_cast<std::uint16_t>(decision.count);
    stands_ = batch.is_learning() ? batching::AdaptiveBatch::Decision{.look_again = 0} : decision;
    in_flight_ = batch.in_flight();
    if (count == 0) return 0;
    stands_.look_again = 0;
    taken_ = oldest_;
    oldest_ += (now - oldest_) * count / waiting;
    return count;
  }
  /// Returns how many ticks the first packet that due() said last waited, at `now`.
  [[nodiscard]] std::uint64_t waited(std::uint64_t now) const { return now - taken_; }

 private:
  std::uint64_t oldest_ = 0;  ///< ticks
  std::uint64_t taken_ = 0;   ///< ticks
  batching::AdaptiveBatch::Decision stands_{.look_again = 0};
  std::uint32_t in_flight_ = 0;  ///< when it was made
};

/// Says of packets that wait how many are the next burst of a ring, and when, in place of a BatchClock: by an
/// AdaptiveBatch that sees bursts published and done. Owner: the ring's producer.
class AdaptiveBursts {
 public:
  static constexpr bool kFills = false;
  static constexpr bool kHolds = true;

  AdaptiveBursts(const handoff::BurstRing& ring, std::uint16_t burst, std::uint64_t deadline_ticks)
      : ring_(ring), batch_({.largest = burst, .deadline = deadline_ticks, .most_in_flight = most_in_flight()}) {}

  /// `before` packets waited, `waiting` do now. Returns how many of them are to be published at once, 0 if none are
  /// yet. After every BurstRing::acquire(): a slot that comes back from there is noticed before it is published again.
  [[nodiscard]] std::uint16_t due(std::uint16_t before, std::uint16_t waiting) {
    look();
    return age_.due(batch_, before, waiting);
  }
  /// The open burst is published with so many packets: as closes() said, or because the run ends.
  void submitted(std::uint64_t now, std::uint16_t packets) {
    look();
    if (batch_.in_flight() < most_in_flight()) batch_.submitted(now, packets);
  }
  /// Returns how many ticks the first packet of the burst that due() has just made waited, at `now`.
  [[nodiscard]] std::uint64_t waited(std::uint64_t now) const { return age_.waited(now); }

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
  WaitingAge age_;
};

}  // namespace warpline::datapath
