// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/send_queue.h"

#include <utility>

#include "warpline/packet/parse.h"
#include "warpline/route/neighbour_frames.h"
#include "warpline/stream_port/checksum_flags.h"

namespace warpline::stream_port {

SendQueue::SendQueue(port::PortQueue place, rte_mempool* pool, stream::StreamSender sender,
                     const route::RouterPort& self, const IpAddress& next_hop, std::uint16_t vlan,
                     std::unique_ptr<PayloadStage> payload)
    : sender_(std::move(sender)),
      self_(self),
      next_hop_(next_hop),
      frames_(place, pool, packet::Responder(self.mac, self.addresses.front()), vlan, counters_),
      payload_(std::move(payload)) {}

bool SendQueue::receive(Nanos now) {
  const std::uint16_t count = frames_.receive([&](FrameRef frame, rte_mbuf* mbuf) {
    const bool told = !next_hop_mac_ && learn(frame);
    if (frames_.answer(frame, mbuf)) [[unlikely]]
      return;
    if (told) {
      counters_.neighbours.add(1);
    } else {
      sender_.receive(frame, device_found_right(mbuf), now);
    }
    rte_pktmbuf_free(mbuf);
  });
  if (sender_.next_deadline() <= now) sender_.advance(now);
  return count != 0;
}

/// True if the frame told where a neighbour is.
bool SendQueue::learn(FrameRef frame) {
  const auto news = route::neighbour_news(frame, packet::parse(frame), self_);
  if (!news) return false;
  if (news->address == next_hop_) next_hop_mac_ = news->evidence.mac;
  return true;
}

void SendQueue::ask(Nanos now) {
  constexpr std::int64_t kBetweenQuestions = 200'000'000;
  if (now < ask_at_) return;
  const bool asked = frames_.write([&](std::span<std::uint8_t> out) {
    return route::write_neighbour_request(out.first(route::kNeighbourRequestLength), self_.mac,
                                          self_.addresses.front().address, next_hop_, {});
  });
  if (!asked) return;
  ask_at_ = Nanos{now.value + kBetweenQuestions};
  counters_.asked.add(1);
}

bool SendQueue::send(Nanos now) {
  if (!next_hop_mac_) ask(now);
  if (payload_) return payload_->send(sender_, frames_, now);
  while (frames_.write([&](std::span<std::uint8_t> out) { return sender_.next_frame(out, now); })) {
  }
  return frames_.send();
}

void SendQueue::close() {
  if (payload_) payload_->close();
  frames_.close();
}

}  // namespace warpline::stream_port
