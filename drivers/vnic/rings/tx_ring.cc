// SPDX-License-Identifier: Apache-2.0
#include "vnic/rings/tx_ring.h"

#include <algorithm>

namespace warpline::vnic {
namespace {

/// Both parts of a range that may wrap.
void free_oldest(TxQueue& queue, std::uint32_t count) {
  const std::uint32_t first = std::min<std::uint32_t>(count, queue.size - queue.reclaim_at);
  tx_free(queue, queue.reclaim_at, first);
  if (count > first) tx_free(queue, 0, count - first);
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
  queue.sent = queue.reclaimed = queue.mixed_until = queue.linked_until = 0;
  queue.next = queue.reclaim_at = queue.unreported = 0;
  queue.fast_pool = nullptr;
  queue.posted.store(0, std::memory_order_release);
}

}  // namespace warpline::vnic
