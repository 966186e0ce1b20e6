// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "warpline/base/host_device.h"
#include "warpline/base/units.h"

namespace warpline::stream {

/// Returns how far sequence number `to` lies behind `from`, modulo 2^32: negative where it lies before (RFC 9293, 3.4).
[[nodiscard]] WARPLINE_HD constexpr std::int32_t serial_distance(std::uint32_t from, std::uint32_t to) {
  return static_cast<std::int32_t>(to - from);
}

/// Returns the sequence number of a stream's byte; `initial` is that of its first one.
[[nodiscard]] WARPLINE_HD constexpr std::uint32_t sequence_of(std::uint64_t offset, std::uint32_t initial) {
  return initial + static_cast<std::uint32_t>(offset);
}

/// Returns the byte of the stream that a sequence number means: of all with that number the one nearest to byte `near`.
/// Negative if that lies before the stream's first byte.
[[nodiscard]] WARPLINE_HD constexpr std::int64_t offset_near(std::uint64_t near, std::uint32_t sequence,
                                                             std::uint32_t initial) {
  return static_cast<std::int64_t>(near) + serial_distance(sequence_of(near, initial), sequence);
}

/// The time of an event that is not scheduled: later than any other time.
inline constexpr Nanos kNever{std::numeric_limits<std::int64_t>::max()};

}  // namespace warpline::stream
