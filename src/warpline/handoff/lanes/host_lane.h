// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "warpline/base/give_way.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/handoff/work_burst.h"

namespace warpline::handoff {

/// Where a host thread of an engine runs.
struct LanePlacement {
  std::optional<unsigned> cpu;  ///< as Linux numbers them; unset: wherever the scheduler likes
  bool yield = false;           ///< other threads need the CPU: see Turns
};

/// Starts a thread named `name` (15 characters are kept) on `cpu`. An environment error when there is no such CPU, it
/// is not allowed to this process, or no thread can be made.
[[nodiscard]] Result<std::thread> start_lane_thread(const std::string& name, std::optional<unsigned> cpu,
                                                    std::function<void()> body);

/// Has the thread of a GPU engine end: with all published bursts done, as far as `timeout` allows, or with those in
/// hand. False if the GPU has not ended a second after that: it hangs. `ended` is the thread's last word.
[[nodiscard]] bool end_gpu_thread(StopView view, const std::atomic<bool>& ended, Nanos timeout);

/// What an idle lane does between two looks at its ready word.
inline void lane_idle(bool yield) { idle(yield); }

/// The sequences that a lane takes: first, first + stride, ...
struct LaneSequences {
  std::uint64_t first;
  std::uint64_t stride;
};

/// The life of a host lane: works through its sequences until the ring's stop word tells it to end.
template <PacketWork W>
void drain_ring(const EngineView& view, LaneSequences sequences, W& work, LaneCounters& counters, bool yield) {
  Turns share(yield);
  for (std::uint64_t sequence = sequences.first;;) {
    const RingStop stop = view.stop_requested();
    if (stop == RingStop::now) break;
    counters.turns.add();
    if (const BurstView burst = view.take(sequence)) {
      serve_burst(view, sequence, burst, work, counters);
      sequence += sequences.stride;
      share.end(true);
    } else if (stop == RingStop::drain) {
      break;
    } else {
      if constexpr (WorkBetweenBursts<W>) work.idle();
      share.end(false);
    }
  }
  counters.turns.end();
}

}  // namespace warpline::handoff
