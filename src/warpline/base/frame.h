// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"

namespace warpline {

/// One piece of a frame, borrowed. 16 bytes: it is also the burst ring's descriptor, read by CPU and GPU alike.
struct alignas(16) Segment {
  std::uint8_t* data;    ///< first byte, as seen by whoever does the work
  std::uint32_t length;  ///< bytes at `data`
  std::uint16_t more;    ///< segments of the same frame that follow this one
  Verdict verdict;       ///< of the whole frame; meaningful in the first segment only
};
static_assert(sizeof(Segment) == 16);

/// More segments than any port here makes of one frame; what has more is dropped as `too_many_segments`.
inline constexpr std::uint16_t kMaxSegments = 16;

/// A whole frame, borrowed: `segments[0 .. count)`, at least one. Holds `length` bytes in all.
struct FrameRef {
  Segment* segments;     ///< the first of them
  std::uint16_t count;   ///< of segments
  std::uint32_t length;  ///< bytes of all segments

  /// The first segment's bytes: headers are looked for here first.
  [[nodiscard]] WARPLINE_HD std::uint8_t* data() const { return segments[0].data; }
  /// Bytes of the first segment.
  [[nodiscard]] WARPLINE_HD std::uint32_t head_length() const { return segments[0].length; }
};

/// The frame whose first descriptor is `*first`.
[[nodiscard]] WARPLINE_HD inline FrameRef frame_at(Segment* first) {
  const auto count = static_cast<std::uint16_t>(first->more + 1);
  std::uint32_t length = 0;
  for (std::uint16_t i = 0; i < count; ++i) length += first[i].length;
  return {first, count, length};
}

}  // namespace warpline
