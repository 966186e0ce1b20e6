// SPDX-License-Identifier: Apache-2.0
// Whoever says hello under the name of a live session ends it only when he has confirmed the new one.
#include <gtest/gtest.h>

#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

bool is_hello(const std::vector<std::uint8_t>& bytes) {
  return packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::hello;
}

/// A client with a session, and what it said when it opened the one before that.
struct Reconnected : Two {
  Reconnected() {
    net.tap = [this](const Loopback::Host&, std::vector<std::uint8_t>& bytes) {
      if (is_hello(bytes)) old_hello = bytes;  // the last one has the token
      return false;
    };
    reconnect();
    net.tap = nullptr;
    reconnect();
  }
  void reconnect() {
    EXPECT_EQ(client.endpoint.close(session, net.now), CallStatus::ok);
    EXPECT_TRUE(until(server, EventKind::lost));
    net.run_for(Nanos{1});
    client.events.clear();
    server.events.clear();
    EXPECT_EQ(client.endpoint.reconnect(session, net.now), CallStatus::ok);
    EXPECT_TRUE(until(server, EventKind::accepted));
    there = Two::first(server, EventKind::accepted).session;
    client.events.clear();
    server.events.clear();
  }
  bool works() {
    EXPECT_EQ(request(32).status, CallStatus::ok);
    return until(server, EventKind::request);
  }
  std::vector<std::uint8_t> old_hello;
};

TEST(Newcomer, that_is_a_late_hello_of_before_a_reconnect_does_nothing) {
  Reconnected two;
  ASSERT_FALSE(two.old_hello.empty());
  for (int i = 0; i < 3; ++i) {
    two.net.inject(two.server, two.client.address, two.old_hello);
    two.net.run_for(Nanos{10 * kMs});
  }
  EXPECT_EQ(two.server.endpoint.facts().free_sessions, 2U) << "it is there, until nobody confirms it";
  EXPECT_TRUE(two.works());
  two.net.run_for(Nanos{2'000 * kMs});
  EXPECT_EQ(Two::count(two.server, EventKind::lost) + Two::count(two.client, EventKind::lost), 0);
  EXPECT_TRUE(two.server.endpoint.facts(two.there).established);
  EXPECT_EQ(two.server.endpoint.facts().free_sessions, 3U);
}

TEST(Newcomer, that_proves_the_address_but_confirms_nothing_ends_no_session) {
  Two two;
  packet::MessageHello hello;
  hello.session = two.session.index;
  hello.nonce = 77;
  hello.terms.datagram_bytes = 1472;
  std::vector<std::uint8_t> bytes(packet::MessageHello::kLength);
  packet::MessageChallenge challenge;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& sent) {
    return &from == &two.server && packet::MessagePrefix::type(sent.data()) == packet::MessagePacketType::challenge &&
           packet::parse(sent.data(), static_cast<std::uint32_t>(sent.size()), challenge) == packet::MessageParse::ok;
  };
  packet::emit(hello, bytes.data());
  two.net.inject(two.server, two.client.address, bytes);
  two.net.settle();
  hello.token = challenge.token;
  hello.token_time = challenge.token_time;
  packet::emit(hello, bytes.data());
  two.net.inject(two.server, two.client.address, bytes);
  two.net.run_for(Nanos{10 * kMs});
  EXPECT_EQ(two.server.endpoint.facts().free_sessions, 2U) << "the hello was good";
  EXPECT_TRUE(two.server.endpoint.facts(two.there).established);
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  EXPECT_TRUE(two.until(two.server, EventKind::request));
  EXPECT_TRUE(two.client.events.empty());
}

TEST(Newcomer, that_was_restarted_takes_the_place_of_its_old_session) {
  Two two;
  two.net.restart(two.client, small());
  const Opened opened = two.client.endpoint.connect(two.server.address, {}, two.net.now);
  ASSERT_EQ(opened.session.index, two.session.index) << "under the same name";
  ASSERT_TRUE(two.until(two.server, EventKind::accepted));
  ASSERT_EQ(two.server.events.size(), 2U);
  EXPECT_EQ(two.server.events[0].kind, EventKind::lost);
  EXPECT_EQ(two.server.events[0].reason, LossReason::restarted);
  EXPECT_EQ(two.server.events[0].session, two.there);
  EXPECT_TRUE(two.client.endpoint.facts(opened.session).established);
  EXPECT_EQ(two.server.endpoint.facts().free_sessions, 3U);
}

TEST(Newcomer, that_was_restarted_finds_its_old_place_where_there_is_no_other) {
  EndpointConfig full = small();
  full.max_sessions = 1;
  Two two(small(), full);
  two.net.restart(two.client, small());
  const Opened opened = two.client.endpoint.connect(two.server.address, {}, two.net.now);
  ASSERT_TRUE(two.until(two.client, EventKind::connected));
  EXPECT_TRUE(two.client.endpoint.facts(opened.session).established);
  EXPECT_EQ(Two::first(two.server, EventKind::lost).reason, LossReason::restarted);
}

}  // namespace
}  // namespace warpline::message
