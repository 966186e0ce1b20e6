// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"
#include "warpline/base/units.h"
#include "warpline/stream/internal/accept_segment.h"

namespace warpline::stream {

/// What the segments of a burst mean to their connection beside its ReceiveState: for who sends its replies and tells
/// the application. Trivially copyable, for host and device.
struct BurstNotes {
  bool touched = false;          ///< whether there may be something to acknowledge
  bool heard = false;            ///< whether one of them fitted: the peer is alive
  std::uint32_t challenges = 0;  ///< how many are to be challenged (RFC 5961, section 5)
  std::uint64_t urgent_end = 0;  ///< behind the last byte that one called urgent (RFC 9293, 3.8.5); 0: none did
};

/// Whether a peer was silent for so long that its timestamps may have wrapped around (RFC 7323, 5.5).
[[nodiscard]] WARPLINE_HD constexpr bool is_forgotten(Nanos last_heard, Nanos now) {
  constexpr std::int64_t kOldestTimestamp = 24LL * 24 * 3600 * 1'000'000'000;
  return now.value - last_heard.value > kOldestTimestamp;
}

/// Accepts a segment of an established connection, without SYN and RST, and adds to `notes` what else it means. The
/// caller copies as the acceptance says.
[[nodiscard]] WARPLINE_HD inline Acceptance take_segment(ReceiveState& state, const SegmentFields& segment,
                                                         BurstNotes& notes) {
  const bool acknowledge_now = state.acknowledge_now;
  const Acceptance acceptance = SegmentAcceptor(state).accept(segment);
  // An acknowledgement that lies outside is answered seldom: two ends that refuse what the other says would never end.
  const bool outside =
      acceptance.disposition == Disposition::outside_window || acceptance.disposition == Disposition::old_timestamp;
  const bool empty = segment.payload_length == 0 && (segment.flags & packet::kTcpFin) == 0;
  if (acceptance.disposition == Disposition::wrong_acknowledgement || (outside && empty)) {
    state.acknowledge_now = acknowledge_now;
    ++notes.challenges;
    return acceptance;
  }
  notes.touched = true;
  if (is_drop(acceptance.disposition) && acceptance.disposition != Disposition::duplicate) return acceptance;
  notes.heard = true;
  state.pushed |= (segment.flags & packet::kTcpPsh) != 0;
  if (segment.urgent != 0) {
    // The pointer only moves on, and the application is told before the bytes are there.
    const std::int64_t end = offset_near(state.next, segment.sequence, state.initial) + segment.urgent;
    if (end > static_cast<std::int64_t>(notes.urgent_end)) notes.urgent_end = static_cast<std::uint64_t>(end);
  }
  return acceptance;
}

/// Whether an acknowledgement is due at the end of a burst: at once, or for two full segments (RFC 9293, 3.8.6.3).
[[nodiscard]] WARPLINE_HD constexpr bool wants_acknowledgement(const ReceiveState& state) {
  const std::uint64_t unacknowledged = state.next - state.acknowledged;
  return state.acknowledge_now || (unacknowledged != 0 && unacknowledged >= std::uint64_t{2} * state.largest);
}

}  // namespace warpline::stream
