// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/checksum.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::packet {
namespace {

/// As RFC 1071 words it, in big-endian words with the carry brought around each time.
std::uint16_t slow_checksum(const FrameBytes& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    sum += bytes[i] << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0);
    if (sum > 0xffff) sum -= 0xffff;
  }
  return static_cast<std::uint16_t>(~sum);
}

TEST(Checksum, Rfc1071Example) {
  const FrameBytes bytes{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(checksum(bytes.data(), 8), static_cast<std::uint16_t>(~0xddf2));
}

TEST(Checksum, OfNothingAndOfZeroes) {
  const FrameBytes zeroes(9);
  EXPECT_EQ(checksum(zeroes.data(), 0), 0xffff);
  EXPECT_EQ(checksum(zeroes.data(), 9), 0xffff);
}

TEST(Checksum, CarriesOfTheLongestMessage) {
  const FrameBytes ones(65535, 0xff);
  EXPECT_EQ(checksum(ones.data(), 65535), slow_checksum(ones));
}

TEST(Checksum, Rfc1624Example) { EXPECT_EQ(update_checksum(0xdd2f, 0x5555, 0x3285), 0x0000); }

WARPLINE_PROPERTY(ChecksumProperty, IsThatOfTheRfc, (const FrameBytes& bytes)) {
  RC_ASSERT(checksum(SegmentedFrame(bytes).ref().data(), static_cast<std::uint32_t>(bytes.size())) ==
            slow_checksum(bytes));
}

WARPLINE_PROPERTY(ChecksumProperty, PiecesMayHaveAnyLength, (const std::vector<FrameBytes>& pieces)) {
  ChecksumSum sum;
  FrameBytes whole;
  for (const FrameBytes& piece : pieces) {
    sum.add(piece.data(), static_cast<std::uint32_t>(piece.size()));
    whole = whole + piece;
  }
  RC_ASSERT(sum.checksum() == slow_checksum(whole));
}

WARPLINE_PROPERTY(ChecksumProperty, OfBytesThatAreCopied, ()) {
  const auto lengths = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(0U, 4000U));
  const auto shift = *rc::gen::inRange<std::size_t>(0, 64);
  // One number of rapidcheck's for all bytes: a number each takes longer than what is tested.
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  FrameBytes whole;
  for (const std::uint32_t length : lengths) whole.resize(whole.size() + length);
  for (std::uint8_t& byte : whole) byte = static_cast<std::uint8_t>(random.below(256));
  FrameBytes copy(whole.size() + shift);
  ChecksumSum sum;
  std::size_t at = 0;
  for (const std::uint32_t length : lengths) {
    sum.add_copied(copy.data() + shift + at, whole.data() + at, length);
    at += length;
  }
  RC_ASSERT(sum.checksum() == slow_checksum(whole));
  RC_ASSERT(FrameBytes(copy.begin() + static_cast<std::ptrdiff_t>(shift), copy.end()) == whole);
}

WARPLINE_PROPERTY(ChecksumProperty, OfAPartOfAFrameInSegments, (const FrameBytes& bytes)) {
  const auto cuts = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(0U, 9U));
  const auto offset = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
  const auto length = *rc::gen::inRange<std::size_t>(0, bytes.size() - offset + 1);
  SegmentedFrame frame(bytes, cuts);
  ChecksumSum sum;
  RC_ASSERT(sum.add(frame.ref(), static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(length)));
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
  RC_ASSERT(sum.checksum() == slow_checksum({first, first + static_cast<std::ptrdiff_t>(length)}));
  RC_ASSERT(
      !sum.add(frame.ref(), static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes.size() - offset + 1)));
}

WARPLINE_PROPERTY(ChecksumProperty, OfTwoSumsTogether, (FrameBytes front, const FrameBytes& back)) {
  if (front.size() % 2 != 0) front.push_back(0x5a);
  ChecksumSum first;
  ChecksumSum second;
  first.add(front.data(), static_cast<std::uint32_t>(front.size()));
  second.add(back.data(), static_cast<std::uint32_t>(back.size()));
  first.add(second);
  RC_ASSERT(first.checksum() == slow_checksum(front + back));
}

WARPLINE_PROPERTY(ChecksumProperty, UpdateIsWhatAllBytesGive, (FrameBytes bytes, std::uint16_t after)) {
  bytes.push_back(1);  // not all zero, where the two zeroes of the one's complement part
  bytes.resize((bytes.size() + 3) / 2 * 2);
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size() / 2) * 2;
  const std::uint16_t before = load_be16(bytes.data() + at);
  const std::uint16_t old = slow_checksum(bytes);
  store_be16(bytes.data() + at, after);
  RC_PRE(bytes != FrameBytes(bytes.size()));
  RC_ASSERT(update_checksum(old, before, after) == slow_checksum(bytes));
}

WARPLINE_PROPERTY(ChecksumProperty, PseudoHeadersAreThoseOfTheRfcs, (std::uint8_t protocol, std::uint16_t length)) {
  const auto v4 = *rc::gen::container<FrameBytes>(8, rc::gen::arbitrary<std::uint8_t>());
  const auto v6 = *rc::gen::container<FrameBytes>(32, rc::gen::arbitrary<std::uint8_t>());
  const auto high = static_cast<std::uint8_t>(length >> 8);
  const auto low = static_cast<std::uint8_t>(length);
  RC_ASSERT(pseudo_header_v4(v4.data(), protocol, length).checksum() ==
            slow_checksum(v4 + FrameBytes{0, protocol, high, low}));
  RC_ASSERT(pseudo_header_v6(v6.data(), protocol, length).checksum() ==
            slow_checksum(v6 + FrameBytes{0, 0, high, low, 0, 0, 0, protocol}));
}

}  // namespace
}  // namespace warpline::packet
