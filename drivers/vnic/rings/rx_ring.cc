// SPDX-License-Identifier: Apache-2.0
#include "vnic/rings/rx_ring.h"

#include <algorithm>

#include <rte_mempool.h>

#include "vnic/rings/posted_set.h"

namespace warpline::vnic {
namespace {

/// Mbufs taken at a time for each segment of a group.
constexpr std::uint16_t kGroupsAtOnce = 64;

std::uint64_t data_address(const RxQueue& queue, const rte_mbuf* mbuf, std::uint16_t segment) {
  if (queue.data_at[segment] != 0) return reinterpret_cast<std::uintptr_t>(mbuf) + queue.data_at[segment];
  return reinterpret_cast<std::uintptr_t>(mbuf->buf_addr) + queue.offset[segment];
}

/// Fewer of `count` mbufs when the pool has not all, down to none: the last ones in a pool must not lie idle while the
/// ring starves.
std::uint16_t take(rte_mempool* pool, rte_mbuf** mbufs, std::uint16_t count) {
  while (count > 0 && rte_mempool_get_bulk(pool, reinterpret_cast<void**>(mbufs), count) != 0) count /= 2;
  return count;
}

bool refill_single(RxQueue& queue, std::uint32_t count) {
  while (count > 0) {
    const auto wanted = static_cast<std::uint16_t>(std::min<std::uint32_t>(count, queue.size - queue.refill_at));
    const std::uint16_t chunk = take(queue.pools[0], queue.software_ring + queue.refill_at, wanted);
    if (chunk == 0) {
      queue.driver_counts.add(Count::rx_no_mbuf, count);
      return false;
    }
    queue.driver_counts.add(Count::mempool_gets, chunk);
    rx_post(queue, chunk);
    count -= chunk;
  }
  return true;
}

/// The same for each segment of as many groups; what one pool has more than another goes back.
std::uint16_t take_groups(RxQueue& queue, rte_mbuf* (&taken)[kMaxSplit][kGroupsAtOnce], std::uint32_t count) {
  std::uint16_t taken_of[kMaxSplit]{};
  auto fewest = static_cast<std::uint16_t>(count);
  for (std::uint16_t segment = 0; segment < queue.group; ++segment) {
    taken_of[segment] = take(queue.pools[segment], taken[segment], fewest);
    fewest = taken_of[segment];
    queue.driver_counts.add(Count::mempool_gets, taken_of[segment]);
  }
  for (std::uint16_t segment = 0; segment < queue.group; ++segment) {
    if (const unsigned excess = taken_of[segment] - fewest; excess > 0) {
      rte_mempool_put_bulk(queue.pools[segment], reinterpret_cast<void**>(taken[segment] + fewest), excess);
      queue.driver_counts.add(Count::mempool_puts, excess);
    }
  }
  return fewest;
}

/// Writes the descriptors of one segment of `count` groups from refill_at on, which do not wrap.
void write_segment(RxQueue& queue, std::uint16_t segment, rte_mbuf* const* mbufs, std::uint16_t count) {
  for (std::uint16_t i = 0; i < count; ++i) {
    if (segment == 0) {
      prefetch_head_for_write(mbufs[i]);
    } else {
      prefetch_for_write(mbufs[i]);
    }
  }
  const std::uint64_t room = queue.room[segment];
  const std::uint64_t data_at = queue.data_at[segment];
  const std::uint32_t group = queue.group;
  std::uint32_t at = std::uint32_t{queue.refill_at} + segment;
  for (std::uint16_t i = 0; i < count; ++i, at += group) {
    rte_mbuf* const mbuf = mbufs[i];
    posted_set.insert(mbuf);
    queue.software_ring[at] = mbuf;
    queue.ring[at] = {
        data_at != 0 ? reinterpret_cast<std::uintptr_t>(mbuf) + data_at : data_address(queue, mbuf, segment), room};
  }
}

bool refill_groups(RxQueue& queue, std::uint32_t count) {
  rte_mbuf* taken[kMaxSplit][kGroupsAtOnce];
  bool complete = true;
  for (std::uint32_t groups = count / queue.group; groups > 0;) {
    const std::uint32_t to_end = static_cast<std::uint32_t>(queue.size - queue.refill_at) / queue.group;
    const std::uint16_t chunk = take_groups(queue, taken, std::min<std::uint32_t>({groups, to_end, kGroupsAtOnce}));
    if (chunk == 0) {
      queue.driver_counts.add(Count::rx_no_mbuf, groups);
      complete = false;
      break;
    }
    for (std::uint16_t segment = 0; segment < queue.group; ++segment) {
      write_segment(queue, segment, taken[segment], chunk);
    }
    const std::uint32_t descriptors = std::uint32_t{chunk} * queue.group;
    queue.refill_at = static_cast<std::uint16_t>(queue.refill_at + descriptors);
    if (queue.refill_at == queue.size) queue.refill_at = 0;
    queue.refilled += descriptors;
    groups -= chunk;
  }
  queue.posted.store(queue.refilled, std::memory_order_release);
  return complete;
}

}  // namespace

void rx_post(RxQueue& queue, std::uint16_t count) {
  RxDescriptor* const ring = queue.ring + queue.refill_at;
  rte_mbuf* const* const mbufs = queue.software_ring + queue.refill_at;
  const std::uint64_t room = queue.room[0];
  for (std::uint16_t i = 0; i < count; ++i) posted_set.insert(mbufs[i]);
  if (const std::uint64_t data_at = queue.data_at[0]; data_at != 0) {
    for (std::uint16_t i = 0; i < count; ++i) {
      ring[i] = {reinterpret_cast<std::uintptr_t>(mbufs[i]) + data_at, room};
      prefetch_for_write(mbufs[i]);
    }
  } else {
    for (std::uint16_t i = 0; i < count; ++i) ring[i] = {data_address(queue, mbufs[i], 0), room};
  }
  rx_posted(queue, count);
}

bool rx_refill(RxQueue& queue, std::uint32_t count) {
  return queue.group == 1 ? refill_single(queue, count) : refill_groups(queue, count);
}

std::uint32_t rx_empty(RxQueue& queue) {
  std::uint32_t frames = 0;
  bool done = true;
  for (std::uint32_t left = queue.refilled - queue.harvested; left > 0; --left) {
    const std::uint64_t word = read_back(queue.ring[queue.next].word);
    done = done && (word & kRxDone) != 0;
    if (done && (word & kRxEnd) != 0) ++frames;
    rte_mbuf*& mbuf = queue.software_ring[queue.next];
    posted_set.remove(mbuf);
    rte_mempool_put(mbuf->pool, mbuf);
    queue.driver_counts.add(Count::mempool_puts);
    mbuf = nullptr;
    queue.next = advance(queue.next, queue.size);
  }
  std::fill_n(queue.ring, queue.size, RxDescriptor{});
  queue.harvested = queue.refilled = 0;
  queue.next = queue.refill_at = 0;
  queue.posted.store(0, std::memory_order_release);
  return frames;
}

}  // namespace warpline::vnic
