// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/cc/timely.h"

#include <gtest/gtest.h>

#include "warpline/message/internal/cc/cc_testing.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kTimelyMtu = 1000;

CcConfig timely_config() {
  CcConfig config;
  config.mtu = kTimelyMtu;
  config.timely = {.min_rate = 15e6, .max_rate = 1000e6, .increment = 5e6, .alpha = 0.5, .beta = 0.25};
  return config;
}

CcSample acked(std::int64_t now_us, std::int64_t rtt_us) { return packet_acked(now_us, rtt_us, kTimelyMtu); }

/// Two samples of 100 us and one that is far too long bring the rate down from the link's to 1000 * (1 - 0.25 * 0.9).
Timely lowered() {
  Timely timely(timely_config());
  timely.on_ack(acked(0, 100));
  timely.on_ack(acked(100, 100));
  timely.on_ack(acked(200, 10'000));
  return timely;
}

TEST(Timely, StartsAtTheRateOfTheLinkUnpaced) {
  Timely timely(timely_config());
  EXPECT_EQ(timely.output().pacing_gap, Nanos{0});
  timely.on_ack(acked(0, 20));
  timely.on_ack(acked(20, 20));
  EXPECT_EQ(timely.output().pacing_gap, Nanos{0});
}

TEST(Timely, AboveTheHighThresholdItFollowsTheExcess) {
  const Timely timely = lowered();
  EXPECT_NEAR(timely.rate(), 775e6, 100);
  EXPECT_NEAR(static_cast<double>(timely.output().pacing_gap.value), 1e9 * kTimelyMtu / 775e6, 1);
}

TEST(Timely, BelowTheLowThresholdItAddsOneIncrementInARoundTrip) {
  Timely timely = lowered();
  timely.on_ack(acked(300, 40));  // a minimum of 40 us from now on; this step still counts by 100 us
  EXPECT_NEAR(timely.rate(), 780e6, 100);
  timely.on_ack(acked(340, 40));
  EXPECT_NEAR(timely.rate(), 785e6, 100);
  timely.on_ack(acked(350, 40));
  EXPECT_NEAR(timely.rate(), 786.25e6, 100) << "a quarter of a round trip";
}

TEST(Timely, BetweenThemItFollowsTheGradient) {
  Timely timely = lowered();
  for (int i = 0; i < 40; ++i) timely.on_ack(acked(200, 200));  // no time passes: the average settles, the rate stays
  EXPECT_NEAR(timely.rate(), 775e6, 100);
  timely.on_ack(acked(300, 220));  // 20 us more, half of it in the average, a minimum of 100 us: a gradient of 0.1
  EXPECT_NEAR(timely.rate(), 775e6 * (1 - 0.25 * 0.1), 2000);
}

TEST(Timely, AfterFiveFallingCompletionsItAddsFiveTimesAsMuch) {
  Timely timely = lowered();
  for (int i = 0; i < 40; ++i) timely.on_ack(acked(200, 200));
  double before = timely.rate();
  for (int i = 1; i <= 4; ++i) {
    timely.on_ack(acked(200 + i * 100, 200 - i));
    EXPECT_NEAR(timely.rate() - before, 5e6, 200);
    before = timely.rate();
  }
  timely.on_ack(acked(700, 195));
  EXPECT_NEAR(timely.rate() - before, 25e6, 200);
}

TEST(Timely, NeverLeavesItsRates) {
  Timely timely(timely_config());
  timely.on_ack(acked(0, 10));
  for (int i = 1; i < 100; ++i) timely.on_ack(acked(i * 10'000, 1'000'000));
  EXPECT_NEAR(timely.rate(), 15e6, 10);
  for (int i = 1; i < 1000; ++i) timely.on_ack(acked(1'000'000 + i * 100, 10));
  EXPECT_NEAR(timely.rate(), 1000e6, 100);
}

}  // namespace
}  // namespace warpline::message
