// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>

namespace warpline::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunTotals totals_at(std::uint64_t packets) {
  RunTotals totals;
  totals.rx = totals.tx = {packets, 64 * packets};
  totals.drops[static_cast<std::size_t>(Verdict::runt)] = packets / 10;
  totals.latency = LatencyTotals{packets, 5000, 0, 9000, 0, 0, 0};
  totals.stages = {{"work", packets / 10, packets, 20 * packets, packets}};
  return totals;
}

TEST(LiveInterval, IsTheDifferenceOfTwoSamples) {
  const LiveInterval interval({1.0, totals_at(1000), {1000, 64000}}, {1.5, totals_at(3000), {3000, 192'000}});
  const auto json = nlohmann::json::parse(interval.json());
  EXPECT_EQ(json["time_s"], 1.5);
  EXPECT_EQ(json["interval_s"], 0.5);
  EXPECT_EQ(json["through"]["packets"], 2000);
  EXPECT_DOUBLE_EQ(json["rate"]["mpps"], 0.004);
  EXPECT_EQ(json["rx"]["bytes"], 128'000);
  EXPECT_EQ(json["drops"]["runt"], 200);
  EXPECT_EQ(json["latency_ns"]["p50"], 5000);
  EXPECT_EQ(json["stages"][0]["packets"], 2000);
  EXPECT_EQ(json["stages"][0]["batch_mean"], 10);
  EXPECT_EQ(json["stages"][0]["cycles_per_packet"], 20);
  EXPECT_FALSE(json.contains("generated"));
  const std::string row = interval.row();
  EXPECT_THAT(row, HasSubstr("2000"));
  EXPECT_THAT(row, HasSubstr("runt 200"));
  EXPECT_THAT(row, Not(HasSubstr("\n")));
}

/// A run of `turns` looks of the control loop, `packets` more at each but the first `idle`, `most` in all.
struct FakeRun {
  int turns;
  std::uint64_t packets;
  int idle = 0;
  std::uint64_t most = UINT64_MAX;
  int looks = 0;
  int stops = 0;

  LiveHooks hooks() {
    return {.started_s = monotonic_seconds(),
            .sample = [this] { return totals_at(through().packets); },
            .progress = [this] { return through(); },
            .done = [this] { return looks++ >= turns || (stops > 0); },
            .stop = [this] { ++stops; }};
  }
  [[nodiscard]] Tally through() const {
    const std::uint64_t count = std::min(most, static_cast<std::uint64_t>(std::max(looks - idle, 0)) * packets);
    return {count, 64 * count};
  }
};

class LiveRun : public testing::Test {
 protected:
  LiveResult run(const RunSettings& settings, FakeRun& fake) {
    return run_live(settings, fake.hooks(), stop_, out_.get(), err_.get());
  }

  static std::string text_of(std::FILE* file) {
    std::string text;
    EXPECT_EQ(std::fseek(file, 0, SEEK_SET), 0);
    for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
    return text;
  }

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> out_{std::tmpfile()};
  std::unique_ptr<std::FILE, Close> err_{std::tmpfile()};
  std::atomic<bool> stop_{false};
};

TEST_F(LiveRun, EndsWithTheWorkersAndHasPrintedALine) {
  FakeRun fake{3, 100};
  const LiveResult result = run({}, fake);
  EXPECT_EQ(result.rate.tally.packets, 400U);
  EXPECT_GT(result.rate.seconds, 0);
  EXPECT_GE(result.duration_s, result.rate.seconds);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(fake.stops, 0);
  EXPECT_THAT(text_of(err_.get()), HasSubstr("Mpps"));
  EXPECT_THAT(text_of(err_.get()), HasSubstr("400"));
  EXPECT_EQ(text_of(out_.get()), "");
}

TEST_F(LiveRun, TakesAnIntervalThatChanges) {
  FakeRun fake{.turns = INT_MAX, .packets = 1};
  RunSettings settings;
  settings.interval = Nanos{3'600'000'000'000};
  LiveHooks hooks = fake.hooks();
  int lines = 0;
  hooks.sample = [&] {
    if (++lines == 1) settings.interval = Nanos{1'000'000};
    if (lines == 3) fake.stops = 1;
    return totals_at(1);
  };
  EXPECT_FALSE(run_live(settings, hooks, stop_, out_.get(), err_.get()).interrupted);
  EXPECT_GE(lines, 3);
}

TEST_F(LiveRun, LeavesTheWarmUpOutOfTheRate) {
  FakeRun fake{9, 100};
  RunSettings settings;
  settings.warmup = 250;  // seen at 300
  EXPECT_EQ(run(settings, fake).rate.tally.packets, 700U);
}

TEST_F(LiveRun, LeavesIdleTimeBeforeAndBehindOutOfTheRate) {
  constexpr double kHourSeconds = 3600;
  FakeRun fake{.turns = 9, .packets = 100, .idle = 3, .most = 400};
  LiveHooks hooks = fake.hooks();
  hooks.started_s -= kHourSeconds;  // nothing went through since then
  const LiveResult result = run_live({}, hooks, stop_, out_.get(), err_.get());
  EXPECT_GE(result.duration_s, kHourSeconds);
  EXPECT_EQ(result.rate.tally, (Tally{400, 25'600}));
  EXPECT_GT(result.rate.seconds, 0);
  EXPECT_LT(result.rate.seconds, kHourSeconds / 2);
}

TEST_F(LiveRun, OnePacketHasNoRate) {
  FakeRun fake{.turns = 9, .packets = 1, .idle = 2, .most = 1};
  const LiveResult result = run({}, fake);
  EXPECT_EQ(result.rate.tally.packets, 1U);
  EXPECT_EQ(result.rate.mpps(), 0);
  EXPECT_EQ(result.rate.gbps_l1(), 0);
}

TEST_F(LiveRun, NothingHasNoRate) {
  FakeRun fake{.turns = 3, .packets = 0};
  const LiveResult result = run({}, fake);
  EXPECT_EQ(result.rate.tally.packets, 0U);
  EXPECT_EQ(result.rate.mpps(), 0);
}

TEST_F(LiveRun, StreamsJsonLinesThatAddUp) {
  FakeRun fake{4, 10};
  RunSettings settings;
  settings.json_stream = true;
  settings.interval = Nanos{1};
  (void)run(settings, fake);
  std::istringstream lines(text_of(out_.get()));
  std::uint64_t sum = 0;
  for (std::string line; std::getline(lines, line);) {
    sum += nlohmann::json::parse(line)["through"]["packets"].get<std::uint64_t>();
  }
  EXPECT_EQ(sum, 50U);
  EXPECT_EQ(text_of(err_.get()), "");
}

TEST_F(LiveRun, StopsOnRequest) {
  FakeRun fake{1000, 1};
  stop_ = true;
  EXPECT_TRUE(run({}, fake).interrupted);
  EXPECT_EQ(fake.stops, 1);
}

TEST_F(LiveRun, ASignalBeforeTheStartInterrupts) {
  FakeRun fake{0, 1};
  stop_ = true;
  EXPECT_TRUE(run({}, fake).interrupted);
}

TEST_F(LiveRun, StopsWhenItsTimeIsOver) {
  FakeRun fake{1'000'000'000, 1};
  RunSettings settings;
  settings.seconds = Nanos{1};
  EXPECT_FALSE(run(settings, fake).interrupted);
  EXPECT_EQ(fake.stops, 1);
}

}  // namespace
}  // namespace warpline::report
