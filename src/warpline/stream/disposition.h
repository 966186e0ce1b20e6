// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "warpline/base/enum_list.h"
#include "warpline/base/host_device.h"

namespace warpline::stream {

/// What became of a frame that reached a receiver of streams. All but the first three drop it, and each has a counter.
#define WARPLINE_DISPOSITIONS(X)                                                         \
  X(stored, "bytes of it are in its connection's ring")                                  \
  X(no_payload, "it carries no bytes: an acknowledgement, a keepalive or a bare FIN")    \
  X(handled, "it opens, resets or ends a connection")                                    \
  X(duplicate, "all of its bytes had arrived")                                           \
  X(outside_window, "none of its bytes has a place in the window")                       \
  X(too_many_holes, "it would leave more holes in the stream than a connection keeps")   \
  X(behind_end, "it lies behind the end that the peer announced, or announces another")  \
  X(old_timestamp, "its timestamp is older than one before it (RFC 7323, section 5)")    \
  X(no_timestamp, "it lacks the timestamp that was agreed upon (RFC 7323, section 3.2)") \
  X(wrong_acknowledgement, "it acknowledges what was never sent (RFC 5961, section 5)")  \
  X(no_acknowledgement, "it acknowledges nothing, as only the first segment may")        \
  X(blind_reset, "a RST or SYN that does not fit exactly, and is challenged (RFC 5961)") \
  X(no_connection, "its connection is not known")                                        \
  X(no_listener, "nobody listens on its port")                                           \
  X(no_place, "it would open a connection more than there is place for")                 \
  X(wrong_cookie, "it completes a handshake that was not offered")                       \
  X(malformed, "a header is truncated, inconsistent or has malformed options")           \
  X(wrong_checksum, "a checksum is wrong")                                               \
  X(unrelated, "no TCP segment, a fragment, or not addressed to this station")           \
  X(lane_ended, "its lane ended, or was given up, before anybody knew what became of it")

/// What became of a frame: enumerators as listed in WARPLINE_DISPOSITIONS.
enum class Disposition : std::uint8_t { WARPLINE_DISPOSITIONS(WARPLINE_ENUM_VALUE) };

/// How many dispositions there are.
inline constexpr std::size_t kDispositions = 0 WARPLINE_DISPOSITIONS(WARPLINE_ENUM_COUNT);

/// True for all but `stored`, `no_payload` and `handled`.
[[nodiscard]] WARPLINE_HD constexpr bool is_drop(Disposition disposition) { return disposition > Disposition::handled; }

/// Returns the disposition's name as it stands in reports.
[[nodiscard]] constexpr std::string_view name(Disposition disposition) {
  constexpr std::string_view kNames[] = {WARPLINE_DISPOSITIONS(WARPLINE_ENUM_NAME)};
  return kNames[static_cast<std::size_t>(disposition)];
}

/// Returns one line for people: what the disposition means.
[[nodiscard]] constexpr std::string_view meaning(Disposition disposition) {
  constexpr std::string_view kMeanings[] = {WARPLINE_DISPOSITIONS(WARPLINE_ENUM_MEANING)};
  return kMeanings[static_cast<std::size_t>(disposition)];
}

}  // namespace warpline::stream
