// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/gpu/lane_burst.cuh"

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

const void* stream_lanes_kernel() { return reinterpret_cast<const void*>(&serve_stream_lanes); }

}  // namespace warpline::stream
