// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "warpline/base/units.h"
#include "warpline/message/cc_config.h"
#include "warpline/message/internal/cc/sample.h"

namespace warpline::message {

inline constexpr Nanos kMaxPacingGap{1'000'000'000};

// What the controllers bring foreign numbers into before they calculate with them.

/// `value` in [low, high]; NaN becomes low.
[[nodiscard]] constexpr double clamped(double value, double low, double high) {
  if (!(value > low)) return low;
  return value < high ? value : high;
}

/// A time measured, in [1 ns, 10 s], as nanoseconds.
[[nodiscard]] constexpr double sane_delay(Nanos delay) { return clamped(static_cast<double>(delay.value), 1.0, 10e9); }

/// Returns a sample's round trip minus the peer's delay, in [1 ns, 10 s], as nanoseconds.
[[nodiscard]] constexpr double fabric_delay(const CcSample& sample) {
  const double rtt = sane_delay(sample.rtt);
  return std::max(rtt - clamped(static_cast<double>(sample.remote_delay.value), 0, rtt), 1.0);
}

/// Nanoseconds from `then` to `now`, in [0, 10 s]; 0 if the clock stepped back.
[[nodiscard]] constexpr double elapsed(Nanos then, Nanos now) {
  if (now <= then) return 0;
  const std::uint64_t span = static_cast<std::uint64_t>(now.value) - static_cast<std::uint64_t>(then.value);
  return span < 10'000'000'000U ? static_cast<double>(span) : 10e9;
}

inline constexpr Nanos kLongAgo{std::numeric_limits<std::int64_t>::min()};

/// Whether `nanos` have passed. A clock that stepped back cannot say; then yes.
[[nodiscard]] constexpr bool has_passed(double nanos, Nanos since, Nanos now) {
  return now < since || elapsed(since, now) >= nanos;
}

[[nodiscard]] constexpr Nanos pacing_gap_of(double nanos) {
  return Nanos{static_cast<std::int64_t>(clamped(nanos, 0, static_cast<double>(kMaxPacingGap.value)))};
}

[[nodiscard]] inline float as_float(double value) { return static_cast<float>(value); }

[[nodiscard]] inline double sane_mtu(const CcConfig& config) { return std::clamp<double>(config.mtu, 64, 65535); }

/// At least one packet, at most 1 GiB.
[[nodiscard]] inline double sane_max_window(const CcConfig& config) {
  return clamped(config.max_window_bytes, sane_mtu(config), 1 << 30);
}

/// Whether the sender used what it was allowed: a window that is not filled must not grow (RFC 7661, section 4.1).
[[nodiscard]] inline bool window_filled(const CcSample& sample, double window_bytes) {
  return 2.0 * (static_cast<double>(sample.in_flight_bytes) + sample.acked_bytes) >= window_bytes;
}

}  // namespace warpline::message
