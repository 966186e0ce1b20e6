// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "warpline/base/enum_list.h"

namespace warpline::flow {

/// What became of a packet that was to be placed in a frame. All but the first two drop it, and each has a counter.
#define WARPLINE_PLACEMENTS(X)                                                                            \
  X(placed, "its payload is in its frame")                                                                \
  X(no_frame, "not placed: no frame is free until the consumer releases one")                             \
  X(duplicate, "its payload is in its frame already")                                                     \
  X(late, "the window has passed its frame")                                                              \
  X(out_of_window, "its number is further from the window than a packet alone may lie")                   \
  X(too_short, "it ends before its payload does")                                                         \
  X(malformed, "its header is not of the format, or its payload not where a packet of the frame has one") \
  X(unrelated, "no packet of frames: no UDP, a fragment, or a heap or packet type of another kind")       \
  X(no_stream, "it belongs to a stream for which the table has no place")

/// What became of a packet: enumerators as listed in WARPLINE_PLACEMENTS.
enum class Placement : std::uint8_t { WARPLINE_PLACEMENTS(WARPLINE_ENUM_VALUE) };

/// How many placements there are.
inline constexpr std::size_t kPlacements = 0 WARPLINE_PLACEMENTS(WARPLINE_ENUM_COUNT);

/// Returns the placement's name as it stands in reports.
[[nodiscard]] constexpr std::string_view name(Placement placement) {
  constexpr std::string_view kNames[] = {WARPLINE_PLACEMENTS(WARPLINE_ENUM_NAME)};
  return kNames[static_cast<std::size_t>(placement)];
}

/// Returns one line for people: what the placement means.
[[nodiscard]] constexpr std::string_view meaning(Placement placement) {
  constexpr std::string_view kMeanings[] = {WARPLINE_PLACEMENTS(WARPLINE_ENUM_MEANING)};
  return kMeanings[static_cast<std::size_t>(placement)];
}

}  // namespace warpline::flow
