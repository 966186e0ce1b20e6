// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_net.h>

#include "bursts.h"
#include "engine_call.h"
#include "tx_ring.h"

namespace warpline::vnic {
namespace {

constexpr std::uint64_t kSupportedFlags =
    RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6;

std::uint64_t data_address(const rte_mbuf* mbuf) {
  return reinterpret_cast<std::uintptr_t>(mbuf->buf_addr) + mbuf->data_off;
}

std::uint64_t checksum_word(const rte_mbuf* mbuf) {
  std::uint64_t flags = 0;
  if ((mbuf->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0) flags |= kTxIpSum;
  const std::uint64_t l4 = mbuf->ol_flags & RTE_MBUF_F_TX_L4_MASK;
  if (l4 == RTE_MBUF_F_TX_UDP_CKSUM) flags |= kTxUdpSum;
  if (l4 == RTE_MBUF_F_TX_TCP_CKSUM) flags |= kTxTcpSum;
  return flags == 0 ? 0 : tx_word(0, mbuf->l2_len, mbuf->l3_len, flags);
}

/// Vacant descriptors, after reclaiming what is due. None: the fault of a full ring.
std::uint32_t begin_burst(TxQueue& queue, rte_mbuf* const* mbufs, std::uint16_t count) {
  if (count == 0) [[unlikely]]
    return 0;
  if (const double full = queue.device->egress.faults().tx_full(); full > 0) [[unlikely]] {
    if (queue.full_draw.happens(full)) {
      queue.driver_counts.add(Count::fault_tx_full_polls);
      return 0;
    }
  }
  if (tx_vacant(queue) < std::max(queue.free_thresh, count)) tx_reclaim(queue, std::max(queue.free_thresh, count));
  if ((queue.offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0 && queue.fast_pool == nullptr) [[unlikely]] {
    queue.fast_pool = mbufs[0]->pool;
  }
  return tx_vacant(queue);
}

void end_burst(TxQueue& queue) {
  run_inline_engine(queue, [&](Engine& engine) { engine.serve_tx(queue); });
}

/// Segments that really hang together, whatever nb_segs says.
std::uint32_t chain_length(const rte_mbuf* mbuf) {
  if (mbuf->nb_segs == 1) return 1;
  std::uint32_t count = 0;
  for (; mbuf != nullptr; mbuf = mbuf->next) ++count;
  return count;
}

/// Fast free is the application's promise that all it sends is of one pool. Some break it (testpmd does with a buffer
/// split over pools), and one pool would drain into another: then the queue frees with care from now on.
void hold_to_promise(TxQueue& queue, const rte_mbuf* mbuf) {
  if (queue.fast_pool == nullptr || mbuf->pool == queue.fast_pool) [[likely]]
    return;
  queue.fast_pool = nullptr;
  queue.offloads &= ~RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
}

/// Writes a frame's descriptors from `index` on and returns the one behind them.
std::uint16_t write_frame(TxQueue& queue, rte_mbuf* mbuf, std::uint32_t segments, std::uint16_t index) {
  std::uint64_t word = checksum_word(mbuf);
  for (std::uint32_t left = segments; left > 0; --left) {
    rte_mbuf* const next = segments == 1 ? nullptr : mbuf->next;
    if (left == 1) word |= kTxEnd;
    hold_to_promise(queue, mbuf);
    queue.ring[index] = {data_address(mbuf), word | mbuf->data_len};
    queue.software_ring[index] = mbuf;
    if (segments > 1 && queue.fast_pool != nullptr) {
      // Goes back to its pool unseen.
      mbuf->next = nullptr;
      mbuf->nb_segs = 1;
    }
    index = advance(index, queue.size);
    word = 0;
    mbuf = next;
  }
  return index;
}

/// Sends what fits; a frame that no ring could ever take is dropped.
std::uint16_t send_full(TxQueue& queue, rte_mbuf** mbufs, std::uint16_t count, std::uint32_t vacant) {
  std::uint16_t index = queue.next;
  std::uint32_t written = 0;
  std::uint16_t sent = 0;
  for (; sent < count; ++sent) {
    const std::uint32_t segments = chain_length(mbufs[sent]);
    if (segments > queue.size) [[unlikely]] {
      rte_pktmbuf_free(mbufs[sent]);
      queue.driver_counts.add(Count::tx_malformed);
      continue;
    }
    if (segments > vacant - written) {
      tx_reclaim(queue, written + segments);
      vacant = tx_vacant(queue);
      if (segments > vacant - written) break;
    }
    index = write_frame(queue, mbufs[sent], segments, index);
    written += segments;
  }
  tx_post(queue, written);
  return sent;
}

}  // namespace

std::uint16_t tx_burst_plain(void* opaque, rte_mbuf** mbufs, std::uint16_t count) {
  if (!is_started(static_cast<TxQueue*>(opaque))) [[unlikely]]
    return 0;
  TxQueue& queue = *static_cast<TxQueue*>(opaque);
  const std::uint32_t vacant = begin_burst(queue, mbufs, count);
  const auto most = static_cast<std::uint16_t>(std::min<std::uint32_t>(count, vacant));
  const rte_mempool* const pool = queue.fast_pool;
  std::uint16_t index = queue.next;
  std::uint16_t sent = 0;
  for (; sent < most; ++sent) {
    rte_mbuf* const mbuf = mbufs[sent];
    if (mbuf->nb_segs != 1 || (pool != nullptr && mbuf->pool != pool)) [[unlikely]]
      break;
    queue.ring[index] = {data_address(mbuf), mbuf->data_len | kTxEnd};
    queue.software_ring[index] = mbuf;
    index = advance(index, queue.size);
  }
  tx_post(queue, sent);
  if (sent < most) [[unlikely]] {
    sent += send_full(queue, mbufs + sent, static_cast<std::uint16_t>(count - sent), vacant - sent);
  }
  end_burst(queue);
  return sent;
}

std::uint16_t tx_burst_full(void* opaque, rte_mbuf** mbufs, std::uint16_t count) {
  if (!is_started(static_cast<TxQueue*>(opaque))) [[unlikely]]
    return 0;
  TxQueue& queue = *static_cast<TxQueue*>(opaque);
  const std::uint32_t vacant = begin_burst(queue, mbufs, count);
  const std::uint16_t sent = vacant == 0 ? std::uint16_t{0} : send_full(queue, mbufs, count, vacant);
  end_burst(queue);
  return sent;
}

std::uint16_t tx_prepare(void* opaque, rte_mbuf** mbufs, std::uint16_t count) {
  if (opaque == nullptr) [[unlikely]] {
    rte_errno = EINVAL;
    return 0;
  }
  const TxQueue& queue = *static_cast<TxQueue*>(opaque);
  for (std::uint16_t i = 0; i < count; ++i) {
    rte_mbuf* const mbuf = mbufs[i];
    const std::uint64_t flags = mbuf->ol_flags & RTE_MBUF_F_TX_OFFLOAD_MASK;
    if ((flags & ~kSupportedFlags) != 0 || (flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_SCTP_CKSUM) {
      rte_errno = ENOTSUP;
      return i;
    }
    if (mbuf->nb_segs > queue.size || mbuf->pkt_len > kMaxFrame || mbuf->pkt_len == 0) {
      rte_errno = EINVAL;
      return i;
    }
    if (const int error = rte_net_intel_cksum_prepare(mbuf); error != 0) {
      rte_errno = -error;
      return i;
    }
  }
  return count;
}

}  // namespace warpline::vnic
