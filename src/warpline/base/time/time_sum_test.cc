// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/time/time_sum.h"

#include <gtest/gtest.h>

#include <limits>

namespace warpline {
namespace {

TEST(TimeSum, StaysWithinTheType) {
  constexpr Nanos kNever{std::numeric_limits<std::int64_t>::max()};
  constexpr Nanos kFirst{std::numeric_limits<std::int64_t>::min()};
  static_assert(time_sum({2}, {3}) == Nanos{5});
  EXPECT_EQ(time_sum({5}, {-7}), Nanos{-2});
  EXPECT_EQ(time_sum({0}, kNever), kNever);
  EXPECT_EQ(time_sum({1}, kNever), kNever);
  EXPECT_EQ(time_sum(kNever, kNever), kNever);
  EXPECT_EQ(time_sum({kNever.value - 3}, {3}), kNever);
  EXPECT_EQ(time_sum({kNever.value - 3}, {4}), kNever);
  EXPECT_EQ(time_sum({-1}, kNever), kNever);
  EXPECT_EQ(time_sum({-2}, kFirst), kFirst);
  EXPECT_EQ(time_sum(kNever, kFirst), Nanos{-1});
}

}  // namespace
}  // namespace warpline
