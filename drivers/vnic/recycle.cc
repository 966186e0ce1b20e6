// SPDX-License-Identifier: Apache-2.0
#include "recycle.h"

#include <algorithm>

#include <rte_version.h>

#include "bursts.h"
#include "rx_ring.h"
#include "tx_ring.h"

namespace warpline::vnic {
namespace {

/// The places where a receiving driver wants buffers: `vacant` of a software ring, from `head` on.
struct Places {
  rte_mbuf** ring;
  rte_mempool* pool;
  std::uint32_t size;
  std::uint32_t head;
  std::uint32_t vacant;
};

/// The oldest batch's mbufs move into `places`; those that cannot are freed. Returns the mbufs moved.
std::uint16_t move_batch(TxQueue& queue, const Places& places) {
  Counters& counts = queue.driver_counts;
  if (queue.sent - queue.reclaimed < queue.rs_thresh) {
    counts.add(Count::recycle_refused_threshold);
    return 0;
  }
  if (places.vacant < queue.rs_thresh) {
    counts.add(Count::recycle_refused_full);
    return 0;
  }
  if (!tx_batch_done(queue)) {
    counts.add(Count::recycle_refused_empty);
    return 0;
  }
  std::uint32_t to = places.head;
  std::uint32_t from = queue.reclaim_at;
  std::uint16_t moved = 0;
  for (std::uint32_t left = queue.rs_thresh; left > 0; --left) {
    rte_mbuf* const sent = queue.software_ring[from];
    from = advance(static_cast<std::uint16_t>(from), queue.size);
    rte_mbuf* const mbuf = queue.fast_pool != nullptr ? sent : rte_pktmbuf_prefree_seg(sent);
    if (mbuf == nullptr) {
      counts.add(Count::recycle_refused_shared);
      continue;
    }
    if (mbuf->pool != places.pool) {
      counts.add(Count::recycle_refused_pool);
      rte_mempool_put(mbuf->pool, mbuf);
      continue;
    }
    places.ring[to] = mbuf;
    to = to + 1 == places.size ? 0 : to + 1;
    ++moved;
  }
  tx_pass(queue, queue.rs_thresh);
  counts.add(Count::recycled, moved);
  return moved;
}

/// Posts `count` buffers that stand in the software ring.
void post_moved(RxQueue& queue, std::uint16_t count) {
  const auto first = static_cast<std::uint16_t>(std::min<std::uint32_t>(count, queue.size - queue.refill_at));
  rx_post(queue, first);
  if (count > first) rx_post(queue, static_cast<std::uint16_t>(count - first));
}

// The fast path's own table: a stopped port's burst functions are not ours there, nor are another driver's.
RxQueue* receiving_queue(std::uint16_t port, std::uint16_t queue) {
  if (port >= RTE_MAX_ETHPORTS || queue >= kMaxQueues) return nullptr;
  const struct rte_eth_fp_ops& ops = rte_eth_fp_ops[port];
  if (ops.rxq.data == nullptr) return nullptr;  // a port without receive queues
  if (ops.rx_pkt_burst != rx_burst_plain && ops.rx_pkt_burst != rx_burst_offloads) return nullptr;
  return static_cast<RxQueue*>(ops.rxq.data[queue]);
}

TxQueue* sending_queue(std::uint16_t port, std::uint16_t queue) {
  if (port >= RTE_MAX_ETHPORTS || queue >= kMaxQueues) return nullptr;
  const struct rte_eth_fp_ops& ops = rte_eth_fp_ops[port];
  if (ops.txq.data == nullptr) return nullptr;
  if (ops.tx_pkt_burst != tx_burst_plain && ops.tx_pkt_burst != tx_burst_full) return nullptr;
  return static_cast<TxQueue*>(ops.txq.data[queue]);
}

#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
std::uint16_t reuse_sent(void* opaque, rte_eth_recycle_rxq_info* info) {
  const std::uint32_t size = info->mbuf_ring_size;
  const std::uint32_t head = *info->refill_head;
  const std::uint32_t tail = *info->receive_tail;
  // Equal: the ring is full, for it was filled at first and never lets its last buffer go.
  const Places places{info->mbuf_ring, info->mp, size, head, tail >= head ? tail - head : tail + size - head};
  return move_batch(*static_cast<TxQueue*>(opaque), places);
}

void refill_moved(void* opaque, std::uint16_t count) { post_moved(*static_cast<RxQueue*>(opaque), count); }

void recycle_info_get(rte_eth_dev* dev, std::uint16_t id, rte_eth_recycle_rxq_info* info) {
  RxQueue& queue = *device_of(dev).rx[id];
  info->mbuf_ring = queue.software_ring;
  info->mp = queue.pools[0];
  info->refill_head = &queue.refill_at;
  info->receive_tail = &queue.next;
  info->mbuf_ring_size = queue.size;
  info->refill_requirement = 0;
}
#endif

}  // namespace

#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
void offer_recycling(eth_dev_ops& ops) { ops.recycle_rxq_info_get = recycle_info_get; }

void install_recycling(rte_eth_dev* dev) {
  dev->recycle_tx_mbufs_reuse = reuse_sent;
  dev->recycle_rx_descriptors_refill = refill_moved;
}
#else
void offer_recycling(eth_dev_ops& /*ops*/) {}

void install_recycling(rte_eth_dev* /*dev*/) {}
#endif

}  // namespace warpline::vnic

std::uint16_t rte_net_vnic_recycle_mbufs(std::uint16_t rx_port, std::uint16_t rx_queue, std::uint16_t tx_port,
                                         std::uint16_t tx_queue) {
  using namespace warpline::vnic;
  RxQueue* const to = receiving_queue(rx_port, rx_queue);
  TxQueue* const from = sending_queue(tx_port, tx_queue);
  if (to == nullptr || from == nullptr) return 0;
  if (!to->started.load(std::memory_order_relaxed) || !from->started.load(std::memory_order_relaxed)) return 0;
  const std::uint16_t moved =
      move_batch(*from, {to->software_ring, to->pools[0], to->size, to->refill_at, rx_vacant(*to)});
  if (moved > 0) post_moved(*to, moved);
  return moved;
}
