// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "warpline/base/time/clock.h"
#include "warpline/batching/adaptive_batch.h"
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
  };

  explicit BatchRule(const Settings& settings) : clock_(settings.burst, settings.deadline_ticks) {
    if (!settings.adaptive) return;
    adaptive_.emplace(batching::AdaptiveBatchSettings{
        .largest = settings.burst,
        .deadline = settings.deadline_ticks,
        .most_in_flight = std::min(settings.slots, batching::AdaptiveBatch::kMostInFlight)});
  }

  /// As BatchClock. Of packets that wait the adaptive rule submits all that are in the open batch: what it would leave
  /// for another lane is less than one batch.
  [[nodiscard]] bool closes(std::uint16_t before, std::uint16_t after) {
    if (!adaptive_) return clock_.closes(before, after);
    if (after == 0) return false;
    const std::uint64_t now = ticks_now();
    if (before == 0) opened_ = now;
    return adaptive_->decide(now, after, opened_).count != 0;
  }
  /// Returns how many ticks the first packet of the batch that has just closed waited, at `now`.
  [[nodiscard]] std::uint64_t waited(std::uint64_t now) const { return adaptive_ ? now - opened_ : clock_.waited(now); }

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
  std::uint64_t opened_ = 0;
};

/// A BatchRule that two stages share, as a receiving stage has its clock.
class SharedRule {
 public:
  explicit SharedRule(BatchRule& rule) : rule_(&rule) {}
  [[nodiscard]] bool closes(std::uint16_t before, std::uint16_t after) { return rule_->closes(before, after); }
  [[nodiscard]] std::uint64_t waited(std::uint64_t now) const { return rule_->waited(now); }
  void submitted(std::uint64_t now, std::uint16_t packets) { rule_->submitted(now, packets); }

 private:
  BatchRule* rule_;
};

}  // namespace warpline::ingest
