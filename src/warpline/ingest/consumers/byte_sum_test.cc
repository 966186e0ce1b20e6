// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/consumers/byte_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::ingest {
namespace {

using ByteVector = std::vector<std::uint8_t>;

/// The sum of `bytes` in pieces of the given lengths, the last piece having the rest.
std::uint64_t sum_in_pieces(ByteVector bytes, const std::vector<std::uint8_t>& lengths) {
  std::vector<Segment> segments;
  std::size_t at = 0;
  for (const std::uint8_t length : lengths) {
    const std::size_t take = std::min<std::size_t>(length, bytes.size() - at);
    if (segments.size() + 1 == kMaxSegments || take == 0) continue;
    segments.push_back({bytes.data() + at, static_cast<std::uint32_t>(take), 0, Verdict::forward});
    at += take;
  }
  segments.push_back({bytes.data() + at, static_cast<std::uint32_t>(bytes.size() - at), 0, Verdict::forward});
  return frame_sum(
      {segments.data(), static_cast<std::uint16_t>(segments.size()), static_cast<std::uint32_t>(bytes.size())});
}

WARPLINE_PROPERTY(FrameSum, DoesNotDependOnThePieces,
                  (const ByteVector& bytes, const std::vector<std::uint8_t>& lengths)) {
  RC_ASSERT(sum_in_pieces(bytes, lengths) == sum_in_pieces(bytes, {}));
}

WARPLINE_PROPERTY(FrameSum, DependsOnEveryBit, ()) {
  const auto bytes = *rc::gen::nonEmpty<ByteVector>();
  ByteVector changed = bytes;
  changed[*rc::gen::inRange<std::size_t>(0, bytes.size())] ^= static_cast<std::uint8_t>(1U << *rc::gen::inRange(0, 8));
  RC_ASSERT(sum_in_pieces(bytes, {}) != sum_in_pieces(changed, {}));
}

TEST(FrameSum, DependsOnTheLengthAndOnPlaces) {
  EXPECT_NE(sum_in_pieces({1, 0}, {}), sum_in_pieces({1}, {}));
  EXPECT_NE(sum_in_pieces({1, 2, 3, 4, 5, 6, 7, 8, 9}, {}), sum_in_pieces({9, 2, 3, 4, 5, 6, 7, 8, 1}, {}));
}

TEST(ByteSum, CountsWhatItTakesInAnyOrderAndByAnyNumberOfWorkers) {
  ByteVector bytes(3 * 60);
  std::ranges::generate(bytes, [n = std::uint8_t{0}]() mutable { return n += 7; });
  const auto frame = [&](std::size_t i, Segment& segment) {
    segment = {bytes.data() + 60 * i, 60, 0, Verdict::forward};
    return FrameRef{&segment, 1, 60};
  };
  Segment segment;
  ByteSum one;
  for (const std::size_t i : {0, 1, 2}) EXPECT_EQ(one(frame(i, segment)), Verdict::forward);
  ByteSum first;
  ByteSum second;
  (void)first(frame(2, segment));
  (void)second(frame(1, segment));
  (void)second(frame(0, segment));
  first.merge(second);
  EXPECT_EQ(first.tally(), one.tally());
  EXPECT_EQ(one.tally().packets, 3U);
  EXPECT_EQ(one.tally().bytes, 180U);
}

}  // namespace
}  // namespace warpline::ingest
