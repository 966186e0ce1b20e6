// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "warpline/base/units.h"

namespace warpline::traffic {

/// Token bucket. In any stretch of time t it lets through at most rate * t plus its depth, which is `burst` packets
/// (bits of `burst` frames of `max_frame_bytes` for a bit rate). Time is a parameter. One thread.
class RateLimiter {
 public:
  RateLimiter(const Rate& rate, double ticks_per_second, std::uint32_t burst, std::uint32_t max_frame_bytes) {
    if (const auto* packets = std::get_if<PacketRate>(&rate)) {
      per_tick_ = packets->value / ticks_per_second;
      per_frame_ = 1;
    } else if (const auto* bits = std::get_if<BitRate>(&rate)) {
      per_tick_ = bits->value / ticks_per_second;
      per_byte_ = 8;
      per_frame_ = 8.0 * kLayer1Overhead;
    }
    depth_ = burst * cost(max_frame_bytes);
    credit_ = std::min(depth_, cost(max_frame_bytes));
  }

  [[nodiscard]] bool unlimited() const { return per_frame_ == 0; }

  /// Puts in what `now` (ticks, never less than before) allows. The first call starts the clock; one
  /// frame is free then.
  void refill(std::uint64_t now) {
    if (started_) credit_ = std::min(depth_, credit_ + static_cast<double>(now - last_) * per_tick_);
    started_ = true;
    last_ = now;
  }

  /// Takes out a frame of `frame_bytes` without FCS, if there is enough for it.
  [[nodiscard]] bool take(std::uint32_t frame_bytes) {
    const double price = cost(frame_bytes);
    if (credit_ < price) return false;
    credit_ -= price;
    return true;
  }

 private:
  [[nodiscard]] double cost(std::uint32_t frame_bytes) const { return per_frame_ + per_byte_ * frame_bytes; }

  double per_tick_ = 0;
  double per_byte_ = 0;
  double per_frame_ = 0;
  double depth_ = 0;
  double credit_ = 0;
  std::uint64_t last_ = 0;
  bool started_ = false;
};

/// Frames that `rate` lets through in `seconds`, rounded down; 0 without a limit.
[[nodiscard]] inline std::uint32_t frames_in(const Rate& rate, double seconds, std::uint32_t frame_bytes) {
  double frames = 0;
  if (const auto* packets = std::get_if<PacketRate>(&rate)) frames = packets->value * seconds;
  if (const auto* bits = std::get_if<BitRate>(&rate)) {
    frames = bits->value * seconds / (8.0 * static_cast<double>(frame_bytes + kLayer1Overhead));
  }
  return static_cast<std::uint32_t>(std::min(frames, 1e9));
}

/// The part of `rate` that each of `parts` generators gets.
[[nodiscard]] inline Rate share_of(const Rate& rate, std::uint32_t parts) {
  if (const auto* packets = std::get_if<PacketRate>(&rate)) return PacketRate{packets->value / parts};
  if (const auto* bits = std::get_if<BitRate>(&rate)) return BitRate{bits->value / parts};
  return rate;
}

}  // namespace warpline::traffic
