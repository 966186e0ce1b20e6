// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/transmit.h"

#include "warpline/base/buffer_mark.h"
#include "warpline/base/give_way.h"
#include "warpline/datapath/capture/capture_mbuf.h"

namespace warpline::datapath {

std::uint16_t transmit_retrying(QueuePath& path, port::PortQueue to, rte_mbuf** mbufs, std::uint16_t count,
                                std::uint16_t sent, std::uint64_t bytes) {
  for (std::uint32_t retry = 0; retry < path.tx_retries && sent < count; ++retry) {
    idle(path.yields);
    path.sent.retries.add(1);
    sent = static_cast<std::uint16_t>(sent + rte_eth_tx_burst(to.port, to.queue, mbufs + sent, count - sent));
  }
  if (bytes != 0) {
    for (std::uint16_t i = sent; i < count; ++i) bytes -= rte_pktmbuf_pkt_len(mbufs[i]);
  }
  if (auto* const capture = path.capture.load(std::memory_order_acquire); capture != nullptr) [[unlikely]] {
    capture_drops(*capture, mbufs + sent, count - sent, to, capture::Direction::outbound, Verdict::tx_full);
  }
  for (std::uint16_t i = sent; i < count; ++i) {
    if (mbufs[i] == path.followed.mbuf) [[unlikely]]
      path.followed.verdict = Verdict::tx_full;
  }
  rte_pktmbuf_free_bulk(mbufs + sent, count - sent);
  path.sent.drops.add(Verdict::tx_full, count - sent);
  path.sent.packets.add(sent);
  path.sent.bytes.add(bytes);
  return sent;
}

std::uint16_t transmit_within_limits(QueuePath& path, port::PortQueue to, rte_mbuf** mbufs, std::uint16_t count,
                                     std::uint64_t bytes) {
  std::uint16_t kept = 0;
  for (std::uint16_t i = 0; i < count; ++i) {
    rte_mbuf* const mbuf = mbufs[i];
    if (path.tx_limits.allow(mbuf)) {
      mbufs[kept++] = mbuf;
      continue;
    }
    if (bytes != 0) bytes -= rte_pktmbuf_pkt_len(mbuf);
    if (mbuf == path.followed.mbuf) path.followed.verdict = Verdict::giant;
    if (auto* const capture = path.capture.load(std::memory_order_acquire); capture != nullptr) {
      capture_drops(*capture, &mbuf, 1, to, capture::Direction::outbound, Verdict::giant);
    }
    rte_pktmbuf_free(mbuf);
    path.sent.drops.add(Verdict::giant);
  }
  const std::uint16_t sent = kept == 0 ? std::uint16_t{0} : rte_eth_tx_burst(to.port, to.queue, mbufs, kept);
  return transmit_retrying(path, to, mbufs, kept, sent, bytes);
}

void set_aside(QueuePath& path, rte_mbuf* mbuf, Verdict verdict) {
  if (mbuf == path.followed.mbuf) [[unlikely]]
    path.followed.verdict = verdict;
  path.sent.set_aside_parity ^= buffer_mark(mbuf);
  if (verdict == Verdict::reply) {
    path.sent.replies.add(transmit(path, path.reply, &mbuf, 1, rte_pktmbuf_pkt_len(mbuf)));
    return;
  }
  if (auto* const capture = path.capture.load(std::memory_order_acquire); capture != nullptr) [[unlikely]]
    capture_drops(*capture, &mbuf, 1, path.rx, capture::Direction::inbound, verdict);
  if (verdict != Verdict::engine_hung) rte_pktmbuf_free(mbuf);
  path.sent.drops.add(verdict);
}

}  // namespace warpline::datapath
