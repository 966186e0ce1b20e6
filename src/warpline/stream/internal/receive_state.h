// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "warpline/stream/internal/received_ranges.h"
#include "warpline/stream/internal/sequence.h"

namespace warpline::stream {

/// What a connection knows of the bytes that it receives (RFC 9293, 3.3.1: RCV.NXT, RCV.WND, IRS). Offsets count bytes
/// of the stream from 0 on. Trivially copyable, for host and device; whoever accepts the connection's segments owns it.
struct ReceiveState {
  static constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint32_t kRecent = 4;

  /// How far a stream has come.
  struct Reach {
    std::uint64_t next;
    bool end_reached;
    [[nodiscard]] constexpr bool operator==(const Reach&) const = default;
  };
  [[nodiscard]] constexpr Reach reach() const { return {next, end_reached}; }

  std::uint64_t next = 0;                    ///< first byte that is missing: all before it can be consumed
  std::uint64_t window_end = 0;              ///< behind the last byte that has a place; never moves back
  std::uint64_t end = kNoEnd;                ///< bytes of the whole stream, once a FIN told
  std::uint64_t acknowledged = 0;            ///< `next` when an acknowledgement was last made
  std::uint32_t initial = 0;                 ///< sequence number of byte 0
  std::uint32_t oldest_acknowledgement = 0;  ///< acknowledgement numbers from here
  std::uint32_t newest_acknowledgement = 0;  ///< to here are believed (RFC 5961, section 5)
  std::uint32_t timestamp = 0;               ///< TS.Recent of RFC 7323
  bool timestamps = false;                   ///< whether the peer agreed to send them
  bool end_reached = false;                  ///< whether all bytes before the FIN are there
  bool acknowledge_now = false;              ///< whether an acknowledgement must not be delayed (RFC 5681, section 4.2)
  bool pushed = false;                       ///< whether PSH came since an acknowledgement was last made
  std::uint32_t largest = 0;                 ///< bytes of the largest segment so far
  ByteRange duplicate{};            ///< arrived a second time since the last acknowledgement (RFC 2883); empty if none
  std::uint64_t recent[kRecent]{};  ///< a byte of each of the ranges that grew last, the latest first
  ReceivedRanges ranges{};          ///< what arrived behind `next`

  /// Returns the acknowledgement number: what is awaited next. A FIN has a number, too.
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t expected() const {
    return sequence_of(next, initial) + (end_reached ? 1 : 0);
  }
  /// An acknowledgement was made.
  WARPLINE_HD constexpr void count_as_acknowledged() {
    acknowledged = next;
    acknowledge_now = false;
    pushed = false;
    duplicate = {};
  }
};

}  // namespace warpline::stream
