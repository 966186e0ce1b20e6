// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include <rte_mbuf.h>

#include "warpline/base/frame.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/responder.h"

namespace warpline::memory {

/// What Responder::answer() does, for an mbuf whose frame a solicitation without options may be: that one grows by the
/// option that its answer needs. `frame` is the mbuf's; its first segment grows with it.
[[gnu::noinline]] inline bool answer_grown(const packet::Responder& responder, FrameRef frame,
                                           const packet::ParsedFrame& parsed, rte_mbuf* mbuf) {
  constexpr std::uint32_t kMore = packet::Responder::kMostGrowth;
  if (responder.answer(frame, parsed)) return true;
  if (frame.count != 1 || !RTE_MBUF_DIRECT(mbuf) || rte_mbuf_refcnt_read(mbuf) != 1) return false;
  if (parsed.l4 != packet::L4Kind::icmpv6 || rte_pktmbuf_tailroom(mbuf) < kMore) return false;
  Segment& head = frame.segments[0];
  if (parsed.l4_offset >= head.length || head.data[parsed.l4_offset] != packet::kNeighbourSolicitation) return false;
  std::memset(head.data + head.length, 0, kMore);
  head.length += kMore;
  frame.length += kMore;
  if (responder.answer(frame, parsed)) {
    rte_pktmbuf_append(mbuf, kMore);
    return true;
  }
  head.length -= kMore;
  return false;
}

/// Whether a frame of `length` bytes may be a solicitation without options: 78 bytes, and two tags at most.
[[nodiscard]] inline bool may_have_to_grow(std::uint32_t length) {
  constexpr std::uint32_t kShortest =
      packet::EthernetView::kHeaderLength + packet::Ipv6View::kHeaderLength + packet::NeighbourView::kHeaderLength;
  return length - kShortest <= 8;
}

/// What `responder` answers to the frame of `mbuf`, by whichever segments `frame` says: true, and the mbuf is the
/// answer; false, and nothing is changed. Its length may be another one then.
[[nodiscard]] inline bool answer(const packet::Responder& responder, FrameRef frame, rte_mbuf* mbuf) {
  if (!may_have_to_grow(frame.length)) [[likely]]
    return responder.answer(frame);
  return answer_grown(responder, frame, packet::parse(frame), mbuf);
}

/// The same for a frame already dissected.
[[nodiscard]] inline bool answer(const packet::Responder& responder, FrameRef frame, const packet::ParsedFrame& parsed,
                                 rte_mbuf* mbuf) {
  if (!may_have_to_grow(frame.length)) [[likely]]
    return responder.answer(frame, parsed);
  return answer_grown(responder, frame, parsed, mbuf);
}

}  // namespace warpline::memory
