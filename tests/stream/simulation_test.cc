// SPDX-License-Identifier: Apache-2.0
// StreamSender and StreamReceiver against each other: 720 cells of loss, round trip, ring and fault, everything else
// drawn. Each byte arrives once and in its place, and both ends know of the end.
#include "simulation.h"

#include <gtest/gtest.h>

namespace warpline::stream {
namespace {

enum class Fault : std::uint8_t { none, bursts, reordering, duplicates, corruption };

class StreamCells : public testing::TestWithParam<std::tuple<double, int>> {};

TEST_P(StreamCells, ArriveByteByByte) {
  const auto [loss, round_trip_ms] = GetParam();
  std::uint64_t seed = static_cast<std::uint64_t>(loss * 1e6) * 1000 + static_cast<std::uint64_t>(round_trip_ms);
  for (const std::uint64_t ring : {64U << 10, 1U << 20}) {
    for (const Fault fault : {Fault::none, Fault::bursts, Fault::reordering, Fault::duplicates, Fault::corruption}) {
      for (int repetition = 0; repetition < 3; ++repetition) {
        StreamScenario cell = draw_stream_scenario(seed++);
        cell.breaker = Breaker::nobody;
        cell.ring = ring;
        // Each by the receiver alone, by a lane of bursts, and by one of queues.
        cell.lane = repetition != 0;
        cell.lane_queues = repetition == 2;
        cell.bytes = std::max<std::uint64_t>(cell.bytes, 20'000);
        cell.wire = {.loss = loss,
                     .burst_begin = fault == Fault::bursts ? 0.01 : 0,
                     .reorder = fault == Fault::reordering ? 0.1 : 0,
                     .duplicate = fault == Fault::duplicates ? 0.1 : 0,
                     .corrupt = fault == Fault::corruption ? 0.05 : 0,
                     .delay = round_trip_ms * 500'000LL,
                     .lateness = round_trip_ms * 250'000LL + 100'000,
                     .bytes_per_second = cell.wire.bytes_per_second,
                     .queue = cell.wire.queue};
        if (may_outlast_cookies(cell)) cell.half_open = 64;
        const StreamOutcome outcome = run(cell);
        ASSERT_TRUE(outcome.failures.empty()) << describe(cell) << outcome.failures.front();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Matrix, StreamCells,
                         testing::Combine(testing::Values(0.0, 0.001, 0.01, 0.05, 0.2, 0.5),
                                          testing::Values(0, 1, 30, 300)));

TEST(StreamSimulation, IsAFunctionOfItsScenario) {
  const StreamScenario scenario = draw_stream_scenario(12);
  const StreamOutcome first = run(scenario);
  const StreamOutcome second = run(scenario);
  EXPECT_EQ(first.frames, second.frames);
  EXPECT_EQ(first.seconds, second.seconds);
}

class LaneAcknowledges : public testing::TestWithParam<bool> {};

TEST_P(LaneAcknowledges, AndAllEndsWell) {
  std::uint64_t by_lane = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    StreamScenario scenario = draw_stream_scenario(seed);
    scenario.lane = scenario.lane_acknowledges = true;
    scenario.lane_queues = GetParam();
    const StreamOutcome outcome = run(scenario);
    EXPECT_TRUE(outcome.failures.empty()) << describe(scenario) << outcome.failures.front();
    by_lane += outcome.lane_acknowledgements;
  }
  EXPECT_GT(by_lane, 4000U);
}

INSTANTIATE_TEST_SUITE_P(Lanes, LaneAcknowledges, testing::Bool(),
                         [](const auto& queues) { return queues.param ? "WithQueues" : "OfBursts"; });

/// A scenario by its seed, and the seed of what its wires lose.
struct Silence {
  const char* name;
  std::uint64_t scenario;
  std::uint64_t wires;
};

// A burst of losses lasts a number of frames: where both ends try but once a minute it may be half an hour of silence.
// With 14 retransmissions the receiver gives up in each of these, so they say so if the simulation has that few again.
class StreamSilence : public testing::TestWithParam<Silence> {};

TEST_P(StreamSilence, IsOutlastedByBothEnds) {
  StreamScenario scenario = draw_stream_scenario(GetParam().scenario);
  scenario.seed = GetParam().wires;
  const StreamOutcome outcome = run(scenario);
  EXPECT_TRUE(outcome.failures.empty()) << describe(scenario) << outcome.failures.front();
  EXPECT_GT(outcome.seconds, 20 * 60);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamSilence,
                         testing::Values(Silence{"BehindTheSyn", 3206, 3206}, Silence{"BehindTheFin", 6204, 6204},
                                         Silence{"BehindTheFinThatTheSenderAborts", 8157, 3033}),
                         [](const auto& seed) { return std::string(seed.param.name); });

/// A burst of losses begins right behind the answer of a cookie and lasts 19 minutes.
TEST(StreamSimulation, DrawsNoCookiesWhereSilenceOutlastsThem) {
  const StreamScenario scenario = draw_stream_scenario(39838);
  EXPECT_EQ(scenario.half_open, 64U);
  const StreamOutcome outcome = run(scenario);
  EXPECT_TRUE(outcome.failures.empty()) << describe(scenario) << outcome.failures.front();
}

TEST(StreamSimulation, FillsALongPathWithoutLoss) {
  StreamScenario scenario;
  scenario.bytes = 20'000'000;
  scenario.window = scenario.ring = 4 << 20;
  scenario.wire = {.delay = 10'000'000, .bytes_per_second = 125e6};
  const StreamOutcome outcome = run(scenario);
  ASSERT_TRUE(outcome.failures.empty()) << outcome.failures.front();
  EXPECT_EQ(outcome.retransmitted, 0U);
}

TEST(StreamSimulation, RepairsSparseLossWithoutTimeouts) {
  StreamScenario scenario;
  scenario.bytes = 5'000'000;
  scenario.window = scenario.ring = 1 << 20;
  scenario.wire = {.loss = 0.001, .delay = 1'000'000, .bytes_per_second = 125e6};
  std::uint64_t timeouts = 0;
  std::uint64_t retransmitted = 0;
  for (scenario.seed = 1; scenario.seed <= 10; ++scenario.seed) {
    const StreamOutcome outcome = run(scenario);
    ASSERT_TRUE(outcome.failures.empty()) << outcome.failures.front();
    timeouts += outcome.timeouts;
    retransmitted += outcome.retransmitted;
  }
  EXPECT_GT(retransmitted, 20U);
  EXPECT_LE(timeouts, 1U);  // a SYN or the last FIN may be what is lost
}

}  // namespace
}  // namespace warpline::stream
