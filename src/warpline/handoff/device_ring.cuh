// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/device/atomic_words.cuh"
#include "warpline/handoff/ring_layout.h"

namespace warpline::handoff {

// The device's side of the burst ring: the words of ring_layout.h, acquired and released at system scope.

/// As EngineView::take, as a ready word.
__device__ inline std::uint64_t load_ready(const EngineView& view, std::uint64_t sequence) {
  return SystemWord(view.ready[sequence & view.slot_mask].value).load_acquire();
}

/// As StopView::stop_requested.
__device__ inline RingStop load_stop(const StopView& view) {
  return static_cast<RingStop>(SystemWord(view.stop->value).load_acquire());
}

/// As EngineView::complete. By one thread of the CTA after a barrier of all: release is cumulative, so what the others
/// wrote before the barrier is visible, too.
__device__ inline void store_done(const EngineView& view, std::uint64_t sequence, BurstCounts counts) {
  SystemWord(view.done[sequence & view.slot_mask].value)
      .store_release(pack_ring_word(sequence, counts.exceptions, counts.worked));
}

/// A look costs a round trip over PCIe, so the stop word is not looked at each time; a lane that has found nothing for
/// about a millisecond sleeps between looks. Worst answer to a stop: 16 naps and round trips, 0.2 ms.
inline constexpr unsigned kLooksPerStopLook = 16;
inline constexpr unsigned kLooksAwake = 1024;
inline constexpr unsigned kNapNanos = 10'000;

/// One thread a CTA: waits for the burst and returns its ready word, or 0 when the lane is to end.
__device__ inline std::uint64_t await_burst(const EngineView& view, std::uint64_t sequence) {
  for (unsigned looks = 1;; ++looks) {
    if (const std::uint64_t word = load_ready(view, sequence); has_sequence(word, sequence)) return word;
    if (looks % kLooksPerStopLook == 0) {
      const RingStop stop = load_stop(view);
      if (stop == RingStop::now) return 0;
      if (stop == RingStop::drain) {
        // Whatever was published before the request shows by now.
        const std::uint64_t word = load_ready(view, sequence);
        return has_sequence(word, sequence) ? word : 0;
      }
    }
    if (looks > kLooksAwake) __nanosleep(kNapNanos);
  }
}

}  // namespace warpline::handoff
