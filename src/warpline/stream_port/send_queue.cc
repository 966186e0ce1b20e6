// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/send_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_prefetch.h>

#include "warpline/memory/mbuf_frame.h"
#include "warpline/packet/parse.h"
#include "warpline/route/neighbour_frames.h"
#include "warpline/stream_port/checksum_flags.h"

namespace warpline::stream_port {
namespace {

constexpr std::uint16_t kAcknowledgementsAhead = 4;  ///< whose headers are fetched early
constexpr std::uint32_t kLeastFrame = RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN;
constexpr std::int64_t kBetweenQuestions = 200'000'000;  // ns

}  // namespace

SendQueue::SendQueue(port::PortQueue place, rte_mempool* pool, stream::StreamSender sender,
                     const route::RouterPort& self, const IpAddress& next_hop)
    : place_(place),
      pool_(pool),
      sender_(std::move(sender)),
      self_(self),
      responder_(self.mac, self.addresses.front()),
      next_hop_(next_hop) {}

void SendQueue::close() {
  rte_pktmbuf_free_bulk(unsent_.data() + unsent_at_, static_cast<unsigned>(unsent_end_ - unsent_at_));
  unsent_at_ = unsent_end_ = 0;
  rte_pktmbuf_free(std::exchange(spare_, nullptr));
}

bool SendQueue::receive(Nanos now) {
  std::array<rte_mbuf*, kBurst> burst;
  const std::uint16_t count = rte_eth_rx_burst(place_.port, place_.queue, burst.data(), kBurst);
  const std::uint16_t ahead = std::min(count, kAcknowledgementsAhead);
  for (std::uint16_t i = 0; i < ahead; ++i) rte_prefetch0(rte_pktmbuf_mtod(burst[i], void*));
  for (std::uint16_t i = 0; i < count; ++i) {
    if (i + ahead < count) rte_prefetch0(rte_pktmbuf_mtod(burst[i + ahead], void*));
    take(burst[i], now);
  }
  if (count != 0) counters_.received.add(count);
  if (sender_.next_deadline() <= now) sender_.advance(now);
  return count != 0;
}

void SendQueue::take(rte_mbuf* mbuf, Nanos now) {
  counters_.received_bytes.add(mbuf->pkt_len);
  Segment segments[kMaxSegments];
  if (memory::segments_of(mbuf, segments) == 0) [[unlikely]] {
    counters_.too_many_pieces.add(1);
    rte_pktmbuf_free(mbuf);
    return;
  }
  const FrameRef frame = frame_at(segments);
  const bool told = !next_hop_mac_ && learn(frame);
  if (!responder_.answer(frame)) [[likely]] {
    if (told) {
      counters_.neighbours.add(1);
    } else {
      sender_.receive(frame, device_found_right(mbuf), now);
    }
    rte_pktmbuf_free(mbuf);
  } else if (unsent_end_ != unsent_.size()) {
    mbuf->ol_flags = 0;
    unsent_[unsent_end_++] = mbuf;
    counters_.answered.add(1);
  } else {
    counters_.not_answered.add(1);
    rte_pktmbuf_free(mbuf);
  }
}

/// True if the frame told where a neighbour is.
bool SendQueue::learn(FrameRef frame) {
  const auto news = route::neighbour_news(frame, packet::parse(frame), self_);
  if (!news) return false;
  if (news->address == next_hop_) next_hop_mac_ = news->evidence.mac;
  return true;
}

void SendQueue::ask(Nanos now) {
  if (now < ask_at_ || unsent_end_ >= kBurst) return;
  if (spare_ == nullptr) spare_ = rte_pktmbuf_alloc(pool_);
  if (spare_ == nullptr) {
    counters_.no_mbuf.add(1);
    return;
  }
  ask_at_ = Nanos{now.value + kBetweenQuestions};
  const std::uint32_t length =
      route::write_neighbour_request({rte_pktmbuf_mtod(spare_, std::uint8_t*), route::kNeighbourRequestLength},
                                     self_.mac, self_.addresses.front().address, next_hop_, {});
  append(std::exchange(spare_, nullptr), length);
  counters_.asked.add(1);
}

/// Not every device pads a frame to the shortest one.
void SendQueue::append(rte_mbuf* mbuf, std::uint32_t length) {
  if (length < kLeastFrame) std::memset(rte_pktmbuf_mtod(mbuf, std::uint8_t*) + length, 0, kLeastFrame - length);
  mbuf->pkt_len = std::max(length, kLeastFrame);
  mbuf->data_len = static_cast<std::uint16_t>(mbuf->pkt_len);
  unsent_[unsent_end_++] = mbuf;
}

/// Leaves room for answers to the next burst, so that segments do not keep the neighbours waiting.
void SendQueue::write_frames(Nanos now) {
  while (unsent_end_ < kBurst) {
    if (spare_ == nullptr) spare_ = rte_pktmbuf_alloc(pool_);
    if (spare_ == nullptr) {
      counters_.no_mbuf.add(1);
      return;
    }
    const std::uint32_t length =
        sender_.next_frame({rte_pktmbuf_mtod(spare_, std::uint8_t*), rte_pktmbuf_tailroom(spare_)}, now);
    if (length == 0) return;
    append(std::exchange(spare_, nullptr), length);
  }
}

bool SendQueue::send(Nanos now) {
  if (!next_hop_mac_) ask(now);
  write_frames(now);
  // Drivers may look at the first packet before the count.
  if (unsent_at_ == unsent_end_) return false;
  std::uint64_t bytes = 0;
  for (std::uint16_t i = unsent_at_; i < unsent_end_; ++i) bytes += unsent_[i]->pkt_len;
  const std::uint16_t sent = rte_eth_tx_burst(place_.port, place_.queue, unsent_.data() + unsent_at_,
                                              static_cast<std::uint16_t>(unsent_end_ - unsent_at_));
  unsent_at_ = static_cast<std::uint16_t>(unsent_at_ + sent);
  for (std::uint16_t i = unsent_at_; i < unsent_end_; ++i) bytes -= unsent_[i]->pkt_len;
  std::copy(unsent_.begin() + unsent_at_, unsent_.begin() + unsent_end_, unsent_.begin());
  unsent_end_ = static_cast<std::uint16_t>(unsent_end_ - unsent_at_);
  unsent_at_ = 0;
  counters_.sent.add(sent);
  counters_.sent_bytes.add(bytes);
  return sent != 0;
}

}  // namespace warpline::stream_port
