// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/capture/packet_trace.h"

#include <cstring>

namespace warpline::datapath {

void PacketTrace::begin(QueuePath& path, rte_mbuf* const* mbufs, std::uint16_t count) {
  source_ = path.trace.load(std::memory_order_acquire);
  packet_ = source_ == nullptr || count == 0 ? nullptr : source_->begin(Verdict::forward);
  if (packet_ == nullptr) return;
  const rte_mbuf* const mbuf = mbufs[turn_++ % count];
  packet_->length = rte_pktmbuf_pkt_len(mbuf);
  path.followed = {mbuf, Verdict::forward};
}

void PacketTrace::end(QueuePath& path, const capture::PacketTimes& times) {
  if (packet_ == nullptr) return;
  packet_->ticks = times.received;
  packet_->captured = sizeof times;
  packet_->port = path.rx.port;
  packet_->queue = path.rx.queue;
  packet_->verdict = path.followed.verdict;
  packet_->direction = capture::Direction::inbound;
  std::memcpy(packet_->bytes(), &times, sizeof times);
  path.followed = {};
  source_->end(*packet_);
  packet_ = nullptr;
}

}  // namespace warpline::datapath
