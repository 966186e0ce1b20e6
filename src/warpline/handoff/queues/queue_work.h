// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/give_way.h"
#include "warpline/base/time/clock.h"
#include "warpline/handoff/engine.h"
#include "warpline/queues/queue_layout.h"

namespace warpline::handoff {

/// Takes the frames that begin in the next `count` slots, as QueueCursor::look() says: does `work` on each that is for
/// work, posts for sending what is to go on and releases the slots. One thread; the reference for what a CTA does.
template <PacketWork W>
void serve_queue(const queues::QueuePairView& queues, queues::QueueCursor& cursor, std::uint32_t count, W& work,
                 LaneCounters& counters) {
  const bool timed = counters.bursts.get() % kLaneSampling == 0;
  const std::uint64_t begin = timed ? ticks_now() : 0;
  std::uint32_t worked = 0;
  for (const std::uint64_t end = cursor.next + count; cursor.next < end;) {
    Segment* const first = queues.receive.at(cursor.next);
    const bool for_work = first->verdict == Verdict::forward;
    const std::uint16_t more = first->more;
    Verdict verdict = first->verdict;
    if (for_work) {
      verdict = work(frame_at(first));
      ++worked;
      if (verdict == Verdict::forward) queues.transmit.at(cursor.sent++) = queues::TransmitDescriptor(cursor.next);
    }
    queues.receive.release(cursor.next, verdict, for_work ? 1 : 0);
    cursor.next += more + 1U;
  }
  queues.transmit.ring(cursor.sent);
  counters.bursts.add(1);
  counters.packets.add(worked);
  if (timed) {
    counters.sampled_packets.add(worked);
    counters.sampled_ticks.add(ticks_now() - begin);
  }
}

/// The life of a consumer on a thread of the host: takes up to `most` slots at a time until the stop word tells it to
/// end. `yield` as of Turns.
template <PacketWork W>
void drain_queue(const queues::QueuePairView& queues, std::uint32_t most, W& work, LaneCounters& counters, bool yield) {
  queues::QueueCursor cursor = queues::QueueCursor::begin(queues);
  for (Turns share(yield);;) {
    const RingStop stop = queues.stop_requested();
    if (stop == RingStop::now) break;
    counters.turns.add();
    const std::uint32_t count = cursor.look(queues, most);
    if (count != 0) {
      serve_queue(queues, cursor, count, work, counters);
    } else if (stop == RingStop::drain && queues.receive.load_posted() == cursor.next) {
      break;
    }
    share.end(count != 0);
  }
  counters.turns.end();
}

}  // namespace warpline::handoff
