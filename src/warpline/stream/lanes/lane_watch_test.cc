// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/lanes/lane_watch.h"

#include <gtest/gtest.h>

#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream {
namespace {

using testing::milliseconds;

/// Looks at every 100 ms after `from`, up to `to`. Returns when the lane was found to hang, 0 if it was not.
std::int64_t first_hang(LaneWatch& watch, std::uint64_t oldest, std::int64_t from, std::int64_t to) {
  for (std::int64_t ms = from; ms <= to; ms += 100) {
    if (watch.hangs(oldest, milliseconds(ms))) return ms;
  }
  return 0;
}

TEST(LaneWatch, FindsALaneThatTakesNothingForAsLongAsThePatience) {
  LaneWatch watch(milliseconds(4000));
  EXPECT_EQ(first_hang(watch, 7, 1000, 20'000), 5000);
}

TEST(LaneWatch, LeavesALaneAloneThatHasNothingToDo) {
  LaneWatch watch(milliseconds(4000));
  EXPECT_EQ(first_hang(watch, 0, 0, 20'000), 0);
  EXPECT_EQ(first_hang(watch, 1, 20'100, 60'000), 24'100);
}

TEST(LaneWatch, LeavesALaneAloneThatIsLateAgainAndAgain) {
  LaneWatch watch(milliseconds(4000));
  for (std::int64_t burst = 1; burst < 20; ++burst) {
    EXPECT_EQ(first_hang(watch, static_cast<std::uint64_t>(burst), burst * 4000, burst * 4000 + 3900), 0);
  }
}

TEST(LaneWatch, DoesNotCountTimeInWhichNobodyLooked) {
  LaneWatch watch(milliseconds(4000));
  EXPECT_FALSE(watch.hangs(3, milliseconds(100)));
  EXPECT_FALSE(watch.hangs(3, milliseconds(60'000)));  // the process was stopped for a minute
  EXPECT_EQ(first_hang(watch, 3, 60'100, 70'000), 63'500);
}

TEST(LaneWatch, EndsAlsoWhereItLooksSeldom) {
  LaneWatch watch(Nanos{1'000'001});
  int looks = 1;
  while (!watch.hangs(1, milliseconds(10 * looks)) && looks < 100) ++looks;
  EXPECT_EQ(looks, 9);
}

}  // namespace
}  // namespace warpline::stream
