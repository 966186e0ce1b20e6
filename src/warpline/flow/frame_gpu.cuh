// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/flow/batch_assembler.h"

namespace warpline::flow {

/// Copies bytes by one warp. `to` and `from` need no alignment: each word that is written is cut out of two that are
/// read, and no word is read that has none of the bytes. All lanes call it.
__device__ inline void copy_by_warp(std::uint8_t* to, const std::uint8_t* from, std::uint32_t length) {
  constexpr std::uint32_t kWarp = 32;
  constexpr std::uint32_t kWord = sizeof(std::uint32_t);
  constexpr std::uint32_t kChunk = sizeof(uint4);
  const std::uint32_t lane = threadIdx.x % kWarp;
  auto head = static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to) % kChunk);
  if (head > length) head = length;
  if (lane < head) to[lane] = from[lane];
  to += head;
  from += head;
  length -= head;
  const std::uint32_t chunks = length / kChunk;
  const auto skip = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from) % kWord);
  auto* const target = reinterpret_cast<uint4*>(to);
  if (reinterpret_cast<std::uintptr_t>(from) % kChunk == 0) {
    const auto* const source = reinterpret_cast<const uint4*>(from);
#pragma unroll 4
    for (std::uint32_t i = lane; i < chunks; i += kWarp) target[i] = source[i];
  } else {
    const auto* const source = reinterpret_cast<const std::uint32_t*>(from - skip);
#pragma unroll 4
    for (std::uint32_t i = lane; i < chunks; i += kWarp) {
      const std::uint32_t* const words = source + i * (kChunk / kWord);
      const std::uint32_t a = words[0];
      const std::uint32_t b = words[1];
      const std::uint32_t c = words[2];
      const std::uint32_t d = words[3];
      const std::uint32_t e = skip == 0 ? 0 : words[4];
      const std::uint32_t bits = skip * 8;
      target[i] = make_uint4(__funnelshift_r(a, b, bits), __funnelshift_r(b, c, bits), __funnelshift_r(c, d, bits),
                             __funnelshift_r(d, e, bits));
    }
  }
  for (std::uint32_t i = chunks * kChunk + lane; i < length; i += kWarp) to[i] = from[i];
}

/// `CtaTeam` is the threads of a CTA, a whole number of warps, as BatchAssembler wants a team.
class CtaTeam {
 public:
  template <typename F>
  __device__ void for_each(std::uint32_t n, F&& f) {
    for (std::uint32_t i = threadIdx.x; i < n; i += blockDim.x) f(i);
    __syncthreads();
  }
  template <typename F>
  __device__ void once(F&& f) {
    if (threadIdx.x == 0) f();
    __syncthreads();
  }
  /// A warp copies a payload.
  template <typename F>
  __device__ void copy_each(std::uint32_t n, F&& f) {
    constexpr std::uint32_t kWarp = 32;
    for (std::uint32_t i = threadIdx.x / kWarp; i < n; i += blockDim.x / kWarp) {
      const auto job = f(i);
      if (job.to == nullptr) continue;
      std::uint8_t* to = job.to;
      std::uint32_t skip = job.offset;
      std::uint32_t left = job.length;
      for (std::uint16_t k = 0; k < job.from.count && left != 0; ++k) {
        const Segment& segment = job.from.segments[k];
        if (skip >= segment.length) {
          skip -= segment.length;
          continue;
        }
        const std::uint32_t here = min(left, segment.length - skip);
        copy_by_warp(to, segment.data + skip, here);
        to += here;
        left -= here;
        skip = 0;
      }
    }
    __syncthreads();
  }
  __device__ static void min_of(std::uint32_t* word, std::uint32_t value) { atomicMin(word, value); }
  __device__ static void max_of(std::uint32_t* word, std::uint32_t value) { atomicMax(word, value); }
  __device__ static std::uint32_t add_to_word(std::uint32_t* word, std::uint32_t n) { return atomicAdd(word, n); }
  __device__ static void store(std::uint32_t* word, std::uint32_t value) {
    *static_cast<volatile std::uint32_t*>(word) = value;
  }
};

/// Calls BatchAssembler::place() by all threads of a CTA, in kernels that are launched and kernels that stay. Ends with
/// a barrier.
__device__ inline std::uint32_t place_batch_together(const AssemblerView& view, const PacketBatch& batch,
                                                     WhenFull when_full) {
  CtaTeam team;
  return BatchAssembler(team, view).place(batch, when_full);
}

}  // namespace warpline::flow
