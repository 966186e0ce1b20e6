// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/cc/swift.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "warpline/message/internal/cc/cc_testing.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kSwiftMtu = 1000;

/// Round numbers: target 50 us without scaling, ten packets to start with, half of the excess taken back.
CcConfig swift_config() {
  CcConfig config;
  config.mtu = kSwiftMtu;
  config.initial_window_bytes = 10 * kSwiftMtu;
  config.swift.base_target = Nanos{50'000};
  config.swift.scaling_range = Nanos{0};
  config.swift.increment_packets = 1;
  config.swift.decrease = 0.5;
  config.swift.max_decrease = 0.5;
  config.swift.tolerated_loss = 0;
  return config;
}

CcSample ack(std::int64_t now_us, std::int64_t rtt_us) { return packet_acked(now_us, rtt_us, kSwiftMtu); }
double packets(const CcOutput& output) { return output.window_bytes / kSwiftMtu; }

/// A controller with a smoothed round trip of 20 us.
Swift started(const CcConfig& config) {
  Swift swift(config);
  CcSample sample = ack(0, 20);
  sample.acked_bytes = 0;
  swift.on_ack(sample);
  return swift;
}

/// A controller at `window` packets, out of slow start, that has just decreased at `now_us`.
Swift settled(const CcConfig& config, double window, std::int64_t now_us) {
  CcConfig wider = config;
  wider.initial_window_bytes = 2 * window * kSwiftMtu;
  Swift swift(wider);
  swift.on_loss(Nanos{now_us * 1000}, false);
  return swift;
}

TEST(Swift, DoublesInARoundTripUntilTheTargetIsReached) {
  Swift swift(swift_config());
  for (int i = 0; i < 10; ++i) swift.on_ack(ack(20, 20));
  EXPECT_NEAR(packets(swift.output()), 20, 1e-4);
  swift.on_ack(ack(60, 50));
  const double after = packets(swift.output());
  swift.on_ack(ack(61, 20));
  EXPECT_NEAR(packets(swift.output()), after + 1 / after, 1e-4);
}

TEST(Swift, AddsOnePacketInARoundTripBelowTheTarget) {
  Swift swift = settled(swift_config(), 10, 0);
  for (int i = 0; i < 10; ++i) swift.on_ack(ack(100 + i, 30));
  EXPECT_NEAR(packets(swift.output()), 11, 0.06);
}

TEST(Swift, TakesBackInProportionToTheExcess) {
  Swift swift = started(swift_config());
  EXPECT_NEAR(packets(swift.on_ack(ack(1000, 100))), 10 * (1 - 0.5 * (100.0 - 50) / 100), 1e-4);
}

TEST(Swift, TakesBackOnceInARoundTrip) {
  Swift swift = started(swift_config());
  const double first = packets(swift.on_ack(ack(1000, 100)));
  EXPECT_EQ(packets(swift.on_ack(ack(1020, 100))), first);
  EXPECT_LT(packets(swift.on_ack(ack(1100, 100))), first);
}

TEST(Swift, NeverTakesBackMoreThanTheMost) {
  CcConfig config = swift_config();
  config.swift.max_decrease = 0.2;
  Swift swift = started(config);
  EXPECT_NEAR(packets(swift.on_ack(ack(1000, 9'000'000))), 8, 1e-4);
}

TEST(Swift, ThePeersDelayIsNotTheFabrics) {
  Swift swift = started(swift_config());
  CcSample sample = ack(1000, 300);
  sample.remote_delay = Nanos{270'000};
  EXPECT_GT(packets(swift.on_ack(sample)), 10);
}

TEST(Swift, ASlowPeerShrinksTheEndpointWindow) {
  Swift swift = started(swift_config());
  CcSample sample = ack(1000, 1030);
  sample.remote_delay = Nanos{1'000'000};
  EXPECT_NEAR(packets(swift.on_ack(sample)), 10 * (1 - 0.5 * (1000.0 - 500) / 1000), 1e-4);
}

TEST(Swift, BelowOnePacketItPaces) {
  Swift swift = started(swift_config());
  for (int i = 1; i <= 5; ++i) swift.on_ack(ack(i * 200, 200));
  const double window = packets(swift.output());
  ASSERT_LT(window, 1);
  // At the target the window stays. Gaps are uniform between none and twice the round trip per window.
  constexpr int kGaps = 4000;
  const double mean = 50'000 / window;
  double sum = 0;
  double squares = 0;
  for (int i = 1; i <= kGaps; ++i) {
    const auto gap = static_cast<double>(swift.on_ack(ack(1000 + i * 1000, 50)).pacing_gap.value) / mean;
    EXPECT_LE(gap, 2);
    sum += gap;
    squares += gap * gap;
  }
  ASSERT_EQ(packets(swift.output()), window);
  EXPECT_NEAR(sum / kGaps, 1, 0.05);
  EXPECT_NEAR(squares / kGaps - 1, 1.0 / 3, 0.05) << "the variance of a uniform distribution over [0, 2]";
  EXPECT_EQ(settled(swift_config(), 2, 0).output().pacing_gap, Nanos{0});
}

TEST(Swift, FlowsWhoseTimesDifferOnceNeverPaceInStepAgain) {
  std::array flows{started(swift_config()), started(swift_config())};
  for (int i = 1; i <= 5; ++i) {
    for (Swift& flow : flows) flow.on_ack(ack(i * 200, &flow == &flows[0] ? 200 : 201));
  }
  int equal = 0;
  for (int i = 1; i <= 100; ++i) {
    const CcSample sample = ack(1000 + i * 1000, 50);
    equal += flows[0].on_ack(sample).pacing_gap == flows[1].on_ack(sample).pacing_gap ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
}

TEST(Swift, TheTargetGrowsAsTheWindowShrinks) {
  CcConfig config = swift_config();
  config.swift.scaling_range = Nanos{100'000};
  config.swift.scaling_min_packets = 0.25;
  config.swift.scaling_max_packets = 100;
  // alpha = 100 us / (1/sqrt(0.25) - 1/sqrt(100)), beta = -alpha / 10: 50 us and alpha/sqrt(w) + beta.
  const double alpha = 100'000 / (2 - 0.1);
  EXPECT_NEAR(static_cast<double>(settled(config, 100, 0).target().value), 50'000, 2);
  EXPECT_NEAR(static_cast<double>(settled(config, 4, 0).target().value), 50'000 + alpha * 0.5 - alpha / 10, 2);
  EXPECT_NEAR(static_cast<double>(settled(config, 1000, 0).target().value), 50'000, 2);
}

TEST(Swift, APathLongerThanTheTargetIsLearned) {
  Swift swift = started(swift_config());
  int samples = 0;
  while (swift.target() < Nanos{200'000}) {
    ASSERT_LT(++samples, 20);
    swift.on_ack(ack(samples * 10'000, 200 + samples % 3));
  }
  EXPECT_NEAR(static_cast<double>(swift.target().value), 225'000, 1'000);
  for (int i = 0; i < 100; ++i) swift.on_ack(ack(1'000'000 + i, 200));
  EXPECT_GT(packets(swift.output()), 50);
}

TEST(Swift, ALongPathWithAQueueOfItsOwnIsLearnedLater) {
  Swift swift = started(swift_config());
  int samples = 0;
  while (swift.target() < Nanos{200'000}) {
    ASSERT_LT(++samples, 40);
    swift.on_ack(ack(samples * 10'000, 200 + samples % 3 * 40));
  }
  EXPECT_GT(samples, 16) << "the queue of many flows may last as long";
  EXPECT_NEAR(static_cast<double>(swift.target().value), 225'000, 1'000);
}

/// As on a processor that many share: round trips between 20 and 100 ms, of which few are as short as the shortest.
TEST(Swift, AfterAPathWasLearnedTheSmallestRateIsTheSame) {
  const CcConfig config = swift_config();
  Swift swift = started(config);
  double slowest = 0;
  for (int i = 1; i < 2000; ++i) {
    const CcOutput output = swift.on_ack(ack(i * 200'000, 20'000 + i * 7919 % 80'000));
    const double round_trip = std::max(static_cast<double>(swift.target().value), 1.0);
    slowest = std::max(slowest, round_trip / packets(output));
  }
  EXPECT_GT(swift.target(), Nanos{20'000'000});
  EXPECT_LE(slowest, 1.01 * 50'000 / config.swift.min_window_packets);
  for (int i = 0; i < 20; ++i) swift.on_loss(Nanos{(3'000 + i) * 1'000'000'000LL}, true);
  EXPECT_NEAR(packets(swift.output()), 1, 1e-4) << "losses take it to a packet in a round trip";
}

TEST(Swift, AQueueThatComesAndGoesIsNoLongPath) {
  Swift swift = started(swift_config());
  for (int i = 1; i < 1000; ++i) swift.on_ack(ack(i * 10'000, i % 5 == 0 ? 40 : 200));
  EXPECT_EQ(swift.target(), Nanos{50'000});
}

TEST(Swift, ALossHalvesOnceInARoundTrip) {
  Swift swift(swift_config());
  swift.on_ack(ack(1000, 40));
  const double before = packets(swift.output());
  EXPECT_NEAR(packets(swift.on_loss(Nanos{1'001'000}, false)), before / 2, 1e-4);
  EXPECT_NEAR(packets(swift.on_loss(Nanos{1'002'000}, false)), before / 2, 1e-4);
  EXPECT_NEAR(packets(swift.on_loss(Nanos{1'041'000}, false)), before / 4, 1e-4);
}

TEST(Swift, RareLossesAreLeftToTheDelay) {
  CcConfig config = swift_config();
  config.swift.tolerated_loss = 0.03;
  Swift swift(config);
  for (int i = 0; i < 1000; ++i) swift.on_ack(ack(i, 40));
  const double before = packets(swift.output());
  for (int i = 0; i < 7; ++i) EXPECT_EQ(packets(swift.on_loss(Nanos{1'001'000 + i}, false)), before);
  for (int i = 0; i < 7; ++i) swift.on_loss(Nanos{1'002'000 + i}, false);
  EXPECT_NEAR(packets(swift.output()), before / 2, 1e-3) << "fourteen of the last 256";
}

TEST(Swift, AfterFiveTimeoutsInARowItStartsFromTheSmallestWindow) {
  Swift swift(swift_config());
  for (int i = 1; i <= 4; ++i) swift.on_loss(Nanos{i * 1'000'000}, true);
  EXPECT_NEAR(packets(swift.output()), 10.0 / 16, 1e-4);
  EXPECT_NEAR(packets(swift.on_loss(Nanos{5'000'000}, true)), 0.02, 1e-6);
  for (int i = 0; i < 3; ++i) swift.on_ack(ack(6000 + i, 40));
  EXPECT_GT(packets(swift.output()), 1) << "acknowledgements bring it back at once";
}

TEST(Swift, WhatWasLearnedOfAPathThatIsGoneIsForgotten) {
  Swift swift = started(swift_config());
  for (int i = 1; i < 20; ++i) swift.on_ack(ack(i * 10'000, 200));
  ASSERT_GT(swift.target(), Nanos{200'000});
  for (int i = 0; i < 512; ++i) swift.on_ack(ack(1'000'000 + i, 20));
  EXPECT_EQ(swift.target(), Nanos{50'000});
}

TEST(Swift, LossesThatWereLateAreUndone) {
  Swift swift = settled(swift_config(), 10, 0);
  for (int i = 0; i < 10; ++i) swift.on_ack(ack(100 + i, 30));
  const double before = packets(swift.output());
  swift.remember();
  for (int i = 1; i < 4; ++i) swift.on_loss(Nanos{i * 1'000'000}, false);
  ASSERT_LT(packets(swift.output()), before / 7);
  EXPECT_NEAR(packets(swift.restore()), before, 1e-4);
}

TEST(Swift, AfterAWhileWithoutPacketsItBeginsAsAtFirst) {
  Swift swift(swift_config());
  for (int i = 0; i < 40; ++i) swift.on_ack(ack(20, 20));
  ASSERT_GT(packets(swift.output()), 40);
  EXPECT_NEAR(packets(swift.on_idle(10 * kSwiftMtu)), 10, 1e-4);
  swift.on_ack(ack(30'000, 20));
  EXPECT_NEAR(packets(swift.output()), 11, 1e-4) << "it doubles again";
}

TEST(Swift, AnUnusedWindowDoesNotGrow) {
  Swift swift(swift_config());
  CcSample sample = ack(100, 20);
  sample.in_flight_bytes = 3 * kSwiftMtu;
  EXPECT_NEAR(packets(swift.on_ack(sample)), 10, 1e-6);
}

TEST(Swift, AClockThatStepsBackDoesNotStopIt) {
  Swift swift = started(swift_config());
  const double first = packets(swift.on_ack(ack(1'000'000, 100)));
  EXPECT_LT(packets(swift.on_ack(ack(10, 100))), first);
}

}  // namespace
}  // namespace warpline::message
