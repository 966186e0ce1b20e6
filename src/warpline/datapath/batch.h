// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "warpline/base/time/clock.h"

namespace warpline::datapath {

/// The largest batch that a loop handles at once.
inline constexpr std::uint16_t kMaxBurst = 512;

/// When a batch closes: full, or `deadline` ticks after its first packet, whichever comes first.
/// Reads the clock only while a batch is partly full.
class BatchClock {
 public:
  static constexpr bool kFills = true;   ///< packets are put into the open batch as they come
  static constexpr bool kHolds = false;  ///< packets wait until it is said how many of them are a batch

  BatchClock(std::uint16_t burst, std::uint64_t deadline_ticks) : burst_(burst), deadline_(deadline_ticks) {}

  /// `before` packets were in the batch, `after` are now.
  [[nodiscard]] bool closes(std::uint16_t before, std::uint16_t after) {
    at_once_ = before == 0;
    if (after == burst_) [[likely]]
      return true;
    if (after == 0) return false;
    if (deadline_ == 0) return true;
    const std::uint64_t now = ticks_now();
    if (before == 0) opened_ = now;
    return now - opened_ >= deadline_;
  }

  /// A batch of so many packets goes to the engine: what closes a batch by its size and age has no use for it.
  void submitted(std::uint64_t /*now*/, std::uint16_t /*packets*/) {}
  /// Returns how many ticks the first packet of the batch that has just closed waited, at `now`: 0 if no poll left the
  /// batch open.
  [[nodiscard]] std::uint64_t waited(std::uint64_t now) const { return at_once_ ? 0 : now - opened_; }

 private:
  std::uint16_t burst_;
  std::uint64_t deadline_;
  std::uint64_t opened_ = 0;
  bool at_once_ = true;
};

/// Bounds how many packets all loops together receive. Any thread; relaxed, since nothing is ordered by it.
class PacketBudget {
 public:
  /// `packets` 0: no bound.
  explicit PacketBudget(std::uint64_t packets) : bounded_(packets != 0), left_(static_cast<std::int64_t>(packets)) {}

  /// Takes up to `wanted` packets out of the budget and returns how many it got.
  std::uint16_t claim(std::uint16_t wanted) {
    if (!bounded_) [[likely]]
      return wanted;
    std::int64_t left = left_.load(std::memory_order_relaxed);
    while (left > 0) {
      const std::int64_t granted = left < wanted ? left : wanted;
      if (left_.compare_exchange_weak(left, left - granted, std::memory_order_relaxed)) {
        return static_cast<std::uint16_t>(granted);
      }
    }
    return 0;
  }

  /// Puts back what was claimed and not received.
  void give_back(std::uint16_t unused) {
    if (bounded_ && unused != 0) left_.fetch_add(unused, std::memory_order_relaxed);
  }

 private:
  bool bounded_;
  std::atomic<std::int64_t> left_;
};

}  // namespace warpline::datapath
