// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vnic/rings/descriptor.h"
#include "vnic/rings/queue.h"

// The engine of wire=static: descriptors change hands, payload is never touched. Inline, for the burst calls of a
// driver whose own cost is measured.

namespace warpline::vnic {

/// Fills up to `most` posted buffers with frames of `length` bytes that are not there. For queues with one buffer a
/// frame, not smaller than `length`. Returns frames received.
inline std::uint32_t serve_rx_static(RxQueue& queue, std::uint32_t most, std::uint16_t length) {
  const std::uint32_t posted = queue.posted.load(std::memory_order_acquire) - queue.filled;
  const std::uint32_t frames = posted < most ? posted : most;
  const std::uint64_t word = rx_done_word(length, 0, kRxEnd);
  std::uint32_t left = frames;
  std::uint32_t at = queue.fill_at;
  while (left != 0) {
    const std::uint32_t to_end = queue.size - at;
    const std::uint32_t here = left < to_end ? left : to_end;
    RxDescriptor* const first = queue.ring + at;
    for (std::uint32_t i = 0; i < here; ++i) write_back(first[i].word, word);
    at = here == to_end ? 0 : at + here;
    left -= here;
  }
  queue.filled += frames;
  queue.fill_at = static_cast<std::uint16_t>(at);
  return frames;
}

/// The same for queues with two buffers a frame, which take `head` and `rest` bytes of it.
inline std::uint32_t serve_rx_static_split(RxQueue& queue, std::uint32_t most, std::uint16_t head, std::uint16_t rest) {
  const std::uint32_t posted = (queue.posted.load(std::memory_order_acquire) - queue.filled) / 2;
  const std::uint32_t frames = posted < most ? posted : most;
  const std::uint64_t head_word = rx_done_word(head, 0, 0);
  const std::uint64_t rest_word = rx_done_word(rest, 0, kRxEnd);
  std::uint32_t at = queue.fill_at;
  for (std::uint32_t left = frames; left != 0; --left) {
    write_back(queue.ring[at].word, head_word);
    write_back(queue.ring[at + 1].word, rest_word);
    at = at + 2 == queue.size ? 0 : at + 2;
  }
  queue.filled += frames * 2;
  queue.fill_at = static_cast<std::uint16_t>(at);
  return frames;
}

/// Completes all that is posted. Returns frames sent.
inline std::uint32_t serve_tx_static(TxQueue& queue) {
  std::uint32_t left = queue.posted.load(std::memory_order_acquire) - queue.fetched;
  if (left == 0) return 0;
  queue.fetched += left;
  std::uint64_t ends = 0;
  std::uint64_t bytes = 0;
  std::uint32_t at = queue.fetch_at;
  while (left != 0) {
    const std::uint32_t to_end = queue.size - at;
    const std::uint32_t here = left < to_end ? left : to_end;
    TxDescriptor* const first = queue.ring + at;
    for (std::uint32_t i = 0; i < here; ++i) {
      const std::uint64_t word = first[i].word;
      ends += word & kTxEnd;
      bytes += tx_length(word);
      if ((word & kTxReport) != 0) [[unlikely]]
        write_back(first[i].word, word | kTxDone);
    }
    at = here == to_end ? 0 : at + here;
    left -= here;
  }
  queue.fetch_at = static_cast<std::uint16_t>(at);
  const auto frames = static_cast<std::uint32_t>(ends / kTxEnd);
  queue.device_counts.add(Count::tx_packets, frames);
  queue.device_counts.add(Count::tx_bytes, bytes);
  return frames;
}

}  // namespace warpline::vnic
