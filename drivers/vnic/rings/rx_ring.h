// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vnic/rings/prefetch.h"
#include "vnic/rings/queue.h"

// The driver's side of a receive ring. Owner: the lcore that polls the queue, or the control thread while it is
// stopped.
namespace warpline::vnic {

/// Descriptors that hold no buffer.
[[nodiscard]] inline std::uint32_t rx_vacant(const RxQueue& queue) {
  return queue.size - (queue.refilled - queue.harvested);
}

/// Rings the doorbell for the `count` descriptors from `refill_at` on, which are written and do not wrap.
inline void rx_posted(RxQueue& queue, std::uint16_t count) {
  queue.refill_at = static_cast<std::uint16_t>(queue.refill_at + count);
  if (queue.refill_at == queue.size) queue.refill_at = 0;
  queue.refilled += count;
  queue.posted.store(queue.refilled, std::memory_order_release);
}

/// Writes the `count` descriptors from `refill_at` on, whose mbufs stand in the software ring, and rings the doorbell.
/// They do not wrap. Group of 1 only.
void rx_post(RxQueue& queue, std::uint16_t count);

/// Posts buffers into up to `count` vacant descriptors, whole groups. False when a pool ran dry, which is counted.
bool rx_refill(RxQueue& queue, std::uint32_t count);

/// Posts what is vacant, once it is free_thresh descriptors.
inline void rx_refill_if_due(RxQueue& queue) {
  const std::uint32_t vacant = rx_vacant(queue);
  if (vacant >= queue.free_thresh) rx_refill(queue, vacant - vacant % queue.free_thresh);
}

/// Puts all buffers back into their pools and makes the ring as it was at first. The engine is not at work in it.
/// Returns the frames that the device had received into them.
std::uint32_t rx_empty(RxQueue& queue);

}  // namespace warpline::vnic
