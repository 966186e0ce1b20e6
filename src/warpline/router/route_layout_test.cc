// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/route_layout.h"

#include <gtest/gtest.h>

namespace warpline::router {
namespace {

TEST(RouteLayout, APipelineIsOneQueuePairOfEveryPort) {
  datapath::DatapathSettings settings;
  settings.forward.pipelines = 3;
  settings.ports.resize(2);
  settings.ports[0].addresses = {*parse_interface_address("10.0.0.1/24")};
  const datapath::ForwardLayout layout = lay_out_routing(settings, {0, 0}, 8);
  ASSERT_EQ(layout.roles.size(), 3U);
  ASSERT_EQ(layout.requests.size(), 3U);
  EXPECT_TRUE(layout.mixes_ports);
  for (std::uint16_t pipeline = 0; pipeline < 3; ++pipeline) {
    ASSERT_EQ(layout.roles[pipeline].paths.size(), 2U);
    for (std::uint16_t port = 0; port < 2; ++port) {
      const datapath::PathRoute& route = layout.paths[layout.roles[pipeline].paths[port]];
      EXPECT_EQ(route.rx_port, port);
      EXPECT_EQ(route.queue, pipeline);
      EXPECT_EQ(layout.tx_queues(settings, port), 3);
    }
  }
}

TEST(RouteLayout, FewCoresTakeSeveralPipelines) {
  datapath::DatapathSettings settings;
  settings.forward.pipelines = 5;
  settings.lcores = 2;
  const datapath::ForwardLayout layout = lay_out_routing(settings, {-1}, 8);
  ASSERT_EQ(layout.roles.size(), 2U);
  EXPECT_EQ(layout.roles[0].paths.size() + layout.roles[1].paths.size(), 5U);
}

}  // namespace
}  // namespace warpline::router
