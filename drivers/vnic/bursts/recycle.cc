// SPDX-License-Identifier: Apache-2.0
#include "vnic/bursts/recycle.h"

#include <algorithm>

#include <rte_mbuf.h>
#include <rte_version.h>

#include "vnic/bursts/bursts.h"
#include "vnic/rings/posted_set.h"
#include "vnic/rings/rx_ring.h"
#include "vnic/rings/tx_ring.h"

namespace warpline::vnic {
namespace {

/// Buffers that do not move, on their way to their pools.
class Refused {
 public:
  explicit Refused(Counters& counts) : counts_(counts) {}
  void add(rte_mbuf* mbuf) {
    if (mbuf->pool != pool_ || count_ == kMost) flush();
    pool_ = mbuf->pool;
    mbufs_[count_++] = mbuf;
  }
  void flush() {
    if (count_ == 0) return;
    rte_mempool_put_bulk(pool_, mbufs_, count_);
    counts_.add(Count::recycle_refused_pool, count_);
    counts_.add(Count::mempool_puts, count_);
    count_ = 0;
  }

 private:
  static constexpr std::uint32_t kMost = 32;
  Counters& counts_;
  rte_mempool* pool_ = nullptr;
  std::uint32_t count_ = 0;
  void* mbufs_[kMost];
};

/// Nobody else's, with a buffer of its own, and the only one of its frame: all that a look at its first line tells.
/// But for segments behind the first, of which tx_may_be_linked() tells.
inline bool moves_as_it_is(const rte_mbuf* mbuf) {
  return rte_mbuf_refcnt_read(mbuf) == 1 && RTE_MBUF_DIRECT(mbuf) && mbuf->nb_segs == 1;
}

/// Where `count` mbufs from `from` on go: place(mbuf, index in the transmit ring, or -1 if its buffer may be another
/// than the one sent). They do not wrap. Returns those placed.
template <typename Place>
std::uint32_t move_checked(TxQueue& queue, const rte_mempool* pool, std::uint32_t from, std::uint32_t count,
                           Place&& place) {
  const bool linked = tx_may_be_linked(queue);
  Refused refused(queue.driver_counts);
  std::uint32_t moved = 0;
  std::uint32_t shared = 0;
  for (std::uint32_t i = from; i < from + count; ++i) {
    rte_mbuf* mbuf = queue.software_ring[i];
    std::int32_t index = static_cast<std::int32_t>(i);
    if (linked || !moves_as_it_is(mbuf)) [[unlikely]] {
      mbuf = rte_pktmbuf_prefree_seg(mbuf);
      index = -1;
      if (mbuf == nullptr) {
        ++shared;
        continue;
      }
    }
    if (mbuf->pool != pool) [[unlikely]] {
      refused.add(mbuf);
      continue;
    }
    place(mbuf, index);
    ++moved;
  }
  refused.flush();
  if (shared > 0) queue.driver_counts.add(Count::recycle_refused_shared, shared);
  return moved;
}

/// As move_checked(), of mbufs that all may be moved.
template <typename Place>
std::uint32_t move_all(const TxQueue& queue, std::uint32_t from, std::uint32_t count, Place&& place) {
  rte_mbuf* const* const sent = queue.software_ring;
  for (std::uint32_t i = from; i < from + count; ++i) place(sent[i], static_cast<std::int32_t>(i));
  return count;
}

/// What keeps the oldest batch where it is, `vacant` descriptors being free to receive; or recycled: nothing does.
Count obstacle(TxQueue& queue, std::uint32_t vacant) {
  if (queue.sent - queue.reclaimed < queue.rs_thresh) return Count::recycle_refused_threshold;
  if (vacant < queue.rs_thresh) return Count::recycle_refused_full;
  return tx_batch_done(queue) ? Count::recycled : Count::recycle_refused_empty;
}

/// Descriptors that receive into the mbufs of one that sends. All in one pass: what was sent last burst is still near.
/// `promised`: all are of the receiver's pool and nobody else's.
template <bool promised>
class Mover {
 public:
  Mover(RxQueue& to, TxQueue& from)
      : to_(to), from_(from), data_at_(to.data_at[0]), offset_(to.offset[0]), room_(to.room[0]) {}

  /// The oldest batch, into as many vacant descriptors.
  std::uint32_t move_batch() {
    std::uint32_t moved = 0;
    for (std::uint32_t left = from_.rs_thresh; left > 0;) {
      const std::uint32_t run = std::min({left, static_cast<std::uint32_t>(from_.size - from_.reclaim_at),
                                          static_cast<std::uint32_t>(to_.size - to_.refill_at)});
      moved += move_run(run);
      tx_pass(from_, run);
      left -= run;
    }
    return moved;
  }

 private:
  std::uint32_t move_run(std::uint32_t count) {
    // Captured by value: what is written to the rings could be any of the members.
    const std::uint64_t offset = offset_;
    if (const std::uint64_t* const buffers = from_.buffers; buffers != nullptr) {
      return fill(count, [buffers, offset](const rte_mbuf* mbuf, std::int32_t index) {
        return (index >= 0 ? buffers[index] : buffer_of(mbuf)) + offset;
      });
    }
    if (data_at_ == 0)
      return fill(count, [offset](const rte_mbuf* mbuf, std::int32_t /*index*/) { return buffer_of(mbuf) + offset; });
    return fill(count, [data_at = data_at_](const rte_mbuf* mbuf, std::int32_t /*index*/) {
      return reinterpret_cast<std::uintptr_t>(mbuf) + data_at;
    });
  }

  template <typename Address>
  std::uint32_t fill(std::uint32_t count, Address address) {
    rte_mbuf** mbufs = to_.software_ring + to_.refill_at;
    RxDescriptor* descriptors = to_.ring + to_.refill_at;
    const std::uint64_t room = room_;
    const auto place = [&](rte_mbuf* mbuf, std::int32_t index) {
      posted_set.insert(mbuf);
      *descriptors++ = {address(mbuf, index), room};
      *mbufs++ = mbuf;
    };
    const std::uint32_t from = from_.reclaim_at;
    const std::uint32_t moved =
        promised ? move_all(from_, from, count, place) : move_checked(from_, to_.pools[0], from, count, place);
    rx_posted(to_, static_cast<std::uint16_t>(moved));
    return moved;
  }

  [[nodiscard]] static std::uint64_t buffer_of(const rte_mbuf* mbuf) {
    return reinterpret_cast<std::uintptr_t>(mbuf->buf_addr);
  }

  RxQueue& to_;
  TxQueue& from_;
  const std::uint64_t data_at_;
  const std::uint64_t offset_;
  const std::uint64_t room_;
};

/// All batches that are done, the first of which is, into `vacant` descriptors.
template <bool promised>
std::uint16_t move_batches(RxQueue& to, TxQueue& from, std::uint32_t vacant) {
  Mover<promised> mover(to, from);
  std::uint32_t moved = 0;
  do {
    const std::uint32_t more = mover.move_batch();
    moved += more;
    vacant -= more;
  } while (obstacle(from, vacant) == Count::recycled);
  from.driver_counts.add(Count::recycled, moved);
  return static_cast<std::uint16_t>(moved);
}

/// Out of line, or the short way would save the registers that this one needs.
[[gnu::noinline]] std::uint16_t move_looked_at(RxQueue& to, TxQueue& from, std::uint32_t vacant) {
  return move_batches<false>(to, from, vacant);
}

std::uint16_t recycle(RxQueue& to, TxQueue& from) {
  if (from.fast_pool != nullptr && from.fast_pool != to.pools[0]) [[unlikely]] {
    // Another pool's, one and all: they go there as ever, when the ring needs the room.
    from.driver_counts.add(Count::recycle_refused_pool, from.rs_thresh);
    return 0;
  }
  const std::uint32_t vacant = rx_vacant(to);
  if (const Count why = obstacle(from, vacant); why != Count::recycled) {
    from.driver_counts.add(why);
    return 0;
  }
  return from.fast_pool != nullptr ? move_batches<true>(to, from, vacant) : move_looked_at(to, from, vacant);
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
  const bool own = ops.tx_pkt_burst == tx_burst_plain || ops.tx_pkt_burst == tx_burst_full;
  if (!own && ops.tx_pkt_burst != tx_burst_touching) return nullptr;
  return static_cast<TxQueue*>(ops.txq.data[queue]);
}

#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
/// Into another driver's software ring, perhaps; it posts them when refill is called.
std::uint16_t reuse_sent(void* opaque, rte_eth_recycle_rxq_info* info) {
  TxQueue& queue = *static_cast<TxQueue*>(opaque);
  const std::uint32_t size = info->mbuf_ring_size;
  std::uint32_t to = *info->refill_head;
  const std::uint32_t tail = *info->receive_tail;
  // Equal: the ring is full, for it was filled at first and never lets its last buffer go.
  const std::uint32_t vacant = tail >= to ? tail - to : tail + size - to;
  if (const Count why = obstacle(queue, vacant); why != Count::recycled) {
    queue.driver_counts.add(why);
    return 0;
  }
  const bool promised = queue.fast_pool != nullptr;
  if (promised && queue.fast_pool != info->mp) [[unlikely]] {
    queue.driver_counts.add(Count::recycle_refused_pool, queue.rs_thresh);
    return 0;
  }
  std::uint32_t moved = 0;
  for (std::uint32_t left = queue.rs_thresh; left > 0;) {
    const std::uint32_t from = queue.reclaim_at;
    const std::uint32_t run = std::min({left, queue.size - from, size - to});
    rte_mbuf** into = info->mbuf_ring + to;
    const auto place = [&into](rte_mbuf* mbuf, std::int32_t /*index*/) { *into++ = mbuf; };
    const std::uint32_t more =
        promised ? move_all(queue, from, run, place) : move_checked(queue, info->mp, from, run, place);
    to = to + more == size ? 0 : to + more;
    tx_pass(queue, run);
    moved += more;
    left -= run;
  }
  queue.driver_counts.add(Count::recycled, moved);
  return static_cast<std::uint16_t>(moved);
}

/// They stand in the software ring, from refill_at on.
void refill_moved(void* opaque, std::uint16_t count) {
  RxQueue& queue = *static_cast<RxQueue*>(opaque);
  const auto first = static_cast<std::uint16_t>(std::min<std::uint32_t>(count, queue.size - queue.refill_at));
  rx_post(queue, first);
  if (count > first) rx_post(queue, static_cast<std::uint16_t>(count - first));
}

void recycle_info_get(rte_eth_dev* dev, std::uint16_t id, rte_eth_recycle_rxq_info* info) {
  RxQueue& queue = *static_cast<RxQueue*>(dev->data->rx_queues[id]);
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
  if (!is_started(to) || !is_started(from)) return 0;
  return recycle(*to, *from);
}
