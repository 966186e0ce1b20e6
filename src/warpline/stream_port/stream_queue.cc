// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/stream_queue.h"

#include <utility>

#include "warpline/stream_port/checksum_flags.h"

namespace warpline::stream_port {

StreamQueue::StreamQueue(port::PortQueue place, rte_mempool* pool, stream::StreamReceiver receiver,
                         const packet::Responder& responder, std::uint16_t vlan)
    : receiver_(std::move(receiver)), frames_(place, pool, responder, vlan, counters_) {}

bool StreamQueue::receive(Nanos now) {
  const std::uint16_t count = frames_.receive([&](FrameRef frame, rte_mbuf* mbuf) {
    if (frames_.answer(frame, mbuf)) [[unlikely]]
      return;
    receiver_.receive(frame, device_found_right(mbuf), now);
    rte_pktmbuf_free(mbuf);
  });
  if (count != 0) receiver_.end_burst(now);
  if (receiver_.next_deadline() <= now) receiver_.advance(now);
  return count != 0;
}

bool StreamQueue::send(Nanos now) {
  while (frames_.write([&](std::span<std::uint8_t> out) { return receiver_.next_reply(out, now); })) {
  }
  return frames_.send();
}

}  // namespace warpline::stream_port
