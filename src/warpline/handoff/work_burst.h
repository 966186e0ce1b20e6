// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/time/clock.h"
#include "warpline/gpu/trace.h"
#include "warpline/handoff/engine.h"

namespace warpline::handoff {

/// Does `work` on every frame of a burst that is preset to `forward`. Writes only verdicts that differ from the preset,
/// so that the producer's descriptors stay clean in its cache. Work that a lane does better in another way has an
/// overload of its own.
template <PacketWork W>
BurstCounts work_burst(BurstView burst, W& work) {
  BurstCounts counts;
  for (std::uint32_t i = 0; i < burst.count;) {
    Segment* const first = burst.segments + i;
    i += first->more + 1U;
    if (first->verdict == Verdict::forward) {
      const Verdict verdict = work(frame_at(first));
      ++counts.worked;
      if (verdict != Verdict::forward) first->verdict = verdict;
    }
    counts.exceptions = static_cast<std::uint16_t>(counts.exceptions + (first->verdict != Verdict::forward));
  }
  return counts;
}

/// Works on the taken burst and completes it. The lane's thread.
template <PacketWork W>
void serve_burst(const EngineView& view, std::uint64_t sequence, BurstView burst, W& work, LaneCounters& counters) {
  const gpu::TraceRange range("engine");
  const bool traced = view.wants_times(sequence);
  const bool timed = traced || counters.bursts.get() % kLaneSampling == 0;
  const std::uint64_t begin = timed ? ticks_now() : 0;
  const BurstCounts counts = work_burst(burst, work);
  counters.bursts.add(1);
  counters.packets.add(counts.worked);
  if (timed) {
    const std::uint64_t end = ticks_now();
    counters.sampled_packets.add(counts.worked);
    counters.sampled_ticks.add(end - begin);
    if (traced) view.note_times(sequence, begin, end);
  }
  view.complete(sequence, counts);
}

/// For who takes over from an engine that does nothing any more: completes every burst before the sequence `end` that
/// is published and not done, with `verdict` for its frames.
inline void fail_undone(const EngineView& view, std::uint64_t end, Verdict verdict) {
  const std::uint64_t slots = std::uint64_t{view.slot_mask} + 1;
  const std::uint64_t published = end - view.first_sequence;
  for (std::uint64_t sequence = end - (published < slots ? published : slots); sequence != end; ++sequence) {
    const BurstView burst = view.take(sequence);
    if (!burst || view.is_done(sequence)) continue;
    auto fail = [verdict](FrameRef) { return verdict; };
    view.complete(sequence, work_burst(burst, fail));
  }
}

}  // namespace warpline::handoff
