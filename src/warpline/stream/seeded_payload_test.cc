// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/seeded_payload.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"

namespace warpline::stream {
namespace {

std::vector<std::uint8_t> bytes_of(const SeededPayload& payload, std::uint64_t stream, std::uint64_t offset,
                                   std::uint32_t length, packet::ChecksumSum& sum) {
  std::vector<std::uint8_t> bytes(length);
  payload.copy(stream, offset, length, bytes.data(), sum);
  return bytes;
}

std::vector<std::uint8_t> bytes_of(const SeededPayload& payload, std::uint64_t stream, std::uint64_t offset,
                                   std::uint32_t length) {
  packet::ChecksumSum sum;
  return bytes_of(payload, stream, offset, length, sum);
}

WARPLINE_PROPERTY(SeededPayloads, AreTheSameHoweverTheyAreCut, ()) {
  const SeededPayload payload(*rc::gen::arbitrary<std::uint64_t>());
  const auto stream = *rc::gen::arbitrary<std::uint64_t>();
  const std::uint64_t offset = *rc::gen::inRange<std::uint64_t>(0, 1ULL << 40);
  const auto whole = bytes_of(payload, stream, offset, 20'000);
  const auto from = *rc::gen::inRange<std::uint32_t>(0, 20'000);
  const auto length = *rc::gen::inRange<std::uint32_t>(0, 20'000 - from);
  packet::ChecksumSum sum;
  const auto part = bytes_of(payload, stream, offset + from, length, sum);
  RC_ASSERT(std::equal(part.begin(), part.end(), whole.begin() + from));
  RC_ASSERT(sum.checksum() == packet::checksum(part.data(), length));
  RC_ASSERT(payload.matching(stream, offset + from, part) == length);
}

TEST(SeededPayload, FindsTheFirstWrongByte) {
  const SeededPayload payload(7);
  auto bytes = bytes_of(payload, 1, 1000, 30'000);
  EXPECT_EQ(payload.matching(1, 1000, bytes), bytes.size());
  bytes[12'345] ^= 1;
  bytes[12'400] ^= 1;
  EXPECT_EQ(payload.matching(1, 1000, bytes), 12'345U);
}

TEST(SeededPayload, IsAnotherOneForEachStreamSeedAndPlace) {
  const SeededPayload payload(7);
  const auto bytes = bytes_of(payload, 1, 0, 100'000);
  EXPECT_LT(payload.matching(2, 0, bytes), 8U);
  EXPECT_LT(SeededPayload(8).matching(1, 0, bytes), 8U);
  for (const std::uint64_t shift : {1U, 256U, 4096U, 8192U, 65'536U}) {
    EXPECT_LT(payload.matching(1, shift, std::span(bytes).subspan(0, 4096)), 8U) << shift;
  }
}

}  // namespace
}  // namespace warpline::stream
