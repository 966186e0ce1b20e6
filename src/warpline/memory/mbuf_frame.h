// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <rte_mbuf.h>
#include <rte_memcpy.h>

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

/// Copies the bytes of all pieces of `mbuf` to `to`, which has room for rte_pktmbuf_pkt_len() of them.
inline void copy_frame(const rte_mbuf* mbuf, std::byte* to) {
  if (mbuf->nb_segs == 1) [[likely]] {
    rte_memcpy(to, rte_pktmbuf_mtod(mbuf, const void*), mbuf->data_len);
    return;
  }
  for (const rte_mbuf* piece = mbuf; piece != nullptr; piece = piece->next) {
    rte_memcpy(to, rte_pktmbuf_mtod(piece, const void*), piece->data_len);
    to += piece->data_len;
  }
}

}  // namespace warpline::memory
