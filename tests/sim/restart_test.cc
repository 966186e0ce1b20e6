// SPDX-License-Identifier: Apache-2.0
// A process that is killed and started again: its peers find out long before its silence would count, with and without
// protection, and go on with the new one.
#include <gtest/gtest.h>

#include "sim/scenario.h"

namespace warpline::sim {
namespace {

constexpr std::int64_t kPeerTimeout = 16'000'000'000;

class Restart : public testing::TestWithParam<bool> {};

TEST_P(Restart, IsKnownBeforeSilenceCounts) {
  Scenario scenario;
  scenario.seed = 1;
  scenario.authenticated = GetParam();
  scenario.network.hosts = 3;
  HostConfig host;
  host.endpoint.max_sessions = 16;
  host.endpoint.max_messages = 512;
  host.endpoint.max_message_bytes = 1 << 20;
  host.endpoint.receive_bytes = 16 << 20;
  host.endpoint.peer_timeout = Nanos{kPeerTimeout};
  host.endpoint.connect_timeout = Nanos{100'000'000};
  host.endpoint.keepalive = Nanos{50'000'000};
  host.check_allocations = true;
  for (std::uint32_t i = 0; i < scenario.network.hosts; ++i) {
    scenario.hosts.push_back(host);
    RpcPlan plan;
    plan.peers = {(i + 1) % scenario.network.hosts, (i + 2) % scenario.network.hosts};
    plan.messages = 100;
    plan.longest = 60'000;
    plan.longest_taken = host.endpoint.max_message_bytes;
    plan.nested = 0;
    scenario.plans.push_back(plan);
  }
  scenario.mishaps.push_back({.kind = Mishap::Kind::restart, .host = 0, .at = 300'000, .nanos = 1'000'000});
  const Outcome outcome = run(scenario, false);
  for (const std::string& failure : outcome.failures) ADD_FAILURE() << failure;
  EXPECT_EQ(outcome.failure_count, 0U) << outcome.summary;
  EXPECT_LT(outcome.virtual_seconds, static_cast<double>(kPeerTimeout) / 1e9 / 2) << outcome.summary;
  EXPECT_NE(outcome.summary.find("peer_lost"), std::string::npos) << outcome.summary;
}

INSTANTIATE_TEST_SUITE_P(Protection, Restart, testing::Bool(),
                         [](const auto& each) { return each.param ? "Protected" : "Plain"; });

}  // namespace
}  // namespace warpline::sim
