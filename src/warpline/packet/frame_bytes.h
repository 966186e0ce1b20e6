// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"

namespace warpline::packet {

/// Calls `each(bytes, count)` for the pieces that bytes `[offset, offset + n)` of the frame lie in, one a segment, in
/// their order. False when the segments hold fewer. O(segments).
template <typename Each>
WARPLINE_HD inline bool for_each_piece(FrameRef frame, std::uint32_t offset, std::uint32_t n, Each&& each) {
  for (std::uint16_t i = 0; i < frame.count && n != 0; ++i) {
    const Segment& segment = frame.segments[i];
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::uint32_t here = segment.length - offset;
    const std::uint32_t take = n < here ? n : here;
    each(segment.data + offset, take);
    n -= take;
    offset = 0;
  }
  return n == 0;
}

/// Copies bytes `[offset, offset + n)` of the frame to `out`, out of as many segments as they lie in.
/// False, with `out` undefined, when the segments hold fewer. O(segments).
[[nodiscard]] WARPLINE_HD inline bool gather(FrameRef frame, std::uint32_t offset, std::uint32_t n, std::uint8_t* out) {
  return for_each_piece(frame, offset, n, [&out](const std::uint8_t* piece, std::uint32_t count) {
    std::memcpy(out, piece, count);
    out += count;
  });
}

/// Bytes `[offset, offset + n)` of the frame: in place when they lie in the first segment, else copied to `scratch`,
/// which has room for `n`. nullptr when the segments hold fewer.
[[nodiscard]] WARPLINE_HD inline const std::uint8_t* bytes_at(FrameRef frame, std::uint32_t offset, std::uint32_t n,
                                                              std::uint8_t* scratch) {
  const Segment& first = frame.segments[0];
  if (offset <= first.length && n <= first.length - offset) return first.data + offset;
  return gather(frame, offset, n, scratch) ? scratch : nullptr;
}

/// Writes `n` bytes over those from `offset` on; what the segments have no room for is not written.
WARPLINE_HD inline void scatter(FrameRef frame, std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t n) {
  for_each_piece(frame, offset, n, [&bytes](std::uint8_t* piece, std::uint32_t count) {
    std::memcpy(piece, bytes, count);
    bytes += count;
  });
}

}  // namespace warpline::packet
