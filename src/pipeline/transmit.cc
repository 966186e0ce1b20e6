// SPDX-License-Identifier: Apache-2.0
#include "pipeline/transmit.h"

#include "base/buffer_mark.h"
#include "base/give_way.h"

namespace warpline {

std::uint16_t transmit_retrying(Stream& stream, PortQueue to, rte_mbuf** mbufs, std::uint16_t count, std::uint16_t sent,
                                std::uint64_t bytes) {
  for (std::uint32_t retry = 0; retry < stream.tx_retries && sent < count; ++retry) {
    idle(stream.yields);
    stream.sent.retries.add(1);
    sent = static_cast<std::uint16_t>(sent + rte_eth_tx_burst(to.port, to.queue, mbufs + sent, count - sent));
  }
  if (bytes != 0) {
    for (std::uint16_t i = sent; i < count; ++i) bytes -= rte_pktmbuf_pkt_len(mbufs[i]);
  }
  rte_pktmbuf_free_bulk(mbufs + sent, count - sent);
  stream.sent.drops.add(Verdict::tx_full, count - sent);
  stream.sent.packets.add(sent);
  stream.sent.bytes.add(bytes);
  return sent;
}

void set_aside(Stream& stream, rte_mbuf* mbuf, Verdict verdict) {
  stream.sent.set_aside_parity ^= buffer_mark(mbuf);
  if (verdict == Verdict::reply) {
    stream.sent.replies.add(transmit(stream, stream.reply, &mbuf, 1, rte_pktmbuf_pkt_len(mbuf)));
    return;
  }
  if (verdict != Verdict::engine_hung) rte_pktmbuf_free(mbuf);
  stream.sent.drops.add(verdict);
}

}  // namespace warpline
