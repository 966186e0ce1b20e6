// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "warpline/base/block_hash.h"
#include "warpline/base/random.h"

namespace warpline::service {

/// What a request of `message` asks for, as its code.
enum class MessageService : std::uint16_t {
  echo = 1,       ///< the same bytes back
  sink = 2,       ///< nothing back
  sink_hash = 3,  ///< message_hash() of the bytes back, 8 bytes of the machine's order
  source = 4,     ///< a SourceRequest: as many bytes of the pattern back
};

/// Codes of responses.
inline constexpr std::uint16_t kServed = 0;
inline constexpr std::uint16_t kNotServed = 1;  ///< an unknown service, or a request that is none

struct SourceRequest {
  std::uint32_t length = 0;
  std::uint32_t sequence = 0;  ///< chooses the slice
};

/// Bytes that differ everywhere, from which messages are cut: neighbours in sequence begin elsewhere, so that one
/// mistaken for another is noticed.
class MessagePattern {
 public:
  static constexpr std::uint32_t kSlices = 4096;
  static constexpr std::uint64_t bytes_for(std::uint32_t longest) { return std::uint64_t{longest} + 8 * kSlices + 8; }

  MessagePattern() = default;
  /// `memory`: bytes_for() the longest message, aligned to 8.
  explicit MessagePattern(std::span<std::uint8_t> memory) : bytes_(memory.data()) {
    for (std::uint64_t at = 0; at + 8 <= memory.size(); at += 8) {
      const std::uint64_t word = mix64(at);
      std::memcpy(bytes_ + at, &word, sizeof(word));
    }
  }

  /// The same bytes once more, in memory that is not touched: a copy of it.
  [[nodiscard]] static MessagePattern copied_to(std::uint8_t* bytes) {
    MessagePattern copy;
    copy.bytes_ = bytes;
    return copy;
  }

  [[nodiscard]] std::uint8_t* slice(std::uint64_t sequence) const { return bytes_ + 8 * (sequence % kSlices); }

 private:
  std::uint8_t* bytes_ = nullptr;
};

/// Returns the hash of a message, made of the hashes of its blocks, which a GPU computes in parallel.
[[nodiscard]] inline std::uint64_t message_hash(const std::uint8_t* bytes, std::uint32_t length) {
  std::uint64_t hash = 0;
  for (std::uint32_t at = 0; at < length; at += kHashBlock) {
    hash = add_block_hash(hash, block_hash(bytes + at, std::min(kHashBlock, length - at)));
  }
  return hash;
}

}  // namespace warpline::service
