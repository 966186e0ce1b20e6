// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/send_queue.h"

#include <utility>

#include "warpline/memory/mbuf_frame.h"
#include "warpline/packet/parse.h"
#include "warpline/route/neighbour_frames.h"
#include "warpline/stream_port/checksum_flags.h"

namespace warpline::stream_port {
namespace {

/// Whether it may be one by which neighbours tell where they are. No other frame is looked at further.
bool may_tell(FrameRef frame) {
  constexpr std::uint32_t kNextHeader = packet::EthernetView::kHeaderLength + 6;
  if (frame.head_length() <= kNextHeader) return false;
  const std::uint16_t type = packet::EthernetView(frame.data()).ether_type();
  return type == packet::kEtherTypeArp ||
         (type == packet::kEtherTypeIpv6 && frame.data()[kNextHeader] == packet::kProtocolIcmpv6);
}

}  // namespace

SendQueue::SendQueue(port::PortQueue place, rte_mempool* pool, stream::StreamSender sender,
                     const route::RouterPort& self, const IpAddress& next_hop, std::shared_ptr<SendShared> shared,
                     std::uint16_t vlan, std::unique_ptr<PayloadStage> payload, packet::AddressWatch* watch)
    : sender_(std::move(sender)),
      self_(self),
      next_hop_(next_hop),
      shared_(std::move(shared)),
      number_(place.queue),
      frames_(place, pool, packet::Responder(self.mac, self.addresses.front(), {.watch = watch}), vlan, counters_),
      payload_(std::move(payload)) {}

bool SendQueue::receive(Nanos now) {
  const std::uint16_t count = frames_.receive([&](FrameRef frame, rte_mbuf* mbuf) {
    const bool told = may_tell(frame) && learn(frame, now);
    if (frames_.answer(frame, mbuf)) [[unlikely]]
      return;
    if (told) {
      counters_.neighbours.add(1);
    } else if (shared_->exchange.queues() > 1 && hand_over(frame, mbuf)) {
      return;
    } else {
      sender_.receive(frame, device_found_right(mbuf), now);
    }
    rte_pktmbuf_free(mbuf);
  });
  const bool took_over = shared_->exchange.queues() > 1 && take_over(now);
  follow_next_hop(now);
  if (sender_.next_deadline() <= now) sender_.advance(now);
  return count != 0 || took_over;
}

/// Gives a segment for a connection of another queue to that. False, and nothing done, if it is none.
bool SendQueue::hand_over(FrameRef frame, rte_mbuf* mbuf) {
  const packet::ParsedFrame parsed = packet::parse(frame);
  if (parsed.l4 != packet::L4Kind::tcp || parsed.l4_offset + packet::TcpView::kSequence > frame.head_length()) {
    return false;
  }
  const std::uint16_t port = packet::load_be16(frame.data() + parsed.l4_offset + packet::TcpView::kDestinationPort);
  const std::uint16_t owner = shared_->exchange.owner(port, number_);
  if (owner == number_) return false;
  if (shared_->exchange.give(owner, mbuf)) {
    counters_.handed_over.add(1);
  } else {
    counters_.not_taken_over.add(1);
    rte_pktmbuf_free(mbuf);
  }
  return true;
}

/// Takes what other queues have handed over, a burst of it. True if there was a frame.
bool SendQueue::take_over(Nanos now) {
  for (std::uint32_t taken = 0; taken < QueueFrames::kBurst; ++taken) {
    rte_mbuf* const mbuf = shared_->exchange.take(number_);
    if (mbuf == nullptr) return taken != 0;
    Segment segments[kMaxSegments];
    (void)memory::segments_of(mbuf, segments);  // that there are not too many its first queue has seen
    sender_.receive(frame_at(segments), device_found_right(mbuf), now);
    rte_pktmbuf_free(mbuf);
  }
  return true;
}

/// True if the frame told where a neighbour is.
bool SendQueue::learn(FrameRef frame, Nanos now) {
  const auto news = route::neighbour_news(frame, packet::parse(frame), self_);
  if (!news) return false;
  if (news->address == next_hop_ && news->evidence.mac)
    shared_->next_hop.heard(*news->evidence.mac, news->evidence.overrides, now);
  return true;
}

/// Who does not acknowledge may be another station now, which has told nobody.
void SendQueue::follow_next_hop(Nanos now) {
  if (const auto mac = shared_->next_hop.news(next_hop_seen_)) sender_.set_next_hop(*mac);
  const std::uint64_t timeouts = sender_.counters().timeouts.get() + sender_.counters().window_probes.get();
  if (timeouts == timeouts_) return;
  timeouts_ = timeouts;
  ask(now);
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
  if (next_hop_seen_ == 0) ask(now);
  if (payload_) return payload_->send(sender_, frames_, now);
  while (frames_.write([&](std::span<std::uint8_t> out) { return sender_.next_frame(out, now); })) {
  }
  return frames_.send();
}

void SendQueue::close() {
  if (payload_) payload_->close();
  frames_.close();
  while (rte_mbuf* const mbuf = shared_->exchange.take(number_)) {
    counters_.not_taken_over.add(1);
    rte_pktmbuf_free(mbuf);
  }
}

}  // namespace warpline::stream_port
