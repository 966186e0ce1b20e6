// SPDX-License-Identifier: Apache-2.0
#include "page/draw/scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "warpline/base/property_testing.h"

namespace warpline::page {
namespace {

TEST(Scale, BeginsAtZeroUnlessValuesAreCloseOrFarApart) {
  EXPECT_EQ(Scale({10, 100}).kind(), Scale::Kind::from_zero);
  EXPECT_EQ(Scale({90, 100}).kind(), Scale::Kind::cut);
  EXPECT_EQ(Scale({1, 100}).kind(), Scale::Kind::logarithmic);
  EXPECT_EQ(Scale({-5, 100}).kind(), Scale::Kind::from_zero);
  EXPECT_DOUBLE_EQ(Scale({10, 100}).place(0), 0);
  EXPECT_GT(Scale({-5, 100}).place(0), 0);
  EXPECT_EQ(Scale({0}).place(0), 0);
}

WARPLINE_PROPERTY(Scale, HoldsItsValuesInTheirOrder, (std::vector<double> values)) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  RC_PRE(!values.empty());
  std::ranges::sort(values);
  const Scale scale(values);
  double last = 0;
  for (const double value : values) {
    const double place = scale.place(value);
    RC_ASSERT(place >= last && place <= 1000);
    last = place;
  }
  const std::vector<double> ticks = scale.ticks();
  RC_ASSERT(ticks.size() <= 8U);
  RC_ASSERT(std::ranges::is_sorted(ticks));
}

}  // namespace
}  // namespace warpline::page
