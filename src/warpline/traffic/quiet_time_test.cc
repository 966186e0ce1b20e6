// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/quiet_time.h"

#include <gtest/gtest.h>

namespace warpline::traffic {
namespace {

TEST(QuietTime, AddsUpWhatWasWatched) {
  QuietTime quiet(100, 1000);
  EXPECT_EQ(quiet.look(1040), 40U);
  EXPECT_EQ(quiet.look(1100), 100U);
}

TEST(QuietTime, CountsLittleOfATimeInWhichNobodyLooked) {
  QuietTime quiet(100, 1000);
  EXPECT_EQ(quiet.look(1'000'000), 100U);
  EXPECT_EQ(quiet.look(1'000'010), 110U);
}

TEST(QuietTime, BeginsAnewWhenSomethingHappens) {
  QuietTime quiet(100, 0);
  EXPECT_EQ(quiet.look(90), 90U);
  quiet.restart(95);
  EXPECT_EQ(quiet.look(100), 5U);
}

}  // namespace
}  // namespace warpline::traffic
