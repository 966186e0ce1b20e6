// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "vnic/bursts/bursts.h"
#include "vnic/bursts/engine_call.h"
#include "vnic/bursts/packet_type.h"
#include "vnic/common/device_clock.h"
#include "vnic/rings/posted_set.h"
#include "vnic/rings/rx_ring.h"
#include "warpline/base/buffer_mark.h"

namespace warpline::vnic {
namespace {

/// Buffers that the loops fetch ahead of the one that they fill.
constexpr std::uint16_t kAhead = 4;
constexpr std::uint16_t kPairsAhead = 3;
static_assert(kAhead <= kSoftwareRingTail && 2 * kPairsAhead <= kSoftwareRingTail);

/// mbuf flags for each value of bits 50..55 of a word, kRxIpGood to kRxMark.
constexpr unsigned kFlagShift = 50;
constexpr std::uint64_t kFlagMask = 0x3f;
constexpr std::array<std::uint64_t, kFlagMask + 1> kMbufFlags = [] {
  std::array<std::uint64_t, kFlagMask + 1> table{};
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    const std::uint64_t word = i << kFlagShift;
    if (word & kRxIpGood) table[i] |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
    if (word & kRxIpBad) table[i] |= RTE_MBUF_F_RX_IP_CKSUM_BAD;
    if (word & kRxL4Good) table[i] |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    if (word & kRxL4Bad) table[i] |= RTE_MBUF_F_RX_L4_CKSUM_BAD;
    if (word & kRxHash) table[i] |= RTE_MBUF_F_RX_RSS_HASH;
    if (word & kRxMark) table[i] |= RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
  }
  return table;
}();

/// The device's clock, read once a burst: it completes the 32 bits that descriptors hold.
struct BurstTime {
  explicit BurstTime(const RxQueue& queue) : now(queue.timestamp_offset >= 0 ? device_nanos() : 0) {}
  std::uint64_t now;
  [[nodiscard]] std::uint64_t at(std::uint32_t nanos) const {
    return now - static_cast<std::int64_t>(static_cast<std::int32_t>(static_cast<std::uint32_t>(now) - nanos));
  }
};

// Who freed an mbuf may have been another thread. Its pool orders that, in code of DPDK's that ThreadSanitizer does not
// see.
#if defined(__SANITIZE_THREAD__)
#define WARPLINE_ORDERED_BY_POOL __attribute__((no_sanitize("thread")))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WARPLINE_ORDERED_BY_POOL __attribute__((no_sanitize("thread")))
#endif
#endif
#if !defined(WARPLINE_ORDERED_BY_POOL)
#define WARPLINE_ORDERED_BY_POOL
#endif

/// A received mbuf, written afresh but for its external buffer. rearm: data_off, refcnt, nb_segs and port.
WARPLINE_ORDERED_BY_POOL inline void reset_mbuf(rte_mbuf* mbuf, std::uint64_t rearm, std::uint64_t flags) {
  std::memcpy(reinterpret_cast<std::uint8_t*>(mbuf) + offsetof(rte_mbuf, data_off), &rearm, sizeof rearm);
  mbuf->ol_flags = flags;
}

/// Hash and mark stand in the descriptor as they do in the mbuf.
inline void set_hash_and_mark(rte_mbuf* mbuf, std::uint64_t hash_and_mark) {
  mbuf->hash.fdir.lo = static_cast<std::uint32_t>(hash_and_mark);
  mbuf->hash.fdir.hi = static_cast<std::uint32_t>(hash_and_mark >> 32);
}

inline void set_offloads(const RxQueue& queue, rte_mbuf* mbuf, const RxDescriptor& descriptor, std::uint64_t word,
                         const BurstTime& time) {
  set_hash_and_mark(mbuf, descriptor.address);
  mbuf->ol_flags |= kMbufFlags[word >> kFlagShift & kFlagMask];
  if (queue.timestamp_offset >= 0) {
    *RTE_MBUF_DYNFIELD(mbuf, queue.timestamp_offset, rte_mbuf_timestamp_t*) = time.at(rx_nanos(word));
    mbuf->ol_flags |= queue.timestamp_flag;
  }
}

/// Rules that mark may come at any time: a burst in which a mark was seen is gone over again, before it is posted anew.
[[gnu::noinline]] void set_marks(const RxQueue& queue, rte_mbuf** mbufs, std::uint16_t count) {
  std::uint16_t index = queue.next;
  for (std::uint16_t i = 0; i < count; ++i) {
    const RxDescriptor& descriptor = queue.ring[index];
    if ((descriptor.word & kRxMark) != 0) {
      mbufs[i]->hash.fdir.hi = static_cast<std::uint32_t>(descriptor.address >> 32);
      mbufs[i]->ol_flags |= RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
    }
    index = advance(index, queue.size);
  }
}

/// Posts what the last burst took, unless that was recycled meanwhile, and lets the engine work. Returns how many
/// frames the burst may take: vector drivers round `most` down to whole groups of descriptors, and so does rx_align.
std::uint16_t begin_burst(RxQueue& queue, std::uint16_t most) {
  most &= queue.align_mask;
  rx_refill_if_due(queue);
  run_inline_engine(queue, [&](Engine& engine) { engine.serve_rx(queue, most); });
  return most;
}

/// `parity`: XOR of buffer_mark() of the frames' first mbufs.
void count_burst(RxQueue& queue, std::uint32_t frames, std::uint64_t bytes, std::uint64_t parity) {
  if (frames == 0) return;
  queue.parity.store(queue.parity.load(std::memory_order_relaxed) ^ parity, std::memory_order_relaxed);
  queue.driver_counts.add(Count::rx_packets, frames);
  queue.driver_counts.add(Count::rx_bytes, bytes);
}

template <bool offloads>
inline std::uint16_t receive_single(void* opaque, rte_mbuf** mbufs, std::uint16_t most) {
  if (!is_started(static_cast<RxQueue*>(opaque))) [[unlikely]]
    return 0;
  RxQueue& queue = *static_cast<RxQueue*>(opaque);
  most = begin_burst(queue, most);
  const auto limit = static_cast<std::uint16_t>(std::min<std::uint32_t>(most, queue.refilled - queue.harvested));
  const std::uint64_t rearm = queue.rearm[0];
  const std::uint64_t flags = queue.base_flags[0];
  const BurstTime time(queue);
  std::uint64_t bytes = 0;
  std::uint64_t parity = 0;
  std::uint64_t seen = 0;
  std::uint16_t index = queue.next;
  std::uint16_t received = 0;
  for (; received < limit; ++received) {
    RxDescriptor& descriptor = queue.ring[index];
    const std::uint64_t word = read_back(descriptor.word);
    if ((word & kRxDone) == 0) break;
    seen |= word;
    rte_mbuf* const mbuf = queue.software_ring[index];
    posted_set.remove(mbuf);
    prefetch_for_write(queue.software_ring[index + kAhead]);
    const std::uint16_t length = rx_length(word);
    reset_mbuf(mbuf, rearm, flags);
    mbuf->packet_type = kPacketTypes[word >> kRxKindShift & kRxKindMask];
    mbuf->pkt_len = length;
    mbuf->data_len = length;
    mbuf->vlan_tci = 0;
    if constexpr (offloads) set_offloads(queue, mbuf, descriptor, word, time);
    bytes += length;
    parity ^= buffer_mark(mbuf);
    mbufs[received] = mbuf;
    index = advance(index, queue.size);
  }
  if (!offloads && (seen & kRxMark) != 0) [[unlikely]]
    set_marks(queue, mbufs, received);
  queue.next = index;
  queue.harvested += received;
  count_burst(queue, received, bytes, parity);
  return received;
}

/// rearm_data that says two segments instead of one.
constexpr std::uint64_t of_two(std::uint64_t rearm) {
  static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN);
  return rearm + (std::uint64_t{1} << 8 * (offsetof(rte_mbuf, nb_segs) - offsetof(rte_mbuf, data_off)));
}

/// Frames that take one group of two each, up to the first that does not. Harvests them and returns how many.
std::uint16_t receive_pairs(RxQueue& queue, rte_mbuf** mbufs, std::uint16_t most, const BurstTime& time,
                            std::uint64_t& bytes, std::uint64_t& parity) {
  const auto limit = static_cast<std::uint16_t>(std::min<std::uint32_t>(most, (queue.refilled - queue.harvested) / 2));
  const std::uint64_t rearm_head = of_two(queue.rearm[0]);
  const std::uint64_t rearm_rest = queue.rearm[1];
  const std::uint64_t flags_head = queue.base_flags[0];
  const std::uint64_t flags_rest = queue.base_flags[1];
  std::uint16_t index = queue.next;
  std::uint16_t received = 0;
  for (; received < limit; ++received) {
    RxDescriptor* const pair = queue.ring + index;
    rte_mbuf* const* const buffers = queue.software_ring + index;
    const std::uint64_t last = read_back(pair[1].word);
    const std::uint64_t word = read_back(pair[0].word);
    if ((word & last & kRxDone) == 0 || (last & kRxEnd) == 0) break;
    prefetch_head_for_write(buffers[2 * kPairsAhead]);
    prefetch_for_write(buffers[2 * kPairsAhead + 1]);
    rte_mbuf* const head = buffers[0];
    rte_mbuf* const rest = buffers[1];
    posted_set.remove(head);
    posted_set.remove(rest);
    const std::uint16_t length = rx_length(word);
    const std::uint16_t rest_length = rx_length(last);
    reset_mbuf(head, rearm_head, flags_head);
    head->packet_type = kPacketTypes[word >> kRxKindShift & kRxKindMask];
    head->pkt_len = std::uint32_t{length} + rest_length;
    head->data_len = length;
    head->vlan_tci = 0;
    set_offloads(queue, head, pair[0], word, time);
    if (rest_length != 0) [[likely]] {
      reset_mbuf(rest, rearm_rest, flags_rest);
      rest->data_len = rest_length;
      head->next = rest;
    } else {
      head->nb_segs = 1;
      rte_mempool_put(queue.pools[1], rest);
      queue.driver_counts.add(Count::mempool_puts);
    }
    bytes += head->pkt_len;
    parity ^= buffer_mark(head);
    mbufs[received] = head;
    index = static_cast<std::uint16_t>(index + 2 == queue.size ? 0 : index + 2);
  }
  queue.next = index;
  queue.harvested += received * 2U;
  return received;
}

/// Descriptors of the frame that begins at `index`, or 0 while it is not complete within `limit`.
std::uint32_t complete_frame(const RxQueue& queue, std::uint16_t index, std::uint32_t limit) {
  for (std::uint32_t count = 1; count <= limit; ++count) {
    const std::uint64_t word = read_back(queue.ring[index].word);
    if ((word & kRxDone) == 0) return 0;
    if ((word & kRxEnd) != 0) return count;
    index = advance(index, queue.size);
  }
  return 0;
}

/// The `count` buffers from queue.next on as one chain. Buffers of a split that hold nothing go back to their pools.
rte_mbuf* take_chain(RxQueue& queue, std::uint32_t count, const BurstTime& time) {
  rte_mbuf* head = nullptr;
  rte_mbuf* last = nullptr;
  for (std::uint32_t i = 0; i < count; ++i) {
    const RxDescriptor& descriptor = queue.ring[queue.next];
    rte_mbuf* const mbuf = queue.software_ring[queue.next];
    const std::size_t segment = i % queue.group;
    const std::uint64_t word = descriptor.word;
    const std::uint16_t length = rx_length(word);
    queue.next = advance(queue.next, queue.size);
    posted_set.remove(mbuf);
    if (length == 0 && i > 0) {
      rte_mempool_put(queue.pools[segment], mbuf);
      queue.driver_counts.add(Count::mempool_puts);
      continue;
    }
    reset_mbuf(mbuf, queue.rearm[segment], queue.base_flags[segment]);
    mbuf->data_len = length;
    if (head == nullptr) {
      head = mbuf;
      head->packet_type = kPacketTypes[word >> kRxKindShift & kRxKindMask];
      head->vlan_tci = 0;
      head->pkt_len = length;
      set_offloads(queue, head, descriptor, word, time);
    } else {
      last->next = mbuf;
      head->pkt_len += length;
      ++head->nb_segs;
    }
    last = mbuf;
  }
  return head;
}

}  // namespace

std::uint16_t rx_burst_plain(void* queue, rte_mbuf** mbufs, std::uint16_t most) {
  return receive_single<false>(queue, mbufs, most);
}

std::uint16_t rx_burst_offloads(void* queue, rte_mbuf** mbufs, std::uint16_t most) {
  return receive_single<true>(queue, mbufs, most);
}

std::uint16_t rx_burst_chained(void* opaque, rte_mbuf** mbufs, std::uint16_t most) {
  if (!is_started(static_cast<RxQueue*>(opaque))) [[unlikely]]
    return 0;
  RxQueue& queue = *static_cast<RxQueue*>(opaque);
  most = begin_burst(queue, most);
  const BurstTime time(queue);
  std::uint64_t bytes = 0;
  std::uint64_t parity = 0;
  std::uint16_t received = queue.group == 2 ? receive_pairs(queue, mbufs, most, time, bytes, parity) : std::uint16_t{0};
  for (; received < most; ++received) {
    const std::uint32_t count = complete_frame(queue, queue.next, queue.refilled - queue.harvested);
    if (count == 0) break;
    mbufs[received] = take_chain(queue, count, time);
    bytes += mbufs[received]->pkt_len;
    parity ^= buffer_mark(mbufs[received]);
    queue.harvested += count;
  }
  count_burst(queue, received, bytes, parity);
  return received;
}

}  // namespace warpline::vnic
