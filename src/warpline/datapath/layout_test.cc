// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "warpline/base/property_testing.h"

namespace warpline::datapath {
namespace {

DatapathSettings settings_of(std::size_t ports, std::uint16_t pipelines) {
  DatapathSettings settings;
  settings.ports.resize(ports);
  settings.forward.pipelines = pipelines;
  return settings;
}

TEST(Layout, OnePortSendsOutOfItself) {
  const DatapathSettings settings = settings_of(1, 2);
  const ForwardLayout layout = lay_out_forward(settings, {runtime::kAnyNode}, 4);
  ASSERT_EQ(layout.paths.size(), 2U);
  EXPECT_EQ(layout.paths[1].rx_port, 0);
  EXPECT_EQ(layout.paths[1].tx_port, 0);
  EXPECT_EQ(layout.paths[1].queue, 1);
}

TEST(Layout, PortsArePairedAndALeftOverOneIsItsOwnPartner) {
  const DatapathSettings settings = settings_of(3, 1);
  const ForwardLayout layout = lay_out_forward(settings, {0, 0, 0}, 8);
  ASSERT_EQ(layout.paths.size(), 3U);
  EXPECT_EQ(layout.paths[0].tx_port, 1);
  EXPECT_EQ(layout.paths[1].tx_port, 0);
  EXPECT_EQ(layout.paths[2].tx_port, 2);
}

TEST(Layout, OnlyTheThreadEngineIsAPipelineUnlessToldOtherwise) {
  DatapathSettings settings = settings_of(1, 1);
  EXPECT_EQ(lay_out_forward(settings, {0}, 2).model, ModelKind::run_to_completion);
  settings.forward.engine = EngineKind::persistent;
  EXPECT_EQ(lay_out_forward(settings, {0}, 2).model, ModelKind::run_to_completion);
  settings.forward.engine = EngineKind::thread;
  EXPECT_EQ(lay_out_forward(settings, {0}, 2).model, ModelKind::pipeline);
  settings.forward.model = ModelKind::run_to_completion;
  EXPECT_EQ(lay_out_forward(settings, {0}, 2).model, ModelKind::run_to_completion);
}

TEST(Layout, RunToCompletionTakesMorePathsRatherThanAProcessorTwice) {
  const ForwardLayout layout = lay_out_forward(settings_of(2, 4), {0, 0}, 3);
  EXPECT_EQ(layout.roles.size(), 3U);
}

TEST(Layout, LcoresBoundRunToCompletion) {
  DatapathSettings settings = settings_of(1, 4);
  settings.lcores = 2;
  EXPECT_EQ(lay_out_forward(settings, {0}, 64).roles.size(), 2U);
}

TEST(Layout, AnswersNeedQueuesOfTheirOwnOnlyWhenPacketsLeaveElsewhere) {
  DatapathSettings two = settings_of(2, 3);
  two.ports[0].addresses = {*parse_interface_address("10.0.0.1/24")};
  const ForwardLayout layout = lay_out_forward(two, {0, 0}, 8);
  EXPECT_EQ(layout.tx_queues(two, 0), 6);
  EXPECT_EQ(layout.tx_queues(two, 1), 3);
  DatapathSettings one = settings_of(1, 3);
  one.ports[0].addresses = two.ports[0].addresses;
  EXPECT_EQ(lay_out_forward(one, {0}, 8).tx_queues(one, 0), 3);
}

TEST(Layout, AnswersOfDriversWithQueuePairsLeaveByTheQueueOfTheWayBack) {
  for (const char* const driver : {"net_af_packet", "net_tap"}) {
    for (const std::size_t cpus : {1, 2, 3, 8}) {
      DatapathSettings settings = settings_of(2, 3);
      for (std::size_t port = 0; port < 2; ++port) {
        settings.ports[port].spec = driver + std::to_string(port) + ",iface=left";
        settings.ports[port].addresses = {*parse_interface_address("10.0.0.1/24")};
      }
      const ForwardLayout layout = lay_out_forward(settings, {0, 0}, cpus);
      EXPECT_EQ(layout.tx_queues(settings, 0), 3);
      EXPECT_TRUE(layout.mixes_ports);
      for (const Role& role : layout.roles) {
        // Who answers by a queue is the one who forwards by it.
        for (const std::uint16_t path : role.paths) {
          const PathRoute& route = layout.paths[path];
          EXPECT_EQ(layout.reply_queue(settings, route), route.queue);
          EXPECT_TRUE(std::ranges::any_of(role.paths, [&](std::uint16_t other) {
            const PathRoute& back = layout.paths[other];
            return back.rx_port == route.tx_port && back.tx_port == route.rx_port && back.queue == route.queue;
          })) << cpus;
        }
      }
    }
  }
}

WARPLINE_PROPERTY(LayoutProperty, EveryPathIsReceivedWorkedOnAndTransmittedByExactlyOneWorker, ()) {
  DatapathSettings settings = settings_of(*rc::gen::inRange<std::size_t>(1, 6), *rc::gen::inRange<std::uint16_t>(1, 9));
  settings.forward.engine = *rc::gen::element(EngineKind::inline_, EngineKind::thread);
  settings.forward.model = *rc::gen::element(ModelKind::automatic, ModelKind::run_to_completion, ModelKind::pipeline);
  settings.forward.ctas = *rc::gen::inRange<std::uint16_t>(1, 5);
  settings.forward.loopback = settings.ports.size() == 1 && *rc::gen::arbitrary<bool>();
  const std::vector<int> nodes(settings.ports.size(), 0);
  const ForwardLayout layout = lay_out_forward(settings, nodes, *rc::gen::inRange<std::size_t>(1, 65));

  RC_ASSERT(layout.roles.size() == layout.requests.size());
  std::map<std::uint16_t, int> receiving;
  std::map<std::uint16_t, int> transmitting;
  std::map<std::uint16_t, std::set<std::uint16_t>> lanes;
  std::size_t far = 0;
  for (const Role& role : layout.roles) {
    for (const std::uint16_t path : role.paths) {
      const bool both = role.kind == RoleKind::run_to_completion;
      receiving[path] += both || role.kind == RoleKind::receive ? 1 : 0;
      transmitting[path] += both || role.kind == RoleKind::transmit ? 1 : 0;
      if (role.kind == RoleKind::engine) RC_ASSERT(lanes[path].insert(role.lane).second);
    }
    far += role.kind == RoleKind::far_side ? 1 : 0;
  }
  const std::size_t wanted_lanes = settings.forward.engine == EngineKind::thread ? settings.forward.ctas : 0;
  for (std::uint16_t path = 0; path < layout.paths.size(); ++path) {
    RC_ASSERT(receiving[path] == 1);
    RC_ASSERT(transmitting[path] == 1);
    RC_ASSERT(lanes[path].size() == wanted_lanes);
  }
  RC_ASSERT(far == (settings.forward.loopback ? settings.forward.pipelines : 0U));
  for (const runtime::WorkerRequest& request : layout.requests) {
    RC_ASSERT(request.near == runtime::kNoWorker || static_cast<std::size_t>(request.near) < layout.requests.size());
  }
}

}  // namespace
}  // namespace warpline::datapath
