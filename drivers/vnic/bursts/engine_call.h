// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "vnic/engine/hardware.h"
#include "warpline/base/time/clock.h"

namespace warpline::vnic {

/// One call in so many is timed, and stands for all: two reads of the clock cost as much as a few packets.
inline constexpr std::uint32_t kTimedCalls = 16;

/// Lets the inline engine work for a queue, inside its burst call.
template <typename Queue, typename Serve>
inline void run_inline_engine(Queue& queue, Serve serve) {
  if (!queue.inline_engine) return;
  if (++queue.polls % kTimedCalls != 0) [[likely]] {
    serve(queue.hardware->engine);
    return;
  }
  const std::uint64_t begin = ticks_now();
  serve(queue.hardware->engine);
  queue.driver_counts.add(Count::engine_cycles, (ticks_now() - begin) * kTimedCalls);
  queue.driver_counts.add(Count::engine_calls, kTimedCalls);
}

}  // namespace warpline::vnic
