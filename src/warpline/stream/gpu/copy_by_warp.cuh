// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::stream {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kWholeWarp = ~0U;

/// Copies `length` bytes, at least one, by one warp; neither address need be aligned. Returns the calling lane's part
/// of the sum of the 16-bit words of memory that were written, as they lie at even addresses, bytes beside them being
/// 0; 0 unless `kSums`, which is for up to 65535 bytes. Reads and writes are of 16 bytes, but for writes of the ends.
/// Each 16 bytes that are written are cut out of two that were read, of which a lane has the first and its neighbour
/// the second, so that almost none is read twice. A warp asks for whole lines of 128 bytes of the source: over the bus
/// each part of a line is a request of its own. Nothing is read but words of 16 bytes that hold bytes to be copied. All
/// lanes call it, with the same arguments.
template <bool kSums>
__device__ inline std::uint32_t copy_words_by_warp(std::uint8_t* to, const std::uint8_t* from, std::uint32_t length) {
  std::uint32_t sum = 0;
  constexpr int kThreads = kWarp;
  constexpr int kUnderWay = 4;  // words that a lane has asked for at a time
  constexpr unsigned kWord = sizeof(uint4);
  constexpr unsigned kLineWords = 128 / kWord;
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const auto to_skip = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to) % kWord);
  auto* const target = reinterpret_cast<uint4*>(to - to_skip);
  const auto words = static_cast<int>((to_skip + length + kWord - 1) / kWord);
  // Word i of the target is bytes [shift, shift + 16) of words i and i + 1 of the source; word 0 of it may hold none.
  const auto begin = reinterpret_cast<std::uintptr_t>(from) - to_skip;
  const auto shift = static_cast<unsigned>(begin % kWord);
  const auto* const source = reinterpret_cast<const uint4*>(begin - shift);
  const auto first = static_cast<int>((shift + to_skip) / kWord);              // of the source, with bytes in it
  const auto last = static_cast<int>((shift + to_skip + length - 1) / kWord);  // likewise
  const auto load = [&](int i) { return i >= first && i <= last ? __ldcs(source + i) : uint4{0, 0, 0, 0}; };
  const auto in_line = static_cast<int>(reinterpret_cast<std::uintptr_t>(source) / kWord % kLineWords);
  for (int base = -in_line; base < words; base += kUnderWay * kThreads) {
    uint4 held[kUnderWay + 1];
#pragma unroll
    for (int k = 0; k < kUnderWay; ++k) held[k] = load(base + k * kThreads + lane);
    held[kUnderWay] = lane == 0 ? load(base + kUnderWay * kThreads) : uint4{0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < kUnderWay; ++k) {
      if (base + k * kThreads >= words) break;  // the same for all lanes
      // The neighbour of the last lane is the first one, a step further.
      const uint4 here = held[k];
      const uint4 give = lane == 0 ? held[k + 1] : here;
      const int neighbour = (lane + 1) % kThreads;
      uint4 next;
      next.x = __shfl_sync(kWholeWarp, give.x, neighbour);
      next.y = __shfl_sync(kWholeWarp, give.y, neighbour);
      next.z = __shfl_sync(kWholeWarp, give.z, neighbour);
      next.w = __shfl_sync(kWholeWarp, give.w, neighbour);
      std::uint32_t a, b, c, d, e;  // from 4-byte word shift / 4 on
      switch (shift / 4) {
        case 0:
          a = here.x, b = here.y, c = here.z, d = here.w, e = next.x;
          break;
        case 1:
          a = here.y, b = here.z, c = here.w, d = next.x, e = next.y;
          break;
        case 2:
          a = here.z, b = here.w, c = next.x, d = next.y, e = next.z;
          break;
        default:
          a = here.w, b = next.x, c = next.y, d = next.z, e = next.w;
          break;
      }
      const unsigned bits = shift % 4 * 8;
      const std::uint32_t out[4] = {__funnelshift_r(a, b, bits), __funnelshift_r(b, c, bits),
                                    __funnelshift_r(c, d, bits), __funnelshift_r(d, e, bits)};
      const int i = base + k * kThreads + lane;
      if (i < 0 || i >= words) continue;
      const std::uint32_t skipped = i == 0 ? to_skip : 0;
      const std::uint32_t end = min(kWord, to_skip + length - i * kWord);
      if (skipped == 0 && end == kWord) {
        target[i] = make_uint4(out[0], out[1], out[2], out[3]);
        if constexpr (kSums) {
#pragma unroll
          for (const std::uint32_t word : out) sum += (word & 0xffffU) + (word >> 16);
        }
        continue;
      }
      auto* const bytes = reinterpret_cast<std::uint8_t*>(target + i);
#pragma unroll
      for (unsigned n = 0; n < kWord; ++n) {
        if (n < skipped || n >= end) continue;
        const auto byte = static_cast<std::uint8_t>(out[n / 4] >> n % 4 * 8);
        bytes[n] = byte;
        if constexpr (kSums) sum += static_cast<std::uint32_t>(byte) << n % 2 * 8;
      }
    }
  }
  return sum;
}

/// The same without a sum.
__device__ inline void copy_by_warp(std::uint8_t* to, const std::uint8_t* from, std::uint32_t length) {
  copy_words_by_warp<false>(to, from, length);
}

/// The same, of up to 65535 bytes. Returns, on all lanes, the sum of their 16-bit words, the first of which begins at
/// `to` whatever its address (RFC 1071), in the machine's byte order.
__device__ inline std::uint32_t copy_and_sum_by_warp(std::uint8_t* to, const std::uint8_t* from, std::uint32_t length) {
  std::uint32_t sum = __reduce_add_sync(kWholeWarp, copy_words_by_warp<true>(to, from, length));
  if (reinterpret_cast<std::uintptr_t>(to) % 2 == 0) return sum;
  // Each byte was added in the other half of its word (RFC 1071, 2(B)).
  sum = (sum & 0xffffU) + (sum >> 16);
  sum = (sum & 0xffffU) + (sum >> 16);
  return (sum & 0xffU) << 8 | sum >> 8;
}

}  // namespace warpline::stream
