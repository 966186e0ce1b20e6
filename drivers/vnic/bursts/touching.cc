// SPDX-License-Identifier: Apache-2.0
// What drivers do with payload on the CPU: inlining, headers pushed into the device, frames copied.
#include <algorithm>

#include <rte_mbuf.h>

#include "vnic/bursts/bursts.h"
#include "vnic/engine/hardware.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kLine = 64;

/// Reads the first `bytes` of a chain, at least one byte of each line.
void read_payload(const rte_mbuf* mbuf, std::uint32_t bytes) {
  for (; mbuf != nullptr && bytes != 0; mbuf = mbuf->next) {
    const auto* const data = rte_pktmbuf_mtod(mbuf, const volatile std::uint8_t*);
    const std::uint32_t here = std::min<std::uint32_t>(bytes, mbuf->data_len);
    for (std::uint32_t i = 0; i < here; i += kLine) static_cast<void>(data[i]);
    if (here != 0) static_cast<void>(data[here - 1]);
    bytes -= here;
  }
}

void read_as_driver(const TxQueue& queue, const rte_mbuf* mbuf) {
  const PayloadRead& reads = queue.reads;
  if ((mbuf->ol_flags & queue.unread_flag) != 0) return;
  if (reads.whole && mbuf->pkt_len > reads.bytes) return;
  if (reads.single && mbuf->nb_segs != 1) return;
  read_payload(mbuf, reads.bytes);
}

template <eth_rx_burst_t receive>
std::uint16_t receive_touching(void* opaque, rte_mbuf** mbufs, std::uint16_t most) {
  const std::uint16_t received = receive(opaque, mbufs, most);
  const std::uint16_t bytes = received == 0 ? std::uint16_t{0} : static_cast<RxQueue*>(opaque)->touches;
  for (std::uint16_t i = 0; i < received; ++i) read_payload(mbufs[i], bytes);
  return received;
}

}  // namespace

std::uint16_t rx_burst_plain_touching(void* queue, rte_mbuf** mbufs, std::uint16_t most) {
  return receive_touching<rx_burst_plain>(queue, mbufs, most);
}

std::uint16_t rx_burst_offloads_touching(void* queue, rte_mbuf** mbufs, std::uint16_t most) {
  return receive_touching<rx_burst_offloads>(queue, mbufs, most);
}

std::uint16_t rx_burst_chained_touching(void* queue, rte_mbuf** mbufs, std::uint16_t most) {
  return receive_touching<rx_burst_chained>(queue, mbufs, most);
}

std::uint16_t tx_burst_touching(void* opaque, rte_mbuf** mbufs, std::uint16_t count) {
  if (!is_started(static_cast<TxQueue*>(opaque))) [[unlikely]]
    return 0;
  TxQueue& queue = *static_cast<TxQueue*>(opaque);
  const Persona& persona = *queue.hardware->args.persona;
  const std::uint16_t pieces = persona.pieces_sent == 0 ? queue.size : persona.pieces_sent;
  std::uint16_t sent = 0;
  while (sent < count) {
    std::uint16_t fit = sent;
    for (; fit < count && mbufs[fit]->nb_segs <= pieces; ++fit) read_as_driver(queue, mbufs[fit]);
    const auto some = static_cast<std::uint16_t>(fit - sent);
    const std::uint16_t taken = tx_burst_full(opaque, mbufs + sent, some);
    sent = static_cast<std::uint16_t>(sent + taken);
    if (taken < some || sent == count || persona.too_many_pieces == TooManyPieces::not_taken) break;
    rte_pktmbuf_free(mbufs[sent++]);
    queue.driver_counts.add(Count::tx_malformed);
  }
  // An empty burst lets the engine work, as any does.
  return count == 0 ? tx_burst_full(opaque, mbufs, 0) : sent;
}

}  // namespace warpline::vnic
