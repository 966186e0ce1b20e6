// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vnic/rings/queue.h"

// The driver's side of a transmit ring. Owner: the lcore that sends on the queue, or the control thread while it is
// stopped. Completions come for batches of rs_thresh descriptors, one behind the other from `reclaim_at` on.
namespace warpline::vnic {

[[nodiscard]] inline std::uint32_t tx_vacant(const TxQueue& queue) {
  return queue.size - (queue.sent - queue.reclaimed);
}

/// The device has reported the oldest batch.
[[nodiscard]] inline bool tx_batch_done(const TxQueue& queue) {
  if (queue.sent - queue.reclaimed < queue.rs_thresh) return false;
  std::uint32_t last = std::uint32_t{queue.reclaim_at} + queue.rs_thresh - 1;
  if (last >= queue.size) last -= queue.size;
  return (read_back(queue.ring[last].word) & kTxDone) != 0;
}

/// `count` descriptors from reclaim_at on are vacant: their mbufs are in other hands.
inline void tx_pass(TxQueue& queue, std::uint32_t count) {
  const std::uint32_t at = queue.reclaim_at + count;
  queue.reclaim_at = static_cast<std::uint16_t>(at >= queue.size ? at - queue.size : at);
  queue.reclaimed += count;
}

/// Some mbufs of the oldest range may be linked to others though their nb_segs is 1.
[[nodiscard]] inline bool tx_may_be_linked(TxQueue& queue) {
  if (static_cast<std::int32_t>(queue.linked_until - queue.reclaimed) > 0) return true;
  queue.linked_until = queue.reclaimed;  // stays near, for both are free-running
  return false;
}

/// Frees `count` mbufs of the software ring from `begin` on, which do not wrap; those at reclaim_at or behind it.
void tx_free(TxQueue& queue, std::uint32_t begin, std::uint32_t count);

/// Frees the oldest batch, which is done.
void tx_free_batch(TxQueue& queue);

/// Frees batches while fewer than `wanted` descriptors are vacant and the device has reported some.
inline void tx_reclaim(TxQueue& queue, std::uint32_t wanted) {
  while (tx_vacant(queue) < wanted && tx_batch_done(queue)) tx_free_batch(queue);
}

/// Asks for reports in the `count` descriptors from queue.next on, which are written, and rings the doorbell.
void tx_post(TxQueue& queue, std::uint32_t count);

/// Frees all mbufs and makes the ring as it was at first. The engine is not at work in it.
void tx_empty(TxQueue& queue);

}  // namespace warpline::vnic
