// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/hasher.h"

#include <algorithm>
#include <array>

#include "warpline/base/block_hash.h"
#include "warpline/base/give_way.h"

namespace warpline::service {

/// Waits for room. False if the lane has failed.
bool MessageHasher::submit(std::span<const Piece> batch) {
  while (!lane_.submit(batch)) {
    if (lane_.failure()) return false;
    (void)lane_.landed();
    give_way();
  }
  ++batches_;
  return true;
}

std::optional<std::uint64_t> MessageHasher::hash(const std::uint8_t* bytes, std::uint32_t length) {
  std::uint64_t hash = 0;
  for (std::uint32_t at = 0; at < length;) {
    // As many blocks as there are words, in batches.
    const auto blocks =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(words_.size(), (length - at - 1) / kHashBlock + 1));
    for (std::uint32_t first = 0; first < blocks;) {
      std::array<Piece, PieceLane::kMostPieces> batch;
      const auto count = std::min<std::uint32_t>(batch.size(), blocks - first);
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t begin = at + (first + i) * kHashBlock;
        batch[i] = {&words_[first + i], bytes + begin, std::min(kHashBlock, length - begin)};
      }
      if (!submit(std::span(batch).first(count))) return std::nullopt;
      first += count;
    }
    while (lane_.landed() < batches_) {
      if (lane_.failure()) return std::nullopt;
      give_way();
    }
    for (const std::uint64_t block : words_.first(blocks)) hash = add_block_hash(hash, block);
    at += std::min(blocks * kHashBlock, length - at);
  }
  return hash;
}

}  // namespace warpline::service
