// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "warpline/packet/checksum.h"
#include "warpline/stream/seeded_places.h"

namespace warpline::stream {

/// Bytes that sender and receiver both know, at any offset of any stream: pieces of a pseudo-random table, whose places
/// a hash of seed, stream and offset chooses, so that sending is a copy, comparing a compare, and no byte predicts
/// one far from it. Streams are told apart by a number, such as the sender's port. Immutable: any thread.
class SeededPayload {
 public:
  explicit SeededPayload(std::uint64_t seed);  ///< makes the table of `seed`, which both ends are given

  /// Copies bytes `[offset, offset + length)` of a stream to `to`, and adds them to `sum`.
  void copy(std::uint64_t stream, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const;
  /// Returns how many of `bytes`, from their first on, are those of the stream from `offset` on: all, if it is right.
  [[nodiscard]] std::uint64_t matching(std::uint64_t stream, std::uint64_t offset,
                                       std::span<const std::uint8_t> bytes) const;

  /// The pieces lie in it, where SeededPlaces says.
  [[nodiscard]] std::span<const std::uint8_t> table() const { return table_; }
  [[nodiscard]] std::uint64_t mixed_seed() const { return seed_; }  ///< as SeededPlaces is given it

 private:
  /// Returns what byte `offset` and those behind it in its piece are.
  [[nodiscard]] std::span<const std::uint8_t> piece_at(std::uint64_t stream, std::uint64_t offset) const;

  std::uint64_t seed_;
  std::vector<std::uint8_t> table_;
};

}  // namespace warpline::stream
