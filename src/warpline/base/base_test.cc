// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "warpline/base/frame.h"
#include "warpline/base/random.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/base/time/clock.h"

namespace warpline {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return usage_error("cannot halve it", "it is odd", "give an even number");
  return number / 2;
}

Result<int> quarter(int number) {
  WARPLINE_TRY(const int once, half(number));
  return half(once);
}

Result<void> check_even(int number) {
  WARPLINE_CHECK([number]() -> Result<void> {
    if (number % 2 != 0) return usage_error("odd", "");
    return {};
  }());
  return {};
}

TEST(Result, TryPassesValuesAndErrorsOn) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message(), "cannot halve it: it is odd; give an even number");
  EXPECT_TRUE(check_even(2).ok());
  EXPECT_EQ(check_even(1).error().message(), "odd");
}

TEST(Verdict, NamesAreUniqueAndOnlyTheFirstTwoLeave) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    EXPECT_TRUE(names.insert(name(verdict)).second) << name(verdict);
    EXPECT_FALSE(meaning(verdict).empty());
    EXPECT_EQ(is_drop(verdict), verdict != Verdict::forward && verdict != Verdict::reply);
  }
  EXPECT_EQ(name(Verdict::tcp_data_offset), "tcp_data_offset");
}

TEST(DropCounters, TotalIsTheSumOfTheReasons) {
  DropCounters drops;
  drops.add(Verdict::runt, 3);
  drops.add(Verdict::tx_full);
  EXPECT_EQ(drops.get(Verdict::runt), 3U);
  EXPECT_EQ(drops.total(), 4U);
}

TEST(Frame, CountsItsSegments) {
  std::array<std::uint8_t, 10> bytes{};
  std::array<Segment, 2> segments = {Segment{bytes.data(), 4, 1, Verdict::forward},
                                     Segment{bytes.data() + 4, 6, 0, Verdict::forward}};
  const FrameRef frame = frame_at(segments.data());
  EXPECT_EQ(frame.count, 2);
  EXPECT_EQ(frame.length, 10U);
  EXPECT_EQ(frame.head_length(), 4U);
}

TEST(Random, FollowsThePublishedSequence) {
  // SplitMix64 with seed 0 begins with these (reference implementation of Vigna).
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafU);
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15U), 0x6e789e6aa1b965f4U);
  Random one(42);
  Random two(42);
  Random other(43);
  EXPECT_EQ(one.next(), two.next());
  EXPECT_NE(one.next(), other.next());
  for (int i = 0; i < 1000; ++i) EXPECT_LT(one.below(7), 7U);
}

TEST(Clock, TicksConvertThereAndBack) {
  EXPECT_GT(ticks_per_second(), 1e6);
  const std::uint64_t ticks = nanos_to_ticks(Nanos{1'000'000});
  EXPECT_NEAR(ticks_to_nanos(ticks), 1e6, 1e3);
  const std::uint64_t before = ticks_now();
  EXPECT_GE(ticks_now(), before);
}

}  // namespace
}  // namespace warpline
