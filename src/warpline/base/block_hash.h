// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/host_device.h"
#include "warpline/base/random.h"

namespace warpline {

/// Bytes that are hashed by one thread; longer messages are many blocks, so that many threads of a GPU share them.
inline constexpr std::uint32_t kHashBlock = 4096;

/// Depends on every byte and its place. Four chains, so that a multiplication's latency does not bound it. Not for
/// keeping anyone out.
[[nodiscard]] WARPLINE_HD inline std::uint64_t block_hash(const std::uint8_t* bytes, std::uint32_t length) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;
  std::uint64_t chains[4] = {1, 2, 3, 4};
  std::uint32_t at = 0;
  for (; at + 32 <= length; at += 32) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      std::uint64_t word;
      std::memcpy(&word, bytes + at + 8 * i, sizeof(word));
      chains[i] = (chains[i] ^ word) * kFactor;
    }
  }
  for (; at < length; ++at) chains[at & 3] = (chains[at & 3] ^ bytes[at]) * kFactor;
  return mix64(chains[0] ^ mix64(chains[1] ^ mix64(chains[2] ^ mix64(chains[3] ^ length))));
}

/// Adds the hash of the next block to a message's hash. Start with 0 and add the blocks in order.
[[nodiscard]] WARPLINE_HD constexpr std::uint64_t add_block_hash(std::uint64_t hash, std::uint64_t block) {
  return mix64(hash ^ block);
}

}  // namespace warpline
