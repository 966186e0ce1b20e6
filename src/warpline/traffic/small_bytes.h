// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/host_device.h"

namespace warpline::traffic {

/// memcmp and memcpy for lengths that are mostly a few bytes, where calling them would cost more than the work.
inline constexpr std::uint32_t kSmall = 32;

template <typename Word>
[[nodiscard]] WARPLINE_HD inline Word load(const std::uint8_t* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(Word));
  return word;
}

[[nodiscard]] WARPLINE_HD inline bool same_bytes(const std::uint8_t* a, const std::uint8_t* b, std::uint32_t n) {
#if !defined(__CUDA_ARCH__)
  if (n > kSmall) return std::memcmp(a, b, n) == 0;
#endif
  std::uint64_t difference = 0;
  std::uint32_t i = 0;
  for (; i + 8 <= n; i += 8) difference |= load<std::uint64_t>(a + i) ^ load<std::uint64_t>(b + i);
  if ((n & 4) != 0) {
    difference |= load<std::uint32_t>(a + i) ^ load<std::uint32_t>(b + i);
    i += 4;
  }
  for (; i < n; ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

inline void copy_bytes(std::uint8_t* to, const std::uint8_t* from, std::uint32_t n) {
  if (n > kSmall) {
    std::memcpy(to, from, n);
    return;
  }
  std::uint32_t i = 0;
  for (; i + 8 <= n; i += 8) std::memcpy(to + i, from + i, 8);
  if ((n & 4) != 0) {
    std::memcpy(to + i, from + i, 4);
    i += 4;
  }
  for (; i < n; ++i) to[i] = from[i];
}

}  // namespace warpline::traffic
