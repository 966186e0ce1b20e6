// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "warpline/message/loopback_testing.h"
#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

/// Lets one peer in.
struct OnePeer {
  std::optional<PeerAddress> peer;
  std::uint32_t asked = 0;
  KeyId key = ~KeyId{0};

  static bool allows(void* context, const PeerAddress& peer, KeyId key) {
    OnePeer& self = *static_cast<OnePeer*>(context);
    ++self.asked;
    self.key = key;
    return self.peer == peer;
  }
};

TEST(Authorizer, RefusesWhomTheApplicationDoesNotWant) {
  OnePeer one;
  EndpointConfig config = small();
  config.authorizer = {&one, OnePeer::allows};
  Loopback net(1);
  Loopback::Host& wanted = net.add(small());
  Loopback::Host& other = net.add(small());
  Loopback::Host& server = net.add(config);
  one.peer = wanted.address;
  const auto [session, there] = net.connect(wanted, server);
  EXPECT_TRUE(server.endpoint.facts(there).established);
  EXPECT_EQ(server.endpoint.facts(there).key, 0U);
  EXPECT_EQ(one.asked, 1U);
  EXPECT_EQ(one.key, 0U);
  (void)other.endpoint.connect(server.address, {.context = 9}, net.now);
  ASSERT_TRUE(net.run([&] { return !other.events.empty(); }));
  EXPECT_EQ(other.events.front().kind, EventKind::lost);
  EXPECT_EQ(other.events.front().reason, LossReason::not_accepted);
  EXPECT_EQ(one.asked, 2U);
  EXPECT_EQ(server.endpoint.counters().dropped(MessageDrop::not_authorized), 1U);
  EXPECT_EQ(server.endpoint.facts().free_sessions, config.max_sessions - 1);
  EXPECT_TRUE(server.events.empty()) << "nobody is told of it";
}

TEST(Authorizer, IsNotAskedAboutHellosThatProveNoAddressNorAboutRepetitions) {
  OnePeer one;
  EndpointConfig config = small();
  config.authorizer = {&one, OnePeer::allows};
  Loopback net(1);
  Loopback::Host& client = net.add(small());
  Loopback::Host& server = net.add(config);
  one.peer = client.address;
  std::vector<std::vector<std::uint8_t>> hellos;
  net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    if (&from == &client && packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::hello) {
      hellos.push_back(bytes);
      EXPECT_EQ(one.asked, 0U);
    }
    return false;
  };
  (void)net.connect(client, server);
  ASSERT_EQ(hellos.size(), 2U);
  for (int i = 0; i < 10; ++i) {
    for (const auto& hello : hellos) net.inject(server, client.address, hello);
  }
  EXPECT_EQ(one.asked, 1U);
}

}  // namespace
}  // namespace warpline::message
