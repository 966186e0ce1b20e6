// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/base/frame.h"

namespace warpline::memory {

/// Writes the pieces of `mbuf` to `segments` (room for kMaxSegments). Returns how many, or 0 if there are too many.
inline std::uint16_t segments_of(const rte_mbuf* mbuf, Segment* segments) {
  const std::uint16_t count = mbuf->nb_segs;
  if (count > kMaxSegments) [[unlikely]]
    return 0;
  std::uint16_t i = 0;
  for (const rte_mbuf* piece = mbuf; piece != nullptr && i < count; piece = piece->next, ++i) {
    segments[i] = {rte_pktmbuf_mtod(piece, std::uint8_t*), piece->data_len, static_cast<std::uint16_t>(count - i - 1),
                   Verdict::forward};
  }
  return i == count ? count : 0;
}

}  // namespace warpline::memory
