// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/time/device_clock.h"
#include "warpline/handoff/device_ring.cuh"
#include "warpline/handoff/device_work.cuh"
#include "warpline/handoff/queues/device_queue_work.h"

namespace warpline::handoff {

/// What the threads of a CTA share while it consumes a queue pair.
struct QueueCta {
  std::uint64_t next;                       ///< sequence of the first slot in hand
  std::uint64_t sent;                       ///< sequence of the first transmit descriptor for these
  std::uint32_t count;                      ///< slots in hand; 0: the kernel is to end
  std::uint32_t more;                       ///< slots behind them that belong to the last frame
  std::uint32_t sends[kQueueThreads / 32];  ///< of each warp: frames to send
};

/// One thread: waits for slots, `most` at most, and returns how many there are, or 0 when the kernel is to end. `look`:
/// whether it looks at the stop word also if there are some.
__device__ inline std::uint32_t await_slots(const queues::QueuePairView& queues, queues::QueueCursor& cursor,
                                            std::uint32_t most, bool look) {
  if (look && load_stop(queues) == RingStop::now) return 0;
  for (unsigned looks = 1;; ++looks) {
    if (const std::uint32_t count = cursor.look(queues, most); count != 0) return count;
    if (looks % kLooksPerStopLook == 0) {
      const RingStop stop = load_stop(queues);
      // Whatever was posted before the request shows by now.
      const bool done = stop == RingStop::drain && queues.receive.load_posted() == cursor.next;
      if (done || stop == RingStop::now) return 0;
    }
    if (looks > kLooksAwake) __nanosleep(kNapNanos);
  }
}

/// serve_queue() by all threads of a CTA, a slot each. Every thread gets how many frames were worked on. Ends with a
/// barrier, behind which all frames to be sent are listed: one thread is to ring the doorbell.
template <PacketWork W>
__device__ std::uint32_t serve_queue_together(const queues::QueuePairView& queues, QueueCta& cta, W& work) {
  constexpr unsigned kWarp = 32;
  constexpr unsigned kWholeWarp = ~0U;
  const unsigned i = threadIdx.x;
  const std::uint64_t sequence = cta.next + i;
  const bool mine = i < cta.count;
  Segment* const first = queues.receive.at(sequence);
  Segment segment{nullptr, 0, 0, Verdict::forward};
  if (mine) segment = *first;
  // A frame begins where the descriptor before ends one; what is in hand begins with one.
  unsigned more_before = __shfl_up_sync(kWholeWarp, static_cast<unsigned>(segment.more), 1);
  if (i % kWarp == 0) more_before = i == 0 || !mine ? 0 : queues.receive.at(sequence - 1)->more;
  const bool begins = mine && more_before == 0;
  const bool for_work = begins && segment.verdict == Verdict::forward;
  Verdict verdict = segment.verdict;
  bool worked = false;
  if (for_work) {
    verdict = segment.more == 0 ? work(FrameRef{&segment, 1, segment.length}) : work(frame_at(first));
    worked = true;
  }
  const bool sends = worked && verdict == Verdict::forward;
  const unsigned senders = __ballot_sync(kWholeWarp, sends);
  if (i % kWarp == 0) cta.sends[i / kWarp] = static_cast<std::uint32_t>(__popc(senders));
  if (i + 1 == cta.count) cta.more = segment.more;
  __syncthreads();
  if (sends) {
    std::uint64_t place = cta.sent + static_cast<unsigned>(__popc(senders & ((1U << i % kWarp) - 1)));
    for (unsigned warp = 0; warp < i / kWarp; ++warp) place += cta.sends[warp];
    queues.transmit.at(place) = queues::TransmitDescriptor(sequence);
  }
  if (begins) queues.receive.release(sequence, verdict, worked ? 1 : 0);
  return static_cast<std::uint32_t>(__syncthreads_count(worked));
}

template <PacketWork W>
__global__ void __launch_bounds__(kQueueThreads) queue_kernel(DeviceQueues device, W work, W* states) {
  __shared__ QueueCta cta;
  if (threadIdx.x == 0) *static_cast<volatile std::uint32_t*>(device.began) = 1;
  queues::QueueCursor cursor = queues::QueueCursor::begin(device.queues);  // thread 0's
  DeviceLaneCount count;
  for (;;) {
    if (threadIdx.x == 0) {
      if (count.timed()) count.store(device.counters);
      cta.count = await_slots(device.queues, cursor, blockDim.x, count.timed());
      cta.next = cursor.next;
      cta.sent = cursor.sent;
      if (count.timed()) count.begin = device_nanos();
    }
    __syncthreads();
    if (cta.count == 0) break;
    const std::uint32_t worked = serve_queue_together(device.queues, cta, work);
    if (threadIdx.x == 0) {
      cursor.next += cta.count + cta.more;
      for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) cursor.sent += cta.sends[warp];
      if (cursor.sent != cta.sent) device.queues.transmit.ring(cursor.sent);
      count.add(static_cast<std::uint16_t>(worked), device.ticks_per_nano);
    }
  }
  if (threadIdx.x == 0) count.store(device.counters);
  if constexpr (kKeepsState<W>) states[threadIdx.x] = work;
}

template <PacketWork W>
const void* DeviceQueueWork<W>::kernel() {
  return reinterpret_cast<const void*>(&queue_kernel<W>);
}

}  // namespace warpline::handoff

/// Makes a PacketWork run on GPUs for packet queues: in one .cu file, at namespace scope.
#define WARPLINE_DEVICE_QUEUE_WORK(...) template struct warpline::handoff::DeviceQueueWork<__VA_ARGS__>
