// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "warpline/base/time/clock.h"
#include "warpline/batching/adaptive_batch.h"
#include "warpline/datapath/adaptive_bursts.h"
#include "warpline/datapath/batch.h"

namespace warpline::ingest {

/// When a batch of an ingest path closes: at a fixed size or deadline, or by what the consumer was measured to take.
/// Owner: the lcore that receives, which is the one that takes batches back.
class BatchRule {
 public:
  struct Settings {
    std::uint16_t burst = 64;          ///< packets per batch at most
    std::uint64_t deadline_ticks = 0;  ///< longest wait for a batch to fill
    bool adaptive = false;
    std::uint32_t slots = 16;  ///< batches that may be with the consumer at a time
    std::uint32_t lanes = 1;   ///< as of AdaptiveBatchSettings
  };

  explicit BatchRule(const Settings& settings) : clock_(settings.burst, settings.deadline_ticks) {
    if (!settings.adaptive) return;
    adaptive_.emplace(batching::AdaptiveBatchSettings{
        .largest = settings.burst,
        .deadline = settings.deadline_ticks,
        .most_in_flight = std::min(settings.slots, batching::AdaptiveBatch::kMostInFlight),
        .lanes = settings.lanes});
  }

  [[nodiscard]] bool adapts() const { return adaptive_.has_value(); }
  /// As BatchClock, of a rule that does not adapt.
  [[nodiscard]] bool closes(std::uint16_t before, std::uint16_t after) { return clock_.closes(before, after); }
  /// As datapath::AdaptiveBursts, of a rule that adapts.
  [[nodiscard]] std::uint16_t due(std::uint16_t before, std::uint16_t waiting) {
    return age_.due(*adaptive_, before, waiting);
  }
  /// Returns how many ticks the first packet of the batch that has just closed waited, at `now`.
  [[nodiscard]] std::uint64_t waited(std::uint64_t now) const {
    return adaptive_ ? age_.waited(now) : clock_.waited(now);
  }

  /// A batch of so many packets goes to the consumer.
  void submitted(std::uint64_t now, std::uint16_t packets) {
    if (adaptive_ && packets != 0 && adaptive_->in_flight() < most()) adaptive_->submitted(now, packets);
  }
  /// The oldest batch with the consumer was seen done.
  void finished(std::uint64_t now) {
    if (adaptive_ && adaptive_->in_flight() != 0) adaptive_->finished(now);
  }

 private:
  [[nodiscard]] static constexpr std::uint32_t most() { return batching::AdaptiveBatch::kMostInFlight; }

  datapath::BatchClock clock_;
  std::optional<batching::AdaptiveBatch> adaptive_;
  datapath::WaitingAge age_;
};

/// A BatchRule that two stages share, as a receiving stage has its clock.
class SharedRule {
 public:
  static constexpr bool kFills = true;
  static constexpr bool kHolds = true;

  explicit SharedRule(BatchRule& rule) : rule_(&rule) {}
  [[nodiscard]] bool adapts() const { return rule_->adapts(); }
  [[nodiscard]] bool closes(std::uint16_t before, std::uint16_t after) { return rule_->closes(before, after); }
  [[nodiscard]] std::uint16_t due(std::uint16_t before, std::uint16_t waiting) { return rule_->due(before, waiting); }
  [[nodiscard]] std::uint64_t waited(std::uint64_t now) const { return rule_->waited(now); }
  void submitted(std::uint64_t now, std::uint16_t packets) { rule_->submitted(now, packets); }

 private:
  BatchRule* rule_;
};

}  // namespace warpline::ingest
