// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/statistics/turn_count.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

TEST(TurnWatch, WaitsForTheLastOfThem) {
  TurnCount quick;
  TurnCount slow;
  quick.add();
  slow.add();
  TurnWatch watch({&quick, &slow});
  EXPECT_FALSE(watch.all_had_one());
  for (int i = 0; i < 1000; ++i) quick.add();
  EXPECT_FALSE(watch.all_had_one());
  slow.add();
  EXPECT_TRUE(watch.all_had_one());
  EXPECT_FALSE(watch.all_had_one());
}

TEST(TurnWatch, DoesNotWaitForWhoPollsNotYetOrNoMore) {
  TurnCount thread;
  TurnWatch watch({&thread});
  EXPECT_TRUE(watch.all_had_one());
  EXPECT_TRUE(watch.all_had_one());
  thread.begin();
  EXPECT_TRUE(watch.all_had_one());
  EXPECT_FALSE(watch.all_had_one());
  thread.end();
  EXPECT_TRUE(watch.all_had_one());
  EXPECT_TRUE(watch.all_had_one());
}

TEST(TurnWatch, WaitsForTheFirstTurnOfWhoIsStarted) {
  TurnCount thread;
  thread.begin();
  TurnWatch watch({&thread});
  EXPECT_FALSE(watch.all_had_one());
  thread.add();
  EXPECT_TRUE(watch.all_had_one());
}

TEST(TurnWatch, OfNobodyIsAlwaysTrue) {
  TurnWatch watch({});
  EXPECT_TRUE(watch.all_had_one());
}

}  // namespace
}  // namespace warpline
