// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "warpline/base/units.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// The time inside of an endpoint: starts at a second, never steps back, and goes along with the caller's clock but for
/// its jumps.
class InnerClock {
 public:
  InnerClock(Nanos start, Nanos max_step) : outer_(start.value), max_step_(max_step.value) {}

  /// False if the caller's clock jumped.
  bool update(Nanos now) {
    if (now.value == outer_) return true;
    std::int64_t step = 0;
    const bool overflow = __builtin_sub_overflow(now.value, outer_, &step);
    outer_ = now.value;
    if (!overflow && step >= 0 && step <= max_step_) {
      inner_ += step;
      return true;
    }
    if (overflow ? now.value > 0 : step > 0) inner_ += max_step_;
    return false;
  }

  [[nodiscard]] Nanos now() const { return {inner_}; }

  /// A time of the caller's as one of ours, and back; kNever stays so.
  [[nodiscard]] Nanos inner(Nanos outer) const { return moved(outer, outer_, inner_); }
  [[nodiscard]] Nanos outer(Nanos inner) const { return moved(inner, inner_, outer_); }

 private:
  static Nanos moved(Nanos time, std::int64_t from, std::int64_t to) {
    if (time == kNever) return kNever;
    std::int64_t distance = 0;
    std::int64_t sum = 0;
    constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
    if (__builtin_sub_overflow(time.value, from, &distance)) return time.value > 0 ? kNever : Nanos{kMin};
    if (__builtin_add_overflow(to, distance, &sum)) return distance > 0 ? kNever : Nanos{kMin};
    return {sum};
  }

  std::int64_t outer_;
  std::int64_t inner_ = 1'000'000'000;
  std::int64_t max_step_;
};

}  // namespace warpline::message
