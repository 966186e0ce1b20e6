// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/handoff/device_work.cuh"
#include "warpline/ingest/consumers/byte_sum.h"
#include "warpline/ingest/consumers/pattern_check.h"

namespace warpline::ingest {

// How a CTA reads frames of a batch: several lanes of a warp share one frame, each loads 16 bytes at a time, and no
// byte is loaded twice. Frames of 64 bytes take four lanes, so that 256 threads read a batch of 64 in one go.

inline constexpr unsigned kWarpLanes = 32;
inline constexpr unsigned kFewestLanes = 4;
/// A CTA that consumes has `kConsumerThreads` threads.
inline constexpr unsigned kConsumerThreads = 256;
/// A CTA holds so many descriptors at a time: the largest batch.
inline constexpr unsigned kHeldDescriptors = 512;
/// The head of a frame lies in so many chunks.
inline constexpr unsigned kHeadChunks = (PatternCheck::kMaxHead + sizeof(uint4) - 1) / sizeof(uint4);

/// `FrameLanes` are the lanes of a warp that share a frame, seen by one of them.
struct FrameLanes {
  unsigned lane;   ///< of this thread, from 0
  unsigned lanes;  ///< a power of two
  unsigned mask;   ///< of the warp's lanes, these
  uint4* head;     ///< room for kHeadChunks, of these lanes alone
};

/// `LaneBytes` is what one lane sees of a frame: the chunks lane, lane + lanes, ...
struct LaneBytes {
  const uint4* chunks;
  std::uint32_t length;

  [[nodiscard]] __device__ unsigned count() const { return (length + sizeof(uint4) - 1) / sizeof(uint4); }
  [[nodiscard]] __device__ uint4 load(unsigned chunk) const { return chunk < count() ? chunks[chunk] : uint4{}; }
};

/// Returns true if a chunk's bytes from `begin` on are those of the pattern, as far as the frame goes. Patterns begin
/// at even places and heads have even lengths, so it compares two bytes at a time.
[[nodiscard]] inline __device__ bool chunk_matches(const uint4& chunk, unsigned index, std::uint32_t head_bytes,
                                                   std::uint32_t length, const std::uint8_t* pattern) {
  const unsigned words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
  bool same = true;
#pragma unroll
  for (unsigned i = 0; i < sizeof(uint4) / 2; ++i) {
    const std::uint32_t place = index * sizeof(uint4) + 2 * i;
    if (place < head_bytes || place >= length) continue;
    const unsigned both = words[i / 2] >> 16 * (i % 2) & 0xffff;
    const unsigned expected = *reinterpret_cast<const std::uint16_t*>(pattern + (place - head_bytes));
    same = same && (place + 1 < length ? both == expected : (both & 0xff) == (expected & 0xff));
  }
  return same;
}

/// Returns the verdict, which lane 0 alone has settled.
[[nodiscard]] inline __device__ Verdict consume(const FrameLanes& lanes, const LaneBytes& bytes, PatternCheck& work) {
  constexpr unsigned kUnderWay = 4;
  const traffic::FramePattern& pattern = work.source().pattern;
  const std::uint32_t head_bytes = pattern.head_bytes();
  uint4 chunks[kUnderWay];
#pragma unroll
  for (unsigned k = 0; k < kUnderWay; ++k) chunks[k] = bytes.load(lanes.lane + k * lanes.lanes);
  if (lanes.lane < kHeadChunks) lanes.head[lanes.lane] = chunks[0];
  __syncwarp(lanes.mask);
  const auto* const head = reinterpret_cast<const std::uint8_t*>(lanes.head);
  traffic::Stamp stamp{};
  const Verdict known = bytes.length < head_bytes ? Verdict::unstamped : work.identify(head, stamp);
  bool same = known == Verdict::forward;
  if (same) {
    const std::uint8_t* const expected = pattern.pattern(stamp);
    const std::uint32_t length = min(bytes.length, traffic::kMaxFrameBytes);  // the table's end is the longest frame's
    for (unsigned first = lanes.lane; first < bytes.count(); first += kUnderWay * lanes.lanes) {
#pragma unroll
      for (unsigned k = 0; k < kUnderWay; ++k) {
        const unsigned index = first + k * lanes.lanes;
        same = same && chunk_matches(chunks[k], index, head_bytes, length, expected);
        chunks[k] = bytes.load(index + kUnderWay * lanes.lanes);
      }
    }
    if (lanes.lane == 0) same = same && work.head_matches(head, stamp, bytes.length);
  }
  const bool intact = __all_sync(lanes.mask, same);
  if (lanes.lane != 0) return Verdict::forward;
  return known != Verdict::forward ? known : work.settle(stamp, bytes.length, intact);
}

[[nodiscard]] inline __device__ Verdict consume(const FrameLanes& lanes, const LaneBytes& bytes, ByteSum& work) {
  std::uint64_t sum = 0;
  for (unsigned index = lanes.lane; index < bytes.count(); index += lanes.lanes) {
    const uint4 chunk = bytes.load(index);
    const std::uint32_t left = bytes.length - index * static_cast<std::uint32_t>(sizeof(uint4));
    std::uint64_t low = std::uint64_t{chunk.y} << 32 | chunk.x;
    std::uint64_t high = std::uint64_t{chunk.w} << 32 | chunk.z;
    if (left < 8) low &= (std::uint64_t{1} << 8 * left) - 1;
    sum += word_sum(low, 2 * index);
    if (left <= 8) continue;
    if (left < 16) high &= (std::uint64_t{1} << 8 * (left - 8)) - 1;
    sum += word_sum(high, 2 * index + 1);
  }
  for (unsigned step = lanes.lanes / 2; step != 0; step /= 2) sum += __shfl_xor_sync(lanes.mask, sum, step);
  if (lanes.lane == 0) work.add(bytes.length, sum + length_sum(bytes.length));
  return Verdict::forward;
}

/// Works on a batch by all threads of a CTA. Frames in several pieces, and such as do not begin at multiples of 16, are
/// each one thread's, as those of any other work.
template <typename Work>
__device__ handoff::BurstCounts consume_together(handoff::BurstView burst, Work& work) {
  __shared__ Segment held[kHeldDescriptors];
  __shared__ uint4 heads[kConsumerThreads / kFewestLanes][kHeadChunks];
  __shared__ unsigned longest;
  __shared__ unsigned worked;
  __shared__ unsigned exceptions;
  if (threadIdx.x == 0) longest = worked = exceptions = 0;
  bool plain = burst.count <= kHeldDescriptors;
  std::uint32_t mine = 0;
  for (unsigned i = threadIdx.x; plain && i < burst.count; i += blockDim.x) {
    const Segment segment = burst.segments[i];
    held[i] = segment;
    plain = segment.more == 0 && reinterpret_cast<std::uintptr_t>(segment.data) % sizeof(uint4) == 0;
    mine = max(mine, segment.length);
  }
  if (!__syncthreads_and(plain)) return handoff::work_burst_together<Work>(burst, work);
  atomicMax(&longest, mine);
  __syncthreads();

  const unsigned chunks = (longest + sizeof(uint4) - 1) / sizeof(uint4);
  unsigned lanes = kFewestLanes;
  while (lanes < chunks && lanes < kWarpLanes) lanes *= 2;
  const unsigned group = threadIdx.x / lanes;
  const unsigned in_warp = threadIdx.x % kWarpLanes / lanes * lanes;
  const unsigned mask = lanes == kWarpLanes ? ~0U : ((1U << lanes) - 1) << in_warp;
  const FrameLanes frame_lanes{threadIdx.x % lanes, lanes, mask, heads[group]};
  for (unsigned i = group; i < burst.count; i += blockDim.x / lanes) {
    const Segment segment = held[i];
    if (segment.verdict != Verdict::forward) {
      if (frame_lanes.lane == 0) atomicAdd(&exceptions, 1);
      continue;
    }
    const Verdict verdict =
        consume(frame_lanes, LaneBytes{reinterpret_cast<const uint4*>(segment.data), segment.length}, work);
    __syncwarp(mask);  // the head's room is the next frame's
    if (frame_lanes.lane != 0) continue;
    atomicAdd(&worked, 1);
    if (verdict == Verdict::forward) continue;
    burst.segments[i].verdict = verdict;
    atomicAdd(&exceptions, 1);
  }
  __syncthreads();
  return {static_cast<std::uint16_t>(worked), static_cast<std::uint16_t>(exceptions)};
}

inline __device__ handoff::BurstCounts work_burst_together(handoff::BurstView burst, PatternCheck& work) {
  return consume_together(burst, work);
}
inline __device__ handoff::BurstCounts work_burst_together(handoff::BurstView burst, ByteSum& work) {
  return consume_together(burst, work);
}

}  // namespace warpline::ingest
