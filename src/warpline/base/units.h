// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

#include "warpline/base/result.h"

namespace warpline {

inline constexpr std::uint64_t kMebibyte = 1 << 20;  ///< bytes

/// A number of bytes.
struct Bytes {
  std::uint64_t value = 0;  ///< bytes
  auto operator<=>(const Bytes&) const = default;
};

/// A span of time, or a time of a clock that its user names.
struct Nanos {
  std::int64_t value = 0;  ///< nanoseconds
  auto operator<=>(const Nanos&) const = default;
};

/// Returns `time + wait`; beyond the ends of the type, the end. So "never" after any time is never, and a deadline that
/// lies too far in the future does not become one in the past.
[[nodiscard]] constexpr Nanos time_sum(Nanos time, Nanos wait) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  if (wait.value == kEnd) return wait;  // also after a negative time
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(time.value, wait.value, &sum)) return Nanos{sum};
  return Nanos{wait.value < 0 ? std::numeric_limits<std::int64_t>::min() : kEnd};
}

/// Bits a second, of layer-1 bytes: frame, FCS, preamble and gap (24 bytes more than the frame without FCS).
struct BitRate {
  double value = 0;  ///< bits a second
  auto operator<=>(const BitRate&) const = default;
};

/// Packets a second.
struct PacketRate {
  double value = 0;  ///< packets a second
  auto operator<=>(const PacketRate&) const = default;
};

/// monostate: as fast as possible.
using Rate = std::variant<std::monostate, BitRate, PacketRate>;

/// Layer-1 bytes of a frame beyond its bytes without FCS: FCS 4, preamble and start delimiter 8, gap 12 (IEEE 802.3).
inline constexpr std::uint64_t kLayer1Overhead = 24;

// Parsers for what people type. All refuse empty text, negative numbers, unknown suffixes and overflow with a usage
// error that quotes the text.

/// "64", "10K" (1000), "2Mi" (2^20), "1.5G". The result must be whole.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text);
/// As parse_count, with an optional trailing "B".
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);
/// "250ns", "10us", "1.5ms", "2s"; a bare number counts in `unit_nanos`.
[[nodiscard]] Result<Nanos> parse_nanos(std::string_view text, std::int64_t unit_nanos);
/// "40gbit", "9.5mbit", "100kbit", "800bit"; "14.88Mpps", "10kpps", "5pps"; "max" for as fast as possible.
[[nodiscard]] Result<Rate> parse_rate(std::string_view text);

/// The inverse of the parsers: shortest text that parses back to the same value.
[[nodiscard]] std::string to_string(Nanos value);
[[nodiscard]] std::string to_string(const Rate& rate);  ///< "max" for monostate
/// For people: "12.3 M", "1.50 k", "999".
[[nodiscard]] std::string humanize(double value);

}  // namespace warpline
