// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/generator.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include <rte_prefetch.h>

#include "warpline/base/frame.h"
#include "warpline/traffic/small_bytes.h"

namespace warpline::traffic {
namespace {

std::uint32_t room_of(const rte_mempool& pool) {
  const std::uint32_t buffer = rte_pktmbuf_data_room_size(const_cast<rte_mempool*>(&pool));
  return buffer > RTE_PKTMBUF_HEADROOM ? buffer - RTE_PKTMBUF_HEADROOM : 0;
}

/// What the pool has, one by one, when it cannot give `count` at once.
[[gnu::noinline]] std::uint16_t allocate_some(rte_mempool& pool, rte_mbuf** mbufs, std::uint16_t count) {
  for (std::uint16_t i = 0; i < count; ++i) {
    mbufs[i] = rte_pktmbuf_alloc(&pool);
    if (mbufs[i] == nullptr) return i;
  }
  return count;
}

}  // namespace

Generator::Generator(const TrafficPlan& plan, std::uint16_t stream, rte_mempool& pool)
    : plan_(plan), pool_(pool), data_room_(room_of(pool)), stream_(stream) {}

Result<void> Generator::check_pool(const TrafficPlan& plan, const rte_mempool& pool) {
  const std::uint32_t room = room_of(pool);
  const std::uint32_t needed = std::max(plan.head_bytes(), (plan.max_frame_bytes() + kMaxSegments - 1) / kMaxSegments);
  if (room >= needed) return {};
  return usage_error(fmt::format("buffers of {} bytes are too small to generate into", room),
                     fmt::format("frames of {} bytes need at least {} in each", plan.max_frame_bytes(), needed),
                     fmt::format("use --data-room {} or more", needed));
}

Generator::Filled Generator::fill(rte_mbuf** mbufs, std::uint16_t count, std::uint64_t ticks) {
  if (rte_pktmbuf_alloc_bulk(&pool_, mbufs, count) != 0) [[unlikely]]
    count = allocate_some(pool_, mbufs, count);
  Filled filled;
  FramePlace place = next_;
  for (; filled.packets < count; ++filled.packets) {
    rte_mbuf* mbuf = mbufs[filled.packets];
    if (filled.packets + 1 < count) rte_prefetch0(rte_pktmbuf_mtod(mbufs[filled.packets + 1], void*));
    const std::uint32_t length = plan_.frame_bytes(place);
    const Stamp stamp = plan_.stamp(stream_, place.sequence, ticks);
    auto* head = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
    plan_.write_head(place, stamp, head);
    if (length <= data_room_) [[likely]] {
      copy_bytes(head + plan_.head_bytes(), plan_.pattern(stamp), length - plan_.head_bytes());
      mbuf->data_len = static_cast<std::uint16_t>(length);
      mbuf->pkt_len = length;
    } else if (!fill_segments(mbuf, plan_.pattern(stamp), length)) {
      rte_pktmbuf_free_bulk(mbufs + filled.packets, count - filled.packets);
      break;
    }
    place = plan_.next(place);
    filled.bytes += length;
  }
  next_ = place;
  return filled;
}

bool Generator::fill_segments(rte_mbuf* head, const std::uint8_t* pattern, std::uint32_t length) {
  std::uint32_t offset = plan_.head_bytes();  // in the segment
  std::uint32_t left = length - offset;
  for (rte_mbuf* segment = head;;) {
    const std::uint32_t take = std::min(left, data_room_ - offset);
    std::memcpy(rte_pktmbuf_mtod_offset(segment, std::uint8_t*, offset), pattern, take);
    segment->data_len = static_cast<std::uint16_t>(offset + take);
    pattern += take;
    left -= take;
    if (left == 0) break;
    segment->next = rte_pktmbuf_alloc(&pool_);
    if (segment->next == nullptr) return false;
    ++head->nb_segs;
    segment = segment->next;
    offset = 0;
  }
  head->pkt_len = length;
  return true;
}

}  // namespace warpline::traffic
