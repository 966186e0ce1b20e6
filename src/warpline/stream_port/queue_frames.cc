// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/queue_frames.h"

#include <cstring>

#include "warpline/port/announce/announce.h"

namespace warpline::stream_port {
namespace {

constexpr std::uint32_t kLeastFrame = RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN;  ///< not every device pads to it

}  // namespace

void QueueFrames::keep_answer(rte_mbuf* mbuf) {
  if (unsent_end_ == unsent_.size() || rte_pktmbuf_headroom(mbuf) < packet::VlanView::kHeaderLength) {
    counters_.not_answered.add(1);
    rte_pktmbuf_free(mbuf);
    return;
  }
  mbuf->ol_flags = 0;
  put_tag_on(mbuf);
  unsent_[unsent_end_++] = mbuf;
  counters_.answered.add(1);
}

/// A tag whose VLAN is 0 says of priority alone (IEEE 802.1Q, 6.9).
bool QueueFrames::take_tag_off(rte_mbuf* mbuf, bool stripped) const {
  constexpr std::uint32_t kTagged = packet::EthernetView::kHeaderLength + packet::VlanView::kHeaderLength;
  const bool tagged = stripped || (mbuf->data_len >= kTagged && rte_vlan_strip(mbuf) == 0);
  return (tagged ? mbuf->vlan_tci & kVlanId : 0) == vlan_ && !has_tag(mbuf);
}

/// The frame begins behind as many bytes of headroom at least.
void QueueFrames::put_tag_on(rte_mbuf* mbuf) const {
  if (vlan_ == 0) return;
  constexpr std::uint32_t kAddresses = 2 * RTE_ETHER_ADDR_LEN;
  mbuf->data_off -= packet::VlanView::kHeaderLength;
  mbuf->data_len += packet::VlanView::kHeaderLength;
  mbuf->pkt_len += packet::VlanView::kHeaderLength;
  auto* const frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
  std::memmove(frame, frame + packet::VlanView::kHeaderLength, kAddresses);
  packet::store_be16(frame + kAddresses, packet::kEtherTypeVlan);
  packet::store_be16(frame + kAddresses + 2, vlan_);
}

void QueueFrames::push(rte_mbuf* mbuf, std::uint32_t length) {
  rte_pktmbuf_free(std::exchange(mbuf->next, nullptr));
  mbuf->nb_segs = 1;
  mbuf->data_len = static_cast<std::uint16_t>(length);
  mbuf->pkt_len = length;
  mbuf->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
  unsent_[unsent_end_++] = mbuf;
}

/// Makes a frame out of the `length` bytes that were written.
void QueueFrames::finish(rte_mbuf* mbuf, std::uint32_t length) const {
  if (length < kLeastFrame) std::memset(rte_pktmbuf_mtod(mbuf, std::uint8_t*) + length, 0, kLeastFrame - length);
  mbuf->pkt_len = std::max(length, kLeastFrame);
  mbuf->data_len = static_cast<std::uint16_t>(mbuf->pkt_len);
  put_tag_on(mbuf);
}

bool QueueFrames::send() {
  if (announcer_ != nullptr && announcer_->due()) [[unlikely]]
    announcer_->send(place_);
  // Drivers may look at the first packet before the count.
  if (unsent_end_ == 0) return false;
  // Who has taken a packet may have freed it: lengths are read before.
  std::uint64_t bytes = 0;
  for (std::uint16_t i = 0; i < unsent_end_; ++i) bytes += unsent_[i]->pkt_len;
  const std::uint16_t sent = rte_eth_tx_burst(place_.port, place_.queue, unsent_.data(), unsent_end_);
  for (std::uint16_t i = sent; i < unsent_end_; ++i) bytes -= unsent_[i]->pkt_len;
  std::copy(unsent_.begin() + sent, unsent_.begin() + unsent_end_, unsent_.begin());
  unsent_end_ = static_cast<std::uint16_t>(unsent_end_ - sent);
  counters_.sent.add(sent);
  counters_.sent_bytes.add(bytes);
  return sent != 0;
}

void QueueFrames::close() {
  rte_pktmbuf_free_bulk(unsent_.data(), unsent_end_);
  unsent_end_ = 0;
  rte_pktmbuf_free(std::exchange(spare_, nullptr));
}

}  // namespace warpline::stream_port
