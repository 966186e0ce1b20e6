// SPDX-License-Identifier: Apache-2.0
// How the mbufs of sent frames go back to their pools.
#include <algorithm>

#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_version.h>

#include "vnic/rings/tx_ring.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kFreedAtOnce = 64;

void put(rte_mempool* pool, void** mbufs, std::uint32_t count) {
  if (count > 0) rte_mempool_put_bulk(pool, mbufs, count);
}

/// Mbufs of any pool on their way there. A pool's go together while no other pool's come between.
class Gathered {
 public:
  void add(rte_mempool* pool, rte_mbuf* mbuf) {
    if (pool != pool_) {
      put(pool_, mbufs_, count_);
      count_ = 0;
      pool_ = pool;
    }
    mbufs_[count_++] = mbuf;
  }
  void flush() { put(pool_, mbufs_, count_); }

 private:
  rte_mempool* pool_ = nullptr;
  std::uint32_t count_ = 0;
  void* mbufs_[kFreedAtOnce];
};

/// Nobody else's, and its buffer is its own.
inline bool is_plain(const rte_mbuf* mbuf) { return rte_mbuf_refcnt_read(mbuf) == 1 && RTE_MBUF_DIRECT(mbuf); }

/// Frees at most kFreedAtOnce mbufs for free_checked(). Returns how many it put into pools.
template <bool mixed>
std::uint32_t free_some(rte_mbuf* const* mbufs, std::uint32_t count) {
  void* one[kFreedAtOnce];
  unsigned ones = 0;
  unsigned others = 0;
  Gathered other;
  rte_mempool* const pool_of_one = mbufs[0]->pool;
  for (std::uint32_t i = 0; i < count; ++i) {
    rte_mbuf* mbuf = mbufs[i];
    if (mixed || !is_plain(mbuf)) {
      mbuf = rte_pktmbuf_prefree_seg(mbuf);
      if (mbuf == nullptr) continue;
    }
    if (mbuf->pool == pool_of_one) {
      one[ones++] = mbuf;
    } else {
      other.add(mbuf->pool, mbuf);
      ++others;
    }
  }
  put(pool_of_one, one, ones);
  other.flush();
  return ones + others;
}

#if RTE_VERSION < RTE_VERSION_NUM(26, 7, 0, 0)
/// The lcore's cache takes `count` more, by the rule of this DPDK's own put: what would pass the threshold goes to the
/// common pool first, all of it.
inline void make_room(rte_mempool* pool, rte_mempool_cache* cache, std::uint32_t count) {
  if (cache->len + count <= cache->flushthresh) return;
  rte_mempool_ops_enqueue_bulk(pool, cache->objs, cache->len);
  cache->len = 0;
}

/// The same as free_some(), without the array for mbufs of the first one's pool.
template <bool mixed>
std::uint32_t free_to_cache(rte_mbuf* const* mbufs, std::uint32_t count) {
  rte_mempool* const pool = mbufs[0]->pool;
  rte_mempool_cache* const cache = rte_mempool_default_cache(pool, rte_lcore_id());
  if (cache == nullptr || count > cache->flushthresh) return free_some<mixed>(mbufs, count);
  make_room(pool, cache, count);
  void** to = cache->objs + cache->len;
  std::uint32_t freed = 0;
  Gathered other;
  for (std::uint32_t i = 0; i < count; ++i) {
    rte_mbuf* mbuf = mbufs[i];
    if (!is_plain(mbuf)) [[unlikely]] {
      // Whatever it is attached to may be freed with it, into the same cache.
      cache->len = static_cast<std::uint32_t>(to - cache->objs);
      mbuf = rte_pktmbuf_prefree_seg(mbuf);
      make_room(pool, cache, count - i);
      to = cache->objs + cache->len;
      if (mbuf == nullptr) continue;
    } else if constexpr (mixed) {
      if (mbuf->next != nullptr) mbuf->next = nullptr;
      if (mbuf->nb_segs != 1) mbuf->nb_segs = 1;
    }
    ++freed;
    if (mbuf->pool == pool) [[likely]] {
      *to++ = mbuf;
    } else {
      other.add(mbuf->pool, mbuf);
    }
  }
  cache->len = static_cast<std::uint32_t>(to - cache->objs);
  other.flush();
  return freed;
}
#else
// Its caches follow another rule, and their layout is to change.
template <bool mixed>
std::uint32_t free_to_cache(rte_mbuf* const* mbufs, std::uint32_t count) {
  return free_some<mixed>(mbufs, count);
}
#endif

/// Back to their pools, each looked at. Mbufs of a `mixed` range may still be linked to others.
template <bool mixed>
std::uint32_t free_checked(const TxQueue& queue, rte_mbuf* const* mbufs, std::uint32_t count) {
  std::uint32_t freed = 0;
  for (std::uint32_t i = 0; i < count; i += kFreedAtOnce) {
    const std::uint32_t some = std::min(count - i, kFreedAtOnce);
    freed += queue.frees_to_cache ? free_to_cache<mixed>(mbufs + i, some) : free_some<mixed>(mbufs + i, some);
  }
  return freed;
}

}  // namespace

void tx_free(TxQueue& queue, std::uint32_t begin, std::uint32_t count) {
  rte_mbuf** const mbufs = queue.software_ring + begin;
  std::uint32_t freed = count;
  if (queue.fast_pool != nullptr) {
    // MBUF_FAST_FREE promises that all mbufs are of one pool, have one reference and are not chained.
    rte_mempool_put_bulk(queue.fast_pool, reinterpret_cast<void**>(mbufs), count);
  } else if (static_cast<std::int32_t>(queue.mixed_until - queue.reclaimed) > 0) {
    freed = free_checked<true>(queue, mbufs, count);
  } else {
    freed = free_checked<false>(queue, mbufs, count);
    queue.mixed_until = queue.reclaimed;  // stays near, for both are free-running
  }
  static_cast<void>(tx_may_be_linked(queue));
  queue.driver_counts.add(Count::mempool_puts, freed);
}

}  // namespace warpline::vnic
