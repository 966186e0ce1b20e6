// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/device/atomic_words.cuh"
#include "warpline/base/time/device_clock.h"
#include "warpline/handoff/device_ring.cuh"
#include "warpline/handoff/device_work.h"
#include "warpline/handoff/work_burst.h"

namespace warpline::handoff {

/// work_burst() by all threads of a CTA, one frame each at a time. Every thread gets the counts. Ends with a barrier.
/// Work that a CTA does better in another way has an overload of its own; work that needs its bursts one after the
/// other has, instead, a work_burst_in_order(burst, sequence, work) that sees to it.
template <PacketWork W>
__device__ BurstCounts work_burst_together(BurstView burst, W& work) {
  constexpr unsigned kWarp = 32;
  BurstCounts counts;
  for (unsigned begin = 0; begin < burst.count; begin += blockDim.x) {
    const unsigned i = begin + threadIdx.x;
    Segment mine{nullptr, 0, 0, Verdict::forward};
    if (i < burst.count) mine = burst.segments[i];
    // A frame begins where the descriptor before ends one.
    unsigned more_before = __shfl_up_sync(~0U, mine.more, 1);
    if (threadIdx.x % kWarp == 0) more_before = i == 0 || i >= burst.count ? 0 : burst.segments[i - 1].more;
    const bool begins = i < burst.count && more_before == 0;
    bool exception = begins && mine.verdict != Verdict::forward;
    bool worked = false;
    if (begins && !exception) {
      const Verdict verdict =
          mine.more == 0 ? work(FrameRef{&mine, 1, mine.length}) : work(frame_at(burst.segments + i));
      worked = true;
      exception = verdict != Verdict::forward;
      if (exception) burst.segments[i].verdict = verdict;
    }
    counts.worked = static_cast<std::uint16_t>(counts.worked + __syncthreads_count(worked));
    counts.exceptions = static_cast<std::uint16_t>(counts.exceptions + __syncthreads_count(exception));
  }
  return counts;
}

/// What a lane counts; thread 0 keeps it.
struct DeviceLaneCount {
  LaneWords words{};
  std::uint64_t begin = 0;

  [[nodiscard]] __device__ bool timed() const { return words.bursts % kLaneSampling == 0; }

  /// After a burst that began at `begin`, if it was timed.
  __device__ void add(std::uint16_t packets, double ticks_per_nano) {
    if (timed()) {
      words.sampled_packets += packets;
      words.sampled_ticks += static_cast<std::uint64_t>(static_cast<double>(device_nanos() - begin) * ticks_per_nano);
    }
    ++words.bursts;
    words.packets += packets;
  }

  /// For the host to see. One writer, whole words.
  __device__ void store(LaneCounters* to) const {
    auto* const out = reinterpret_cast<volatile LaneWords*>(to);
    out->bursts = words.bursts;
    out->packets = words.packets;
    out->sampled_packets = words.sampled_packets;
    out->sampled_ticks = words.sampled_ticks;
  }
};

/// Copies a burst's packets from where they lie, so many bytes further, by all threads of a CTA: 16 bytes at a time,
/// several of them under way. Ends with a barrier.
__device__ inline void pull_together(BurstView burst, std::ptrdiff_t from) {
  constexpr unsigned kUnderWay = 4;
  const Segment last = burst.segments[burst.count - 1];
  auto* const to = reinterpret_cast<uint4*>(burst.segments[0].data);
  const auto chunks =
      static_cast<unsigned>((last.data + last.length + sizeof(uint4) - 1 - burst.segments[0].data) / sizeof(uint4));
  const uint4* const lying = to + from / static_cast<std::ptrdiff_t>(sizeof(uint4));
  for (unsigned first = threadIdx.x; first < chunks; first += kUnderWay * blockDim.x) {
    uint4 held[kUnderWay];
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      if (const unsigned i = first + k * blockDim.x; i < chunks) held[k] = __ldcs(lying + i);
    }
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      if (const unsigned i = first + k * blockDim.x; i < chunks) to[i] = held[k];
    }
  }
  __syncthreads();
}

/// serve_burst() by all threads of a CTA, up to its done word: each thread is told what that is to say. Ends with a
/// barrier.
template <PacketWork W>
__device__ BurstCounts take_burst_together(const DeviceLanes& lanes, std::uint64_t sequence, std::uint64_t word,
                                           W& work, DeviceLaneCount& count) {
  const EngineView& view = lanes.view;
  if (threadIdx.x == 0 && count.timed()) count.begin = device_nanos();
  Segment* const segments = view.segments + (sequence & view.slot_mask) * view.segments_per_slot;
  const BurstView burst{segments, count_of(word)};
  if (lanes.pull != 0) pull_together(burst, lanes.pull);
  if constexpr (requires { work_burst_in_order(burst, sequence, work); }) {
    return work_burst_in_order(burst, sequence, work);
  } else {
    return work_burst_together(burst, work);
  }
}

/// One thread of a persistent kernel's CTA: await_burst(), with a look at the stop word now and then, should there
/// always be a burst.
__device__ inline std::uint64_t next_burst(const DeviceLanes& lanes, std::uint64_t sequence,
                                           const DeviceLaneCount& count) {
  if (count.timed()) {
    count.store(lanes.counters + blockIdx.x);
    if (load_stop(lanes.view) == RingStop::now) return 0;
  }
  return await_burst(lanes.view, sequence);
}

template <PacketWork W>
__global__ void persistent_kernel(DeviceLanes lanes, W work, W* states) {
  __shared__ std::uint64_t word;
  if (threadIdx.x == 0) *static_cast<volatile std::uint32_t*>(lanes.began + blockIdx.x) = 1;
  DeviceLaneCount count;
  for (std::uint64_t sequence = lanes.view.first_sequence + blockIdx.x;; sequence += gridDim.x) {
    if (threadIdx.x == 0) word = next_burst(lanes, sequence, count);
    __syncthreads();
    if (word == 0) break;
    const BurstCounts done = take_burst_together(lanes, sequence, word, work, count);  // its barriers keep `word`
    if (threadIdx.x == 0) {
      store_done(lanes.view, sequence, done);
      count.add(done.worked, lanes.ticks_per_nano);
    }
  }
  if (threadIdx.x == 0) count.store(lanes.counters + blockIdx.x);
  if constexpr (kKeepsState<W>) states[blockIdx.x * blockDim.x + threadIdx.x] = work;
}

template <PacketWork W>
__global__ void next_kernel(DeviceLanes lanes, W work, W* states, std::uint64_t* next) {
  __shared__ std::uint64_t sequence;
  __shared__ std::uint64_t word;
  if (threadIdx.x == 0) {
    sequence = DeviceWord(*next).fetch_add(1);
    do {  // published; what the burst holds may still be on its way here, if the ready words are
      word = load_ready(lanes.view, sequence);
    } while (!has_sequence(word, sequence));
  }
  __syncthreads();
  const std::uint64_t slot = sequence & lanes.view.slot_mask;
  W* const state = states + slot * blockDim.x + threadIdx.x;
  DeviceLaneCount count;
  if (threadIdx.x == 0) count.words = lanes.kept[slot];
  if constexpr (kKeepsState<W>) work = *state;
  const BurstCounts done = take_burst_together(lanes, sequence, word, work, count);
  // All that is kept is there before the done word: with it the slot is free, and the next kernel's who begins there.
  if constexpr (kKeepsState<W>) *state = work;
  if (threadIdx.x == 0) {
    count.add(done.worked, lanes.ticks_per_nano);
    lanes.kept[slot] = count.words;
    count.store(lanes.counters + slot);
  }
  __syncthreads();
  if (threadIdx.x == 0) store_done(lanes.view, sequence, done);
}

template <PacketWork W>
const void* DeviceWork<W>::persistent_kernel() {
  return reinterpret_cast<const void*>(&warpline::handoff::persistent_kernel<W>);
}

template <PacketWork W>
const void* DeviceWork<W>::next_kernel() {
  return reinterpret_cast<const void*>(&warpline::handoff::next_kernel<W>);
}

}  // namespace warpline::handoff

/// Makes a PacketWork run on GPUs: in one .cu file, at namespace scope.
#define WARPLINE_DEVICE_WORK(...) template struct warpline::handoff::DeviceWork<__VA_ARGS__>
