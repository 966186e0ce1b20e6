// SPDX-License-Identifier: Apache-2.0
// Many connections at the few places of a receiver, in all paths, and of a sender; setup/simulate_streams runs many
// more seeds.
#include <gtest/gtest.h>

#include <string>

#include "places/places_run.h"
#include "places/sender_run.h"

namespace warpline::stream {
namespace {

constexpr std::uint64_t kSeeds = 60;

class ReceiverPlaces : public testing::TestWithParam<ReceiverPath> {};

TEST_P(ReceiverPlaces, AreUsedAgainAndNothingIsLeftBehind) {
  PlacesOutcome all;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const PlacesOutcome outcome = run_places(seed, GetParam());
    ASSERT_EQ(outcome.failure, "") << "seed " << seed;
    all.opened += outcome.opened;
    all.ended += outcome.ended;
    all.reset += outcome.reset;
    all.aborted += outcome.aborted;
    all.bytes += outcome.bytes;
  }
  // All that a connection can come to happens.
  EXPECT_GT(all.opened, 5 * kSeeds);
  EXPECT_GT(all.ended, kSeeds / 2);
  EXPECT_GT(all.reset, kSeeds);
  EXPECT_GT(all.aborted, kSeeds / 2);
  EXPECT_GT(all.bytes, 1000 * kSeeds);
}

INSTANTIATE_TEST_SUITE_P(Paths, ReceiverPlaces, testing::ValuesIn(kReceiverPaths),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

TEST(SenderPlaces, AreUsedAgainAndNothingIsLeftBehind) {
  SenderOutcome all;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SenderOutcome outcome = run_sender(seed);
    ASSERT_EQ(outcome.failure, "") << "seed " << seed;
    all.started += outcome.started;
    all.finished += outcome.finished;
    all.reset += outcome.reset;
    all.timed_out += outcome.timed_out;
    all.aborted += outcome.aborted;
    all.retransmitted += outcome.retransmitted;
    all.bytes += outcome.bytes;
  }
  EXPECT_GT(all.started, 5 * kSeeds);
  EXPECT_GT(all.finished, kSeeds);
  EXPECT_GT(all.reset, kSeeds / 2);
  EXPECT_GT(all.timed_out, kSeeds / 10);
  EXPECT_GT(all.aborted, kSeeds / 2);
  EXPECT_GT(all.retransmitted, 10 * kSeeds);
  EXPECT_GT(all.bytes, 10'000 * kSeeds);
}

}  // namespace
}  // namespace warpline::stream
