// SPDX-License-Identifier: Apache-2.0
// What the protocol promises about networks. Virtual time: the figures are the same on every machine.
#include <gtest/gtest.h>

#include <array>

#include "sim/bulk_run.h"
#include "sim/chance.h"
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

/// Two hosts whose loops get a tenth of a processor, in slices of a few milliseconds as an operating system deals them
/// out, and whose NICs stamp nothing: each round trip has waits in it that no queue of the network caused.
TEST(Figures, BusyProcessorsDoNotStallLongMessages) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    constexpr std::int64_t kSlice = 4'000'000;
    HostConfig host;
    host.receive_ring = 256;
    host.stamps = false;
    host.burst_time = 20'000;
    BulkRun run({.hosts = 2, .seed = seed}, host, {{.server = 1, .request_bytes = 200'000, .at_once = 1}, {}});
    Random random(seed);
    std::array<std::int64_t, 2> again{};  // when each of the hosts is to lose its processor
    for (std::int64_t now = 0; now < 60'000'000'000; now += 500'000) {
      for (std::uint32_t i = 0; i < 2; ++i) {
        if (now < again[i]) continue;
        const std::int64_t back = now + between(random, 5 * kSlice, 15 * kSlice);
        run.host(i).pause_until(back);
        again[i] = back + between(random, kSlice / 2, kSlice);
      }
      run.run_for(500'000);
    }
    const std::vector<std::int64_t>& latencies = run.application(0).latencies();
    EXPECT_GE(run.application(0).completed(), 150U) << seed;
    EXPECT_LE(quantile(latencies, 1), 5'000'000'000) << seed;
    EXPECT_EQ(run.failed(), 0U) << seed;
  }
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
