// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/gpu/stream_lanes.h"
#include "warpline/stream/internal/lanes/lane_burst.cuh"
#include "warpline/stream/internal/lanes/queue_round.cuh"

namespace warpline::stream {
namespace {

using SharedWord = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;

constexpr std::uint64_t kNoBurst = ~std::uint64_t{0};

/// One thread: waits for the burst. Returns its ready word, or kNoBurst when the lane is to end.
__device__ std::uint64_t await_burst(const LaneView& lane, std::uint64_t sequence) {
  // A look costs a way over the bus and back. Who has found nothing for about a millisecond sleeps between looks.
  constexpr unsigned kLooksPerStopLook = 16;
  constexpr unsigned kLooksAwake = 1024;
  constexpr unsigned kNapNanos = 10'000;
  const SharedWord ready(lane.ready[sequence & (lane.shape.slots - 1)].value);
  for (unsigned looks = 1;; ++looks) {
    const std::uint64_t word = ready.load(cuda::memory_order_acquire);
    if (word >> 32 == (sequence & 0xffff'ffff)) return word;
    if (looks % kLooksPerStopLook == 0 && SharedWord(lane.stop->value).load(cuda::memory_order_acquire) != 0) {
      // What was made ready before the lane was told to stop shows by now.
      const std::uint64_t last = ready.load(cuda::memory_order_acquire);
      return last >> 32 == (sequence & 0xffff'ffff) ? last : kNoBurst;
    }
    if (looks > kLooksAwake) __nanosleep(kNapNanos);
  }
}

/// One thread: whether the next order is ready.
__device__ bool is_ordered(const LaneView& lane, const QueueRound& round) {
  return load_acquire(&lane.ready[round.order & (lane.shape.slots - 1)].value) == round.order << 32;
}

/// One thread: waits for frames or an order, and a slot for what comes of them.
__device__ void await_posted(const LaneView& lane, QueueRound& round) {
  constexpr unsigned kLooksPerStopLook = 16;
  constexpr unsigned kLooksAwake = 1024;
  constexpr unsigned kNapNanos = 10'000;
  for (unsigned looks = 1;; ++looks) {
    // Whatever was posted before the lane was told to stop shows behind this look.
    const bool stop =
        looks % kLooksPerStopLook == 0 && SharedWord(lane.stop->value).load(cuda::memory_order_acquire) != 0;
    // Each word is a way over the bus and back: what was seen of `taken` serves until the slots run out.
    if (round.round - round.taken == lane.shape.slots) round.taken = load_acquire(&lane.taken->value);
    if (round.round - round.taken != lane.shape.slots) {
      // In this order: what was ordered before a frame was posted is ready when that is seen.
      const std::uint32_t count = round.cursor.look(lane.queues, slots_at_once(lane.shape));
      round.count = slots_in_one_piece(lane.queues.receive, round.cursor.next, count);
      round.ordered = is_ordered(lane, round);
      if (count != 0 || round.ordered) return;
    }
    round.ends = stop;
    if (stop) return;
    if (looks > kLooksAwake) __nanosleep(kNapNanos);
  }
}

__global__ void __launch_bounds__(kLaneThreads, 2) serve_stream_queues(const LaneView* lanes) {
  __shared__ QueueRound round;
  __shared__ LaneView lane;
  if (threadIdx.x == 0) {
    lane = lanes[blockIdx.x];
    round.cursor = queues::QueueCursor::begin(lane.queues);
    round.round = round.order = round.taken = 1;
    round.ends = false;
  }
  __syncthreads();
  for (;;) {
    if (threadIdx.x == 0) await_posted(lane, round);
    __syncthreads();
    if (round.ends) return;
    while (round.ordered) {
      QueueRoundWork::carry_out_order(lane, round);
      if (threadIdx.x == 0) {
        ++round.order;
        round.ordered = is_ordered(lane, round);
      }
      __syncthreads();
    }
    QueueRoundWork(lane, round).take();
  }
}

__global__ void __launch_bounds__(kLaneThreads, 2)
    serve_stream_lanes(const LaneView* lanes, std::uint64_t first, std::uint64_t end) {
  __shared__ LaneBurst burst;
  __shared__ LaneView lane;
  __shared__ std::uint64_t word;
  if (threadIdx.x == 0) lane = lanes[blockIdx.x];
  __syncthreads();
  for (std::uint64_t sequence = first; sequence != end; ++sequence) {
    if (threadIdx.x == 0) word = await_burst(lane, sequence);
    __syncthreads();
    if (word == kNoBurst) return;
    const auto count = min(static_cast<std::uint32_t>(word), lane.shape.burst);
    LaneBurstWork(lane, burst, sequence, count).take();
    if (threadIdx.x == 0) {
      SharedWord(lane.done[sequence & (lane.shape.slots - 1)].value).store(sequence << 32, cuda::memory_order_release);
    }
  }
}

}  // namespace

const void* stream_queues_kernel() { return reinterpret_cast<const void*>(&serve_stream_queues); }

const void* stream_lanes_kernel() { return reinterpret_cast<const void*>(&serve_stream_lanes); }

}  // namespace warpline::stream
