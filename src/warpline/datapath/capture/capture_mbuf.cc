// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/capture/capture_mbuf.h"

#include <algorithm>
#include <cstring>

#include "warpline/base/time/clock.h"

namespace warpline::datapath {

void capture_mbuf(capture::CaptureSource& source, const rte_mbuf& mbuf, port::PortQueue at,
                  capture::Direction direction, Verdict verdict, std::uint64_t ticks) {
  capture::CapturedPacket* const packet = source.begin(verdict);
  if (packet == nullptr) return;
  std::uint32_t captured = 0;
  for (const rte_mbuf* segment = &mbuf; segment != nullptr && captured < source.snaplen(); segment = segment->next) {
    const std::uint32_t bytes = std::min<std::uint32_t>(segment->data_len, source.snaplen() - captured);
    std::memcpy(packet->bytes() + captured, rte_pktmbuf_mtod(segment, const std::uint8_t*), bytes);
    captured += bytes;
  }
  packet->ticks = ticks;
  packet->length = rte_pktmbuf_pkt_len(&mbuf);
  packet->captured = captured;
  packet->port = at.port;
  packet->queue = at.queue;
  packet->verdict = verdict;
  packet->direction = direction;
  source.end(*packet);
}

void capture_drops(capture::CaptureSource& source, rte_mbuf* const* mbufs, std::uint16_t count, port::PortQueue at,
                   capture::Direction direction, Verdict reason) {
  const std::uint64_t now = ticks_now();
  for (std::uint16_t i = 0; i < count; ++i) capture_mbuf(source, *mbufs[i], at, direction, reason, now);
}

}  // namespace warpline::datapath
