// SPDX-License-Identifier: Apache-2.0
#include "tx_ring.h"

#include <algorithm>

#include <rte_mbuf.h>

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kFreedAtOnce = 64;

/// Of one pool, nobody else's, no chain: what fast free promises.
void free_fast(TxQueue& queue, rte_mbuf** mbufs, std::uint32_t count) {
  rte_mempool_put_bulk(queue.fast_pool, reinterpret_cast<void**>(mbufs), count);
}

/// Of free_checked(), at most kFreedAtOnce.
template <bool mixed>
void free_some(rte_mbuf* const* mbufs, std::uint32_t count) {
  void* one[kFreedAtOnce];
  void* other[kFreedAtOnce];
  unsigned ones = 0;
  unsigned others = 0;
  rte_mempool* pool_of_one = count > 0 ? mbufs[0]->pool : nullptr;
  rte_mempool* pool_of_other = nullptr;
  for (std::uint32_t i = 0; i < count; ++i) {
    rte_mbuf* mbuf = mbufs[i];
    if (mixed || rte_mbuf_refcnt_read(mbuf) != 1 || !RTE_MBUF_DIRECT(mbuf)) {
      mbuf = rte_pktmbuf_prefree_seg(mbuf);
      if (mbuf == nullptr) continue;
    }
    rte_mempool* const pool = mbuf->pool;
    if (pool == pool_of_one) {
      one[ones++] = mbuf;
      continue;
    }
    if (pool != pool_of_other) {
      if (others > 0) rte_mempool_put_bulk(pool_of_other, other, others);
      others = 0;
      pool_of_other = pool;
    }
    other[others++] = mbuf;
  }
  if (ones > 0) rte_mempool_put_bulk(pool_of_one, one, ones);
  if (others > 0) rte_mempool_put_bulk(pool_of_other, other, others);
}

/// Back to their pools, of which two may alternate: those of heads and of the rest. Mbufs of a `mixed` range may still
/// be linked to others.
template <bool mixed>
void free_checked(rte_mbuf* const* mbufs, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; i += kFreedAtOnce) {
    free_some<mixed>(mbufs + i, std::min(count - i, kFreedAtOnce));
  }
}

void free_range(TxQueue& queue, std::uint32_t begin, std::uint32_t count) {
  if (queue.fast_pool != nullptr) {
    free_fast(queue, queue.software_ring + begin, count);
  } else if (static_cast<std::int32_t>(queue.mixed_until - queue.reclaimed) > 0) {
    free_checked<true>(queue.software_ring + begin, count);
  } else {
    free_checked<false>(queue.software_ring + begin, count);
    queue.mixed_until = queue.reclaimed;  // stays near, for both are free-running
  }
}

/// Both parts of a range that may wrap.
void free_oldest(TxQueue& queue, std::uint32_t count) {
  const std::uint32_t first = std::min<std::uint32_t>(count, queue.size - queue.reclaim_at);
  free_range(queue, queue.reclaim_at, first);
  if (count > first) free_range(queue, 0, count - first);
  tx_pass(queue, count);
}

}  // namespace

void tx_free_batch(TxQueue& queue) { free_oldest(queue, queue.rs_thresh); }

void tx_post(TxQueue& queue, std::uint32_t count) {
  const std::uint32_t pending = queue.unreported + count;
  std::uint32_t next = queue.next + count;
  if (pending >= queue.rs_thresh) {
    std::uint32_t reported = 0;
    for (std::uint32_t ahead = queue.rs_thresh - queue.unreported; ahead <= count; ahead += queue.rs_thresh) {
      std::uint32_t index = queue.next + ahead - 1;
      if (index >= queue.size) index -= queue.size;
      queue.ring[index].word |= kTxReport;
      reported += queue.rs_thresh;
    }
    queue.unreported = static_cast<std::uint16_t>(pending - reported);
  } else {
    queue.unreported = static_cast<std::uint16_t>(pending);
  }
  if (next >= queue.size) next -= queue.size;
  queue.next = static_cast<std::uint16_t>(next);
  queue.sent += count;
  queue.posted.store(queue.sent, std::memory_order_release);
}

void tx_empty(TxQueue& queue) {
  if (const std::uint32_t left = queue.sent - queue.reclaimed; left > 0) free_oldest(queue, left);
  std::fill_n(queue.ring, queue.size, TxDescriptor{});
  std::fill_n(queue.software_ring, queue.size, nullptr);
  queue.sent = queue.reclaimed = queue.mixed_until = 0;
  queue.next = queue.reclaim_at = queue.unreported = 0;
  queue.fast_pool = nullptr;
  queue.posted.store(0, std::memory_order_release);
}

}  // namespace warpline::vnic
