// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/time/clock.h"
#include "warpline/base/units.h"
#include "warpline/flow/frame_core.h"
#include "warpline/flow/frame_plan.h"

namespace warpline::ingest {

/// `FrameExpiry` says when FrameCore::expire() is called for the time limit of partial frames: so often that all
/// streams are read eight times per limit. Its clock is of the time in which packets are taken: what the consumer of a
/// frame needs, or a thread that is off its core, is no silence of a source, whose packets wait meanwhile. One thread.
class FrameExpiry {
 public:
  /// Without a limit if `timeout` is 0.
  FrameExpiry(Nanos timeout, const flow::FramePlan& plan)
      : limit_(nanos_to_ticks(timeout)),
        longest_step_(std::max<std::uint64_t>(std::min(limit_ / 8, nanos_to_ticks(kLongestStep)), 1)) {
    const std::uint64_t cells = std::uint64_t{plan.streams} * plan.window;
    const std::uint64_t calls = 8 * (cells / flow::FrameCore::kExpiryCells + 1);
    period_ = std::max<std::uint64_t>(limit_ / calls, 1);
  }

  /// Between packets and with each of them: returns whether expire(clock(), limit()) is to be called. `now` is in
  /// ticks.
  [[nodiscard]] bool due(std::uint64_t now) {
    if (limit_ == 0) return false;
    clock_ += std::min(now - last_, longest_step_);
    last_ = now;
    if (clock_ < next_) [[likely]]
      return false;
    next_ = clock_ + period_;
    return true;
  }
  /// Leaves the time until `now` out, in which packets were not taken.
  void skip(std::uint64_t now) { last_ = now; }

  /// Returns the time for expire(), in ticks since some moment.
  [[nodiscard]] std::uint64_t clock() const { return clock_; }
  /// Returns the limit in ticks.
  [[nodiscard]] std::uint64_t limit() const { return limit_; }

 private:
  static constexpr Nanos kLongestStep{5'000'000};  // more than an idle loop that gives its core up sleeps

  std::uint64_t limit_;
  std::uint64_t longest_step_;  ///< that one call may take: a longer one was spent elsewhere
  std::uint64_t period_;
  std::uint64_t clock_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace warpline::ingest
