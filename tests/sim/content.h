// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "warpline/base/random.h"

namespace warpline::sim {

/// The bytes that belong to `seed`: any place of one message differs from that place of another.
inline void fill_content(std::uint8_t* data, std::uint32_t length, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < length; i += 8) {
    const std::uint64_t word = mix64(seed + i);
    std::memcpy(data + i, &word, std::min<std::uint32_t>(8, length - i));
  }
}

[[nodiscard]] inline bool has_content(const std::uint8_t* data, std::uint32_t length, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < length; i += 8) {
    const std::uint64_t word = mix64(seed + i);
    if (std::memcmp(data + i, &word, std::min<std::uint32_t>(8, length - i)) != 0) return false;
  }
  return true;
}

}  // namespace warpline::sim
