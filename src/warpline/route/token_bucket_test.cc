// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/token_bucket.h"

#include <gtest/gtest.h>

namespace warpline::route {
namespace {

TEST(TokenBucket, LetsABurstPassAndThenOneAnInterval) {
  TokenBucket bucket(3, Nanos{10});
  int passed = 0;
  for (int i = 0; i < 5; ++i) passed += bucket.take(Nanos{1000}) ? 1 : 0;
  EXPECT_EQ(passed, 3);
  EXPECT_FALSE(bucket.take(Nanos{1009}));
  EXPECT_FALSE(bucket.has(Nanos{1009}));
  EXPECT_TRUE(bucket.has(Nanos{1010}));
  EXPECT_TRUE(bucket.take(Nanos{1010}));
  EXPECT_FALSE(bucket.take(Nanos{1019}));
  passed = 0;
  for (int i = 0; i < 9; ++i) passed += bucket.take(Nanos{9999}) ? 1 : 0;
  EXPECT_EQ(passed, 3) << "no more than a burst is saved";
}

}  // namespace
}  // namespace warpline::route
