// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_net.h>

#include "vnic/bursts/bursts.h"
#include "vnic/bursts/engine_call.h"
#include "vnic/rings/prefetch.h"
#include "vnic/rings/tx_ring.h"

namespace warpline::vnic {
namespace {

constexpr std::uint64_t kSupportedFlags =
    RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6;

std::uint64_t data_address(const rte_mbuf* mbuf) {
  return reinterpret_cast<std::uintptr_t>(mbuf->buf_addr) + mbuf->data_off;
}

/// The mbuf of the descriptor at `index`, until that is reclaimed.
void keep(TxQueue& queue, std::uint32_t index, rte_mbuf* mbuf) {
  queue.software_ring[index] = mbuf;
  if (queue.buffers != nullptr) [[unlikely]]
    queue.buffers[index] = reinterpret_cast<std::uintptr_t>(mbuf->buf_addr);
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
  if (const double full = queue.hardware->egress.faults().tx_full(); full > 0) [[unlikely]] {
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
    keep(queue, index, mbuf);
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

/// Mbufs whose lines are fetched ahead of the frame that is written: heads, and what hangs on them.
constexpr std::uint16_t kHeadsAhead = 16;
constexpr std::uint16_t kRestsAhead = 8;

struct Written {
  std::uint16_t frames = 0;
  std::uint16_t descriptors = 0;
};

/// Frames at the front of mbufs[0 .. count) of one mbuf, or with `pairs` of one or two, that nobody else holds, from
/// `index` on into `room` descriptors. Pairs are taken apart, so that each mbuf goes back to its pool as it is.
template <bool pairs>
Written write_common(TxQueue& queue, rte_mbuf* const* mbufs, std::uint16_t count, std::uint16_t index,
                     std::uint32_t room) {
  Written written;
  TxDescriptor* const ring = queue.ring;
  const std::uint16_t size = queue.size;
  if constexpr (pairs) {
    for (std::uint16_t i = 1; i < std::min(count, kHeadsAhead); ++i) prefetch_head_for_write(mbufs[i]);
  }
  for (; written.frames < count; ++written.frames) {
    rte_mbuf* const head = mbufs[written.frames];
    if constexpr (pairs) {
      if (written.frames + kHeadsAhead < count) prefetch_head_for_write(mbufs[written.frames + kHeadsAhead]);
      if (written.frames + kRestsAhead < count) __builtin_prefetch(mbufs[written.frames + kRestsAhead]->next);
    }
    if (rte_mbuf_refcnt_read(head) != 1) [[unlikely]]
      break;
    if (head->nb_segs == 1) {
      if (written.descriptors == room) break;
      ring[index] = {data_address(head), checksum_word(head) | head->data_len | kTxEnd};
      keep(queue, index, head);
      index = advance(index, size);
      ++written.descriptors;
      continue;
    }
    if (!pairs || head->nb_segs != 2 || room - written.descriptors < 2) break;
    rte_mbuf* const rest = head->next;
    if (rest == nullptr || rte_mbuf_refcnt_read(rest) != 1) [[unlikely]]
      break;
    ring[index] = {data_address(head), checksum_word(head) | head->data_len};
    keep(queue, index, head);
    index = advance(index, size);
    ring[index] = {data_address(rest), rest->data_len | kTxEnd};
    keep(queue, index, rest);
    index = advance(index, size);
    head->next = nullptr;
    head->nb_segs = 1;
    written.descriptors = static_cast<std::uint16_t>(written.descriptors + 2);
  }
  return written;
}

/// Sends what fits; a frame that no ring could ever take is dropped.
std::uint16_t send_full(TxQueue& queue, rte_mbuf** mbufs, std::uint16_t count, std::uint32_t vacant) {
  std::uint16_t index = queue.next;
  std::uint32_t written = 0;
  std::uint16_t sent = 0;
  while (sent < count) {
    if (const std::uint32_t wanted = written + std::uint32_t{mbufs[sent]->nb_segs} * (count - sent); wanted > vacant) {
      tx_reclaim(queue, wanted);
      vacant = tx_vacant(queue);
    }
    const auto left = static_cast<std::uint16_t>(count - sent);
    Written common;
    if (queue.fast_pool == nullptr) {
      const auto write = mbufs[sent]->nb_segs == 1 ? write_common<false> : write_common<true>;
      common = write(queue, mbufs + sent, left, index, vacant - written);
    }
    if (common.frames != 0) {
      sent = static_cast<std::uint16_t>(sent + common.frames);
      written += common.descriptors;
      index = static_cast<std::uint16_t>((std::uint32_t{index} + common.descriptors) % queue.size);
      continue;
    }
    const std::uint32_t segments = chain_length(mbufs[sent]);
    if (segments > queue.size) [[unlikely]] {
      rte_pktmbuf_free(mbufs[sent++]);
      queue.driver_counts.add(Count::tx_malformed);
      continue;
    }
    if (segments > vacant - written) {
      tx_reclaim(queue, written + segments);
      vacant = tx_vacant(queue);
      if (segments > vacant - written) break;
    }
    index = write_frame(queue, mbufs[sent++], segments, index);
    written += segments;
    queue.mixed_until = queue.linked_until = queue.sent + written;
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
    keep(queue, index, mbuf);
    index = advance(index, queue.size);
  }
  tx_post(queue, sent);
  if (pool == nullptr) queue.mixed_until = queue.sent;
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
