// SPDX-License-Identifier: Apache-2.0
// What the protocol promises about networks. Virtual time: the figures are the same on every machine.
#include <gtest/gtest.h>

#include "sim/reports.h"

namespace warpline::sim {
namespace {

constexpr std::int64_t kLong = 100'000'000;  // virtual nanoseconds

TEST(Figures, AHundredSendersShareOneLink) {
  const message::EndpointConfig config;
  const IncastFigures figures = incast(config, {.at_once = 4});
  EXPECT_GE(figures.link_share, 0.95);
  EXPECT_GE(figures.jain, 0.95);
  EXPECT_LE(figures.p99_wait_us, 2 * static_cast<double>(config.cc.swift.base_target.value) / 1e3);
  EXPECT_EQ(figures.dropped, 0U);
  EXPECT_EQ(figures.failed, 0U);
}

/// Without any congestion control at the senders, and with a queue that they would overflow.
TEST(Figures, GrantsKeepTheQueueShort) {
  message::EndpointConfig config;
  config.cc.kind = message::CcKind::none;
  for (const bool answers : {false, true}) {
    const IncastPlan plan{.answers = answers, .queue_bytes = 500'000};
    config.grants = 64 << 10;
    const IncastFigures granted = incast(config, plan);
    EXPECT_GE(granted.link_share, 0.95);
    EXPECT_GE(granted.jain, 0.95);
    EXPECT_LE(granted.p99_wait_us, 0.5 * static_cast<double>(config.cc.swift.base_target.value) / 1e3);
    EXPECT_EQ(granted.dropped, 0U);
    EXPECT_EQ(granted.failed, 0U);
    config.grants = 0;
    const IncastFigures without = incast(config, plan);
    EXPECT_GT(without.dropped, 1000U);
    EXPECT_LE(3 * granted.p99_us, without.p99_us);
  }
}

/// Through a switch that holds three times what the path does. Each by itself begins as if it were alone.
TEST(Figures, SessionsBetweenTwoHostsBeginAsOne) {
  message::EndpointConfig config;
  for (const std::uint32_t sessions : {16U, 64U}) {
    config.shares_paths = true;
    const SharingFigures shared = sharing(config, sessions, false);
    config.shares_paths = false;
    const SharingFigures apart = sharing(config, sessions, false);
    EXPECT_LE(10 * shared.dropped, apart.dropped) << sessions;
    EXPECT_LE(shared.fair_after_us, apart.fair_after_us) << sessions;
    EXPECT_GE(shared.link_share, 0.95) << sessions;
    EXPECT_GE(shared.jain, 0.95) << sessions;
    EXPECT_EQ(shared.failed, 0U) << sessions;
  }
}

TEST(Figures, LossesCostLittle) {
  const message::EndpointConfig config;
  const double lossless = goodput_at_loss(config, 0, kLong);
  EXPECT_GE(goodput_at_loss(config, 1e-4, kLong), 0.98 * lossless);
  const double one_in_a_thousand = goodput_at_loss(config, 1e-3, kLong);
  EXPECT_GE(one_in_a_thousand, 0.90 * lossless);
  EXPECT_GE(goodput_at_loss(config, 1e-2, kLong), 0.60 * lossless);
  EXPECT_GE(one_in_a_thousand, 10 * goodput_at_loss(compatibility_mode(), 1e-3, kLong));
}

class OneLoss : public testing::TestWithParam<std::pair<std::uint32_t, std::uint32_t>> {};

TEST_P(OneLoss, AddsLittleToTheTail) {
  const OneLossFigures figures = one_loss({}, GetParam().first, GetParam().second);
  EXPECT_LE(figures.p99_us - figures.lossless_p99_us, 3 * figures.rtt_us + 50);
  EXPECT_EQ(figures.failed, 0U);
}

INSTANTIATE_TEST_SUITE_P(RequestAndAnswer, OneLoss,
                         testing::Values(std::pair{32U, 32U}, std::pair{16384U, 32U}, std::pair{32U, 16384U},
                                         std::pair{65536U, 65536U}));

}  // namespace
}  // namespace warpline::sim
