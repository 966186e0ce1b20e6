// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "warpline/base/piece_lane.h"

namespace warpline::service {

/// message_hash() of bytes that a lane reads and the CPU need not reach. One thread.
class MessageHasher {
 public:
  /// `lane` writes block hashes; `words`, at least one, are memory that both reach.
  MessageHasher(PieceLane& lane, std::span<std::uint64_t> words) : lane_(lane), words_(words) {}

  /// Waits for the lane: for verification. Nothing if that has failed.
  [[nodiscard]] std::optional<std::uint64_t> hash(const std::uint8_t* bytes, std::uint32_t length);

 private:
  bool submit(std::span<const Piece> batch);

  PieceLane& lane_;
  std::span<std::uint64_t> words_;  ///< block hashes
  std::uint64_t batches_ = 0;
};

}  // namespace warpline::service
