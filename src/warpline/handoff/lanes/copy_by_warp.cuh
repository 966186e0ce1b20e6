// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpline::handoff {

inline constexpr unsigned kWarp = 32;

[[nodiscard]] __device__ inline bool aligned(const void* a, const void* b, std::size_t to) {
  return ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) & (to - 1)) == 0;
}

/// `count` units by one warp, several of each lane's under way at a time.
template <typename Unit>
__device__ void copy_units(Unit* to, const Unit* from, std::uint32_t count, unsigned lane) {
  constexpr unsigned kUnderWay = 4;
  for (std::uint32_t i = lane; i < count; i += kWarp * kUnderWay) {
    Unit units[kUnderWay];
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      if (i + k * kWarp < count) units[k] = from[i + k * kWarp];
    }
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      if (i + k * kWarp < count) to[i + k * kWarp] = units[k];
    }
  }
}

/// `words` to `to`, which is aligned, from bytes that are not, such as what follows Ethernet's 14 bytes: each word is
/// cut out of two that are. Reads no word that has none of the bytes. All lanes of the warp call it.
__device__ inline void copy_shifted(unsigned* to, const std::uint8_t* from, std::uint32_t words, unsigned lane) {
  constexpr unsigned kAll = ~0U;
  const auto skip = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from) % sizeof(unsigned));
  const auto* const source = reinterpret_cast<const unsigned*>(from - skip);
  constexpr unsigned kUnderWay = 4;
  for (std::uint32_t begin = 0; begin < words; begin += kWarp * kUnderWay) {
    // One more than there are to be written; the last lane has the first of the next turn, too.
    unsigned low[kUnderWay + 1];
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      const std::uint32_t i = begin + k * kWarp + lane;
      low[k] = i <= words ? source[i] : 0;
    }
    const std::uint32_t beyond = begin + kUnderWay * kWarp;
    low[kUnderWay] = lane == kWarp - 1 && beyond <= words ? source[beyond] : 0;
#pragma unroll
    for (unsigned k = 0; k < kUnderWay; ++k) {
      const unsigned neighbour = __shfl_down_sync(kAll, low[k], 1);
      const unsigned first_of_next = k + 1 < kUnderWay ? __shfl_sync(kAll, low[k + 1], 0) : low[kUnderWay];
      const unsigned high = lane == kWarp - 1 ? first_of_next : neighbour;
      const std::uint32_t i = begin + k * kWarp + lane;
      if (i < words) to[i] = __funnelshift_r(low[k], high, skip * 8);
    }
  }
}

/// Copies bytes that do not overlap, in GPU memory or pinned memory. All lanes of the warp call it, each with its
/// number.
__device__ inline void copy_by_warp(std::uint8_t* to, const std::uint8_t* from, std::uint32_t length, unsigned lane) {
  std::uint32_t done = 0;
  if (aligned(to, from, sizeof(uint4))) {
    copy_units(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), length / sizeof(uint4), lane);
    done = length / sizeof(uint4) * sizeof(uint4);
  } else if (aligned(to, from, sizeof(unsigned))) {
    copy_units(reinterpret_cast<unsigned*>(to), reinterpret_cast<const unsigned*>(from), length / sizeof(unsigned),
               lane);
    done = length / sizeof(unsigned) * sizeof(unsigned);
  } else if (aligned(to, to, sizeof(unsigned))) {
    copy_shifted(reinterpret_cast<unsigned*>(to), from, length / sizeof(unsigned), lane);
    done = length / sizeof(unsigned) * sizeof(unsigned);
  }
  copy_units(to + done, from + done, length - done, lane);
}

}  // namespace warpline::handoff
