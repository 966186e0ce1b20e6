// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/stream_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_prefetch.h>

#include "warpline/memory/mbuf_frame.h"
#include "warpline/stream_port/checksum_flags.h"

namespace warpline::stream_port {
namespace {

constexpr std::uint16_t kFramesAhead = 4;                                   ///< whose headers are fetched early
constexpr std::uint32_t kShortest = RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN;  ///< not every device pads to it

}  // namespace

StreamQueue::StreamQueue(port::PortQueue place, rte_mempool* pool, stream::StreamReceiver receiver,
                         const packet::Responder& responder)
    : place_(place), pool_(pool), receiver_(std::move(receiver)), responder_(responder) {}

void StreamQueue::close() {
  rte_pktmbuf_free_bulk(unsent_.data() + unsent_at_, static_cast<unsigned>(unsent_end_ - unsent_at_));
  unsent_at_ = unsent_end_ = 0;
  rte_pktmbuf_free(std::exchange(spare_, nullptr));
}

bool StreamQueue::receive(Nanos now) {
  std::array<rte_mbuf*, kBurst> burst;
  const std::uint16_t count = rte_eth_rx_burst(place_.port, place_.queue, burst.data(), kBurst);
  for (std::uint16_t i = 0; i < std::min(count, kFramesAhead); ++i) rte_prefetch0(rte_pktmbuf_mtod(burst[i], void*));
  for (std::uint16_t i = 0; i < count; ++i) {
    if (i + kFramesAhead < count) rte_prefetch0(rte_pktmbuf_mtod(burst[i + kFramesAhead], void*));
    take(burst[i], now);
  }
  if (count != 0) {
    counters_.received.add(count);
    receiver_.end_burst(now);
  }
  if (receiver_.next_deadline() <= now) receiver_.advance(now);
  return count != 0;
}

void StreamQueue::take(rte_mbuf* mbuf, Nanos now) {
  counters_.received_bytes.add(mbuf->pkt_len);
  Segment segments[kMaxSegments];
  if (memory::segments_of(mbuf, segments) == 0) [[unlikely]] {
    counters_.too_many_pieces.add(1);
    rte_pktmbuf_free(mbuf);
    return;
  }
  const FrameRef frame = frame_at(segments);
  if (!responder_.answer(frame)) [[likely]] {
    receiver_.receive(frame, device_found_right(mbuf), now);
    rte_pktmbuf_free(mbuf);
  } else if (has_room()) {
    mbuf->ol_flags = 0;
    unsent_[unsent_end_++] = mbuf;
    counters_.answered.add(1);
  } else {
    counters_.not_answered.add(1);
    rte_pktmbuf_free(mbuf);
  }
}

/// Leaves room for answers to the next burst, so that connections do not keep the neighbours waiting.
void StreamQueue::write_replies(Nanos now) {
  while (unsent_end_ < kBurst) {
    if (spare_ == nullptr) spare_ = rte_pktmbuf_alloc(pool_);
    if (spare_ == nullptr) {
      counters_.no_mbuf.add(1);
      return;
    }
    auto* const bytes = rte_pktmbuf_mtod(spare_, std::uint8_t*);
    const std::uint32_t length = receiver_.next_reply({bytes, stream::StreamReceiver::kReplyBytes}, now);
    if (length == 0) return;
    if (length < kShortest) std::memset(bytes + length, 0, kShortest - length);
    const auto padded = static_cast<std::uint16_t>(std::max(length, kShortest));
    spare_->data_len = padded;
    spare_->pkt_len = padded;
    unsent_[unsent_end_++] = std::exchange(spare_, nullptr);
  }
}

bool StreamQueue::send(Nanos now) {
  write_replies(now);
  // Drivers may look at the first packet before the count.
  if (unsent_at_ == unsent_end_) return false;
  std::uint64_t bytes = 0;
  const std::uint16_t first = unsent_at_;
  for (std::uint16_t i = first; i < unsent_end_; ++i) bytes += unsent_[i]->pkt_len;
  const std::uint16_t sent = rte_eth_tx_burst(place_.port, place_.queue, unsent_.data() + first,
                                              static_cast<std::uint16_t>(unsent_end_ - first));
  unsent_at_ = static_cast<std::uint16_t>(first + sent);
  for (std::uint16_t i = unsent_at_; i < unsent_end_; ++i) bytes -= unsent_[i]->pkt_len;
  std::copy(unsent_.begin() + unsent_at_, unsent_.begin() + unsent_end_, unsent_.begin());
  unsent_end_ = static_cast<std::uint16_t>(unsent_end_ - unsent_at_);
  unsent_at_ = 0;
  counters_.sent.add(sent);
  counters_.sent_bytes.add(bytes);
  return sent != 0;
}

}  // namespace warpline::stream_port
