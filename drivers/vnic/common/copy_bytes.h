// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace warpline::vnic {

/// memcpy that stays inline for the lengths of small frames: 64 bytes are four loads and four stores.
[[gnu::always_inline]] inline void copy_bytes(void* to, const void* from, std::size_t length) {
  auto* out = static_cast<std::uint8_t*>(to);
  const auto* in = static_cast<const std::uint8_t*>(from);
  if (length - 32 <= 32) {
    // The last 32 bytes may overlap the first 32.
    std::uint8_t head[32];
    std::uint8_t tail[32];
    std::memcpy(head, in, 32);
    std::memcpy(tail, in + length - 32, 32);
    std::memcpy(out, head, 32);
    std::memcpy(out + length - 32, tail, 32);
    return;
  }
  std::memcpy(out, in, length);
}

}  // namespace warpline::vnic
