// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/statistics/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline {
namespace {

TEST(Histogram, IsEmptyAtFirst) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.quantile(0.5), 0U);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::uint64_t value = 0; value < 128; ++value) histogram.record(value);
  for (std::uint64_t value = 0; value < 128; ++value) {
    EXPECT_EQ(histogram.quantile(static_cast<double>(value + 1) / 128), value);
  }
}

TEST(Histogram, SeesOneInAHundredThousand) {
  Histogram histogram;
  histogram.record(10, 99'999);
  histogram.record(1'000'000);
  EXPECT_EQ(histogram.quantile(0.9999), 10U);
  EXPECT_EQ(histogram.quantile(0.99999), 10U);
  EXPECT_EQ(histogram.quantile(1.0), 1'000'000U);
  EXPECT_EQ(histogram.max(), 1'000'000U);
}

TEST(Histogram, HugeValuesShareTheLastBucketAndKeepTheMaximum) {
  Histogram histogram;
  histogram.record(~std::uint64_t{0});
  EXPECT_EQ(histogram.quantile(0.5), ~std::uint64_t{0});
}

WARPLINE_PROPERTY(HistogramProperty, QuantileIsWithinOneBucketOfTheSortedValue, (std::vector<std::uint32_t> values)) {
  RC_PRE(!values.empty());
  Histogram histogram;
  for (const std::uint32_t value : values) histogram.record(value);
  std::ranges::sort(values);
  for (const double fraction : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank =
        std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size()))));
    const std::uint64_t exact = values[rank - 1];
    const std::uint64_t seen = histogram.quantile(fraction);
    RC_ASSERT(seen >= exact);
    RC_ASSERT(seen <= exact + exact / 64);
  }
}

WARPLINE_PROPERTY(HistogramProperty, MergeEqualsRecordingAll,
                  (const std::vector<std::uint64_t>& left, const std::vector<std::uint64_t>& right)) {
  Histogram one;
  Histogram two;
  Histogram all;
  for (const std::uint64_t value : left) one.record(value), all.record(value);
  for (const std::uint64_t value : right) two.record(value), all.record(value);
  one.merge(two);
  RC_ASSERT(one.count() == all.count());
  RC_ASSERT(one.max() == all.max());
  for (const double fraction : {0.25, 0.5, 0.75, 1.0}) RC_ASSERT(one.quantile(fraction) == all.quantile(fraction));
}

}  // namespace
}  // namespace warpline
