// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "warpline/message/config.h"
#include "warpline/rpc/message_host.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::rpc {
namespace {

// These are compiled with -Wextra, as a user's program may be: a field without a default would be a warning.
TEST(Settings, AreNamedOneByOneAndTheOthersKeepTheirDefaults) {
  const message::EndpointConfig endpoint{.max_sessions = 3};
  EXPECT_EQ(endpoint.max_sessions, 3U);
  EXPECT_TRUE(endpoint.accept);
  EXPECT_EQ(endpoint.cc.kind, message::CcConfig{}.kind);
  const MessageHost::Settings host{.answer_bytes = 100};
  EXPECT_EQ(host.answer_bytes, 100U);
  EXPECT_EQ(host.local.port, 0);
  const transport::UdpSocketConfig socket{.local = {.address = Ipv4Address{}}};
  EXPECT_EQ(socket.local.port, 0);
}

}  // namespace
}  // namespace warpline::rpc
