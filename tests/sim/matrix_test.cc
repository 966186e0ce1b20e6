// SPDX-License-Identifier: Apache-2.0
// Each combination of what a network does to packets, for each way of repeating and of controlling: every payload
// arrives as it was sent, every handler runs once, every request ends once.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "sim/scenario.h"

namespace warpline::sim {
namespace {

struct Way {
  const char* name;
  message::Reliability reliability;
  message::CcKind cc;
  bool authenticated;
  std::uint32_t grants = 0;
};

constexpr Way kWays[] = {
    {"Swift", message::Reliability::selective, message::CcKind::swift, false},
    {"SwiftAuthenticated", message::Reliability::selective, message::CcKind::swift, true},
    {"SwiftGrants", message::Reliability::selective, message::CcKind::swift, false, 16 << 10},
    {"Dctcp", message::Reliability::selective, message::CcKind::dctcp, false},
    {"TimelyGoBackN", message::Reliability::go_back_n, message::CcKind::timely, false},
};

class Matrix : public testing::TestWithParam<std::tuple<Way, double, double, double, double>> {};

TEST_P(Matrix, EveryRequestEndsOnceWithTheRightBytes) {
  const auto& [way, loss, duplicate, reorder, corrupt] = GetParam();
  Scenario scenario;
  scenario.seed = 1;
  scenario.authenticated = way.authenticated;
  scenario.network.hosts = 3;
  scenario.network.seed = 2;
  scenario.network.downlink.mark_above_bytes = 64 << 10;
  scenario.network.faults = {
      .loss = loss, .duplicate = duplicate, .corrupt = corrupt, .reorder = reorder, .reorder_by = 40'000};
  HostConfig host;
  host.endpoint.max_sessions = 16;
  host.endpoint.max_messages = 512;
  host.endpoint.max_sent_packets = 4096;
  host.endpoint.receive_bytes = 16 << 20;
  host.endpoint.max_message_bytes = 1 << 20;
  host.endpoint.reliability = way.reliability;
  host.endpoint.cc.kind = way.cc;
  host.endpoint.grants = way.grants;
  host.check_allocations = true;
  host.damaged_packets_pass = way.authenticated;
  for (std::uint32_t i = 0; i < scenario.network.hosts; ++i) {
    scenario.hosts.push_back(host);
    RpcPlan plan;
    plan.peers = {(i + 1) % scenario.network.hosts};
    plan.messages = 60;
    plan.longest = 60'000;
    plan.longest_taken = host.endpoint.max_message_bytes;
    scenario.plans.push_back(plan);
  }
  const Outcome outcome = run(scenario, false);
  for (const std::string& failure : outcome.failures) ADD_FAILURE() << failure;
  EXPECT_EQ(outcome.failure_count, 0U) << outcome.summary;
}

std::string name_of(const testing::TestParamInfo<Matrix::ParamType>& info) {
  const auto& [way, loss, duplicate, reorder, corrupt] = info.param;
  const auto part = [](const char* what, double p) { return p > 0 ? std::string(what) : std::string(); };
  const std::string name = way.name + part("Loss", loss) + part("Duplicate", duplicate) + part("Reorder", reorder) +
                           part("Corrupt", corrupt);
  return loss + duplicate + reorder + corrupt > 0 ? name : name + "Clean";
}

INSTANTIATE_TEST_SUITE_P(Faults, Matrix,
                         testing::Combine(testing::ValuesIn(kWays), testing::Values(0, 0.01), testing::Values(0, 0.1),
                                          testing::Values(0, 0.3), testing::Values(0, 0.01)),
                         name_of);

}  // namespace
}  // namespace warpline::sim
