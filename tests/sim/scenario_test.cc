// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace warpline::sim {
namespace {

TEST(Scenario, ASeedIsARun) {
  for (const std::uint64_t seed : {3U, 4U, 5U}) {
    const Outcome first = run(draw_scenario(seed), false);
    const Outcome second = run(draw_scenario(seed), false);
    EXPECT_EQ(first.summary, second.summary);
    EXPECT_EQ(first.virtual_seconds, second.virtual_seconds);
  }
}

TEST(Scenario, SeedsDiffer) {
  std::set<std::string> descriptions;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::string text = describe(draw_scenario(seed));
    descriptions.insert(text.substr(text.find(':')));
  }
  EXPECT_EQ(descriptions.size(), 100U);
}

/// Each found something: two ends that wait for each other, go-back-n slower than its path, refusals that looked like
/// success, places for sent packets that never became free.
TEST(Scenario, SeedsThatFailedOnceDoNot) {
  for (const std::uint64_t seed :
       {337, 529, 933, 1044, 2110, 2958, 3572, 3586, 3759, 4279, 4561, 4712, 4906, 5353, 6326, 6545, 7179}) {
    Scenario scenario = draw_scenario(seed);
    for (HostConfig& host : scenario.hosts) host.endpoint.grants = 0;  // as then
    const Outcome outcome = run(scenario, false);
    EXPECT_EQ(outcome.failure_count, 0U) << "seed " << seed << ": " << outcome.summary;
  }
}

/// As above, with grants: hosts that are away again and again, to which few packets were sent within the timeout
/// (11410) or which lost most of them (11818), a fifth of all packets lost (12027), somebody who says of each packet of
/// both ends that it did not arrive (1529, 1861), a clock that is set while packets are in flight (3545), a server that
/// drains while the answer of a stream overtakes its pieces (12242), and packets that were counted once more because
/// they could not be answered (12452).
TEST(Scenario, SeedsWithGrantsThatFailedOnceDoNot) {
  for (const std::uint64_t seed : {1529, 1861, 3545, 11410, 11818, 12027, 12242, 12452}) {
    const Outcome outcome = run(draw_scenario(seed), false);
    EXPECT_EQ(outcome.failure_count, 0U) << "seed " << seed << ": " << outcome.summary;
  }
}

/// All that a scenario may have is among the first five hundred.
TEST(Scenario, SeedsCoverWhatThereIs) {
  std::set<Mishap::Kind> mishaps;
  std::set<message::CcKind> controllers;
  std::set<message::Reliability> ways;
  std::uint64_t authenticated = 0;
  std::uint64_t granting = 0;
  std::uint64_t in_pieces = 0;
  std::uint64_t drained_in_time = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    for (const Mishap& mishap : scenario.mishaps) mishaps.insert(mishap.kind);
    controllers.insert(scenario.hosts[0].endpoint.cc.kind);
    ways.insert(scenario.hosts[0].endpoint.reliability);
    authenticated += scenario.authenticated ? 1 : 0;
    in_pieces += scenario.hosts[0].endpoint.streams ? 1 : 0;
    const auto drains = [](const Mishap& mishap) { return mishap.kind == Mishap::Kind::drain; };
    drained_in_time += scenario.drains_in_time() && std::ranges::any_of(scenario.mishaps, drains) ? 1 : 0;
    granting += scenario.hosts[0].endpoint.grants != 0 ? 1 : 0;
  }
  EXPECT_EQ(mishaps.size(), 6U);
  EXPECT_EQ(controllers.size(), 4U);
  EXPECT_EQ(ways.size(), 2U);
  EXPECT_GT(authenticated, 50U);
  EXPECT_GT(granting, 50U);
  EXPECT_GT(in_pieces, 100U);
  EXPECT_GT(drained_in_time, 10U);
}

}  // namespace
}  // namespace warpline::sim
