// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "base/random.h"

namespace warpline {

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

  [[nodiscard]] std::uint8_t* slice(std::uint64_t sequence) const { return bytes_ + 8 * (sequence % kSlices); }

 private:
  std::uint8_t* bytes_ = nullptr;
};

/// Depends on every byte and its place. Four chains, so that a multiplication's latency does not bound it.
[[nodiscard]] inline std::uint64_t message_hash(const std::uint8_t* bytes, std::uint32_t length) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;
  std::uint64_t chains[4] = {1, 2, 3, 4};
  std::uint32_t at = 0;
  for (; at + 32 <= length; at += 32) {
    for (int i = 0; i < 4; ++i) {
      std::uint64_t word;
      std::memcpy(&word, bytes + at + 8 * i, sizeof(word));
      chains[i] = (chains[i] ^ word) * kFactor;
    }
  }
  for (; at < length; ++at) chains[at & 3] = (chains[at & 3] ^ bytes[at]) * kFactor;
  return mix64(chains[0] ^ mix64(chains[1] ^ mix64(chains[2] ^ mix64(chains[3] ^ length))));
}

}  // namespace warpline
