// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/statistics/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "warpline/base/property_testing.h"

namespace warpline {
namespace {

TEST(Bootstrap, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median_of({3}), 3);
  EXPECT_EQ(median_of({9, 1, 3}), 3);
  EXPECT_EQ(median_of({9, 1, 3, 5}), 4);
}

TEST(Bootstrap, OneValueLeavesNoDoubt) {
  const Estimate one = estimate(std::vector<double>{7});
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
}

TEST(Bootstrap, MoreValuesNarrowTheInterval) {
  const auto width = [](int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(i * 100.0 / count);
    const Estimate all = estimate(values);
    EXPECT_TRUE(all.low < all.median && all.median < all.high) << count;
    return all.high - all.low;
  };
  EXPECT_LT(width(1000), width(100) / 2);
  EXPECT_LT(width(100), width(10));
}

TEST(Bootstrap, RatiosAreOfTheSameRound) {
  // A machine that grows ten times slower tells nothing of one being a tenth faster.
  const std::vector<double> slow = {10, 20, 50, 100};
  const std::vector<double> fast = {9, 18, 45, 90};
  const Estimate ratio = estimate_ratio(fast, slow);
  EXPECT_DOUBLE_EQ(ratio.median, 0.9);
  EXPECT_NEAR(ratio.high - ratio.low, 0, 1e-12);
  EXPECT_TRUE(estimate(fast).touches(estimate(slow)));
}

WARPLINE_PROPERTY(Bootstrap, TheIntervalHoldsTheMedianAndLiesWithinTheValues, ()) {
  const auto raw = *rc::gen::nonEmpty(rc::gen::arbitrary<std::vector<std::int16_t>>());
  const std::vector<double> values(raw.begin(), raw.end());
  const Estimate all = estimate(values, *rc::gen::arbitrary<std::uint64_t>());
  RC_ASSERT(all.low <= all.median && all.median <= all.high);
  RC_ASSERT(all.low >= *std::ranges::min_element(values) && all.high <= *std::ranges::max_element(values));
  RC_ASSERT(all.touches(all));
}

}  // namespace
}  // namespace warpline
