// SPDX-License-Identifier: Apache-2.0
#include "vnic/sources/schedule.h"

#include <gtest/gtest.h>

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kSlotBurst = 64;

TEST(Schedule, BringsWhatHasArrivedAndNoMore) {
  Schedule schedule;
  schedule.start(SupplyRate(1e6));  // one a microsecond
  ASSERT_FALSE(schedule.endless());
  EXPECT_EQ(schedule.arrived(kSlotBurst, 5000), 0U);
  EXPECT_EQ(schedule.arrived(kSlotBurst, 5999), 0U);
  EXPECT_EQ(schedule.arrived(kSlotBurst, 8000), 3U);
  schedule.take(2);
  EXPECT_EQ(schedule.arrived(kSlotBurst, 8000), 1U);
  EXPECT_EQ(schedule.arrived(kSlotBurst, 8000 + 100'000), kSlotBurst);
}

TEST(Schedule, AskedTooRarelyMissesWhatIsTooLate) {
  Schedule schedule;
  schedule.start(SupplyRate(1e9));
  ASSERT_EQ(schedule.arrived(kSlotBurst, 0), 0U);
  ASSERT_EQ(schedule.arrived(kSlotBurst, 1'000'000), kSlotBurst);
  std::uint64_t taken = 0;
  while (const std::uint32_t frames = schedule.arrived(kSlotBurst, 1'000'000)) {
    schedule.take(frames);
    taken += frames;
  }
  EXPECT_EQ(taken, Schedule::kMaxBacklog);
  EXPECT_EQ(taken + schedule.take_missed(), 1'000'000U);
  EXPECT_EQ(schedule.take_missed(), 0U);
}

TEST(Schedule, StepsToAnotherRate) {
  Schedule schedule;
  schedule.start(SupplyRate(1e6, 10, 20'000));  // one a microsecond, ten from the twentieth on
  ASSERT_EQ(schedule.arrived(kSlotBurst, 1'000'000), 0U);
  EXPECT_EQ(schedule.arrived(kSlotBurst, 1'010'500), 10U);
  EXPECT_EQ(schedule.arrived(kSlotBurst, 1'020'050), 20U);
  EXPECT_EQ(schedule.arrived(kSlotBurst, 1'022'050), 40U);
  for (const double frames : {0.0, 7.0, 20.0, 21.0, 5000.0}) {
    const SupplyRate rate(1e6, 0.25, 20'000);
    EXPECT_NEAR(rate.frames_by(rate.nanos_of(frames)), frames, 1e-6);
  }
}

TEST(Schedule, KeepsItsRateOverADay) {
  Schedule schedule;
  schedule.start(SupplyRate(148.8e6));
  ASSERT_EQ(schedule.arrived(kSlotBurst, 0), 0U);
  constexpr std::uint64_t kDay = 86'400ULL * 1'000'000'000;
  ASSERT_EQ(schedule.arrived(kSlotBurst, kDay), kSlotBurst);
  schedule.take(static_cast<std::uint32_t>(Schedule::kMaxBacklog));
  EXPECT_EQ(schedule.arrived(kSlotBurst, kDay), 0U);
  EXPECT_NEAR(schedule.arrived(kSlotBurst, kDay + 100), 15, 1);
}

TEST(Schedule, WithoutARateIsEndless) {
  Schedule schedule;
  EXPECT_TRUE(schedule.endless());
  schedule.start(SupplyRate(0));
  EXPECT_TRUE(schedule.endless());
}

}  // namespace
}  // namespace warpline::vnic
