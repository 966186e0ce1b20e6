// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/device/atomic_words.cuh"
#include "warpline/base/time/device_clock.h"
#include "warpline/flow/frame_gpu.cuh"
#include "warpline/handoff/device_work.cuh"
#include "warpline/ingest/frames/frame_sum.h"
#include "warpline/ingest/frames/gpu_frames.h"

namespace warpline::ingest {

/// Descriptors that a CTA holds in its own memory: batches of more are read where they lie.
inline constexpr unsigned kHeldByAssembler = 512;

/// Returns a batch's descriptors where a CTA reads them fastest: in `held`, if they have room there. All threads call
/// it, and a barrier has to follow before they are read.
__device__ inline Segment* held_by_cta(Segment (&held)[kHeldByAssembler], Segment* segments, std::uint32_t count) {
  if (count > kHeldByAssembler) return segments;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) held[i] = segments[i];
  return held;
}

/// Consumes the frames handed over since the last call and frees them, by all threads of a CTA: every byte that
/// arrived is summed, a packet by a warp. Ends with a barrier.
__device__ inline void consume_handed(const flow::AssemblerView& view, GpuFrameWords& words) {
  constexpr unsigned kWarp = 32;
  const flow::FramePlan& plan = view.plan;
  const std::uint64_t first = words.consumed;
  const std::uint64_t end = *view.queue.handed_to;  // written by this CTA's thread 0 before a barrier
  if (first == end) return;
  const unsigned lane = threadIdx.x % kWarp;
  std::uint64_t sum = 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = first; i != end; ++i) {
    const flow::Frame& frame = view.queue.handed[i & view.queue.mask];
    const std::uint64_t salt = frame_salt(frame);
    if (threadIdx.x == 0) sum += frame_head_sum(frame);
    for (std::uint32_t slot = threadIdx.x / kWarp; slot < plan.packets; slot += blockDim.x / kWarp) {
      if (frame.mask[slot] == 0) continue;
      if (lane == 0) bytes += plan.slot_bytes(slot);
      sum += payload_sum(plan, frame, salt, slot, lane, kWarp);
    }
  }
  for (unsigned step = kWarp / 2; step != 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
  if (lane == 0) {
    DeviceWord(words.sum).add(sum);
    DeviceWord(words.bytes).add(bytes);
  }
  __syncthreads();  // all have read what is freed now
  if (threadIdx.x == 0) {
    const std::uint64_t now = device_nanos();
    std::uint64_t freed = *view.queue.freed_to;
    for (std::uint64_t i = first; i != end; ++i) {
      const flow::Frame& frame = view.queue.handed[i & view.queue.mask];
      words.packets += frame.present;
      words.longest_open = max(words.longest_open, now - min(now, frame.time));
      view.queue.freed[freed++ & view.queue.mask] = frame.buffer;
    }
    words.consumed = end;
    store_release(view.queue.freed_to, freed);
  }
  __syncthreads();
}

/// The counts of a burst of which every frame that is preset to `forward` is worked on, by all threads of a CTA.
__device__ inline handoff::BurstCounts count_frames(const Segment* segments, std::uint32_t count) {
  handoff::BurstCounts counts;
  for (std::uint32_t begin = 0; begin < count; begin += blockDim.x) {
    const std::uint32_t i = begin + threadIdx.x;
    const bool begins = i < count && (i == 0 || segments[i - 1].more == 0);
    const bool worked = begins && segments[i].verdict == Verdict::forward;
    counts.worked = static_cast<std::uint16_t>(counts.worked + __syncthreads_count(worked));
    counts.exceptions = static_cast<std::uint16_t>(counts.exceptions + __syncthreads_count(begins && !worked));
  }
  return counts;
}

/// Assembles a burst by all threads of a CTA when all bursts before it have been. When no frame is free for the next
/// packet those handed over are consumed, and that frees one: the windows never have them all. Ends with a barrier.
__device__ inline handoff::BurstCounts work_burst_in_order(handoff::BurstView burst, std::uint64_t sequence,
                                                           AssembleOnGpu& work) {
  __shared__ Segment held[kHeldByAssembler];
  __shared__ std::uint64_t now;
  Segment* const segments = held_by_cta(held, burst.segments, burst.count);
  if (threadIdx.x == 0) {
    while (DeviceWord(work.words->turn).load_acquire() != sequence) {
    }
    now = device_nanos();
  }
  __syncthreads();
  for (std::uint32_t decided = 0;;) {
    decided +=
        flow::place_batch_together(work.view, {segments + decided, burst.count - decided, now}, flow::WhenFull::retry);
    consume_handed(work.view, *work.words);
    if (decided >= burst.count) break;
  }
  const handoff::BurstCounts counts = count_frames(segments, burst.count);
  // Cumulative: what all threads wrote before the barriers is visible to who acquires this.
  if (threadIdx.x == 0) DeviceWord(work.words->turn).store_release(sequence + 1);
  return counts;
}

}  // namespace warpline::ingest
