// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/seeded_payload.h"

#include <algorithm>
#include <cstring>

#include "warpline/base/random.h"

namespace warpline::stream {

SeededPayload::SeededPayload(std::uint64_t seed) : seed_(mix64(seed)), table_(SeededPlaces::kTable) {
  Random random(seed);
  for (std::uint8_t& byte : table_) byte = static_cast<std::uint8_t>(random.next() >> 56);
}

std::span<const std::uint8_t> SeededPayload::piece_at(std::uint64_t stream, std::uint64_t offset) const {
  const std::uint64_t within = offset % SeededPlaces::kPiece;
  return {table_.data() + SeededPlaces::of(seed_, stream, offset) + within, SeededPlaces::kPiece - within};
}

void SeededPayload::copy(std::uint64_t stream, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
                         packet::ChecksumSum& sum) const {
  while (length != 0) {
    const std::span<const std::uint8_t> piece = piece_at(stream, offset);
    const auto here = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, piece.size()));
    sum.add_copied(to, piece.data(), here);
    to += here;
    offset += here;
    length -= here;
  }
}

std::uint64_t SeededPayload::matching(std::uint64_t stream, std::uint64_t offset,
                                      std::span<const std::uint8_t> bytes) const {
  std::uint64_t right = 0;
  while (right < bytes.size()) {
    const std::span<const std::uint8_t> piece = piece_at(stream, offset + right);
    const std::size_t here = std::min<std::size_t>(bytes.size() - right, piece.size());
    const std::uint8_t* const found = bytes.data() + right;
    if (std::memcmp(found, piece.data(), here) != 0) {
      const auto* const wrong = std::mismatch(found, found + here, piece.data()).first;
      return right + static_cast<std::uint64_t>(wrong - found);
    }
    right += here;
  }
  return right;
}

}  // namespace warpline::stream
