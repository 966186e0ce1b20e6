// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "warpline/handoff/ring_layout.h"

namespace warpline::handoff {

/// Tells an engine that is stuck from one that has nothing to do. One thread; reads the ring's words, at a cost of two
/// lines a slot a look.
class ProgressWatch {
 public:
  ProgressWatch(const EngineView& view, std::uint64_t patience_ticks) : view_(view), patience_(patience_ticks) {}

  /// Whether bursts are published and none was done for longer than the patience. `now` in ticks, of each look.
  [[nodiscard]] bool stalled(std::uint64_t now) {
    bool waiting = false;
    std::uint64_t done_sum = 0;
    for (std::uint64_t slot = 0; slot <= view_.slot_mask; ++slot) {
      const std::uint64_t done = std::atomic_ref(view_.done[slot].value).load(std::memory_order_relaxed);
      const std::uint64_t ready = std::atomic_ref(view_.ready[slot].value).load(std::memory_order_relaxed);
      waiting |= !has_sequence(done, ready >> kRingSequenceShift);
      done_sum += done;
    }
    if (!looked_ || !waiting || done_sum != done_sum_) since_ = now;
    looked_ = true;
    done_sum_ = done_sum;
    return now - since_ > patience_;
  }

 private:
  EngineView view_;
  std::uint64_t patience_;
  bool looked_ = false;
  std::uint64_t done_sum_ = 0;  ///< of the last look
  std::uint64_t since_ = 0;
};

}  // namespace warpline::handoff
