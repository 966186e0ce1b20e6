// SPDX-License-Identifier: Apache-2.0
// Packets of several sessions in one datagram.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kSessions = 12;
constexpr std::uint32_t kFollowedLength = 100;

EndpointConfig of_many() {
  EndpointConfig config = small();
  config.max_sessions = 64;
  return config;
}

/// A client with sessions to one server, which answers requests by their own bytes. Datagrams of the client are seen.
struct Many {
  explicit Many(EndpointConfig client_config = of_many(), EndpointConfig server_config = of_many())
      : client(net.add(client_config)), server(net.add(server_config)) {
    server.handle = [this](const MessageEvent& event) { return answer(server, event); };
    for (std::uint32_t i = 0; i < kSessions; ++i) sessions.push_back(net.connect(client, server).first);
    net.run_for(Nanos{10'000'000});  // the last acknowledgements
    net.tap = [this](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
      if (&from != &client) return false;
      datagrams.push_back(bytes);
      return std::exchange(lose_next, false);
    };
  }
  bool answer(Loopback::Host& host, const MessageEvent& event) {
    if (event.kind == EventKind::request) {
      EXPECT_EQ(host.endpoint.respond(event.id, {event.data, event.length}, {}, net.now), CallStatus::ok);
    }
    return event.kind == EventKind::request;
  }

  void ask() {
    responses.assign(sessions.size(), std::vector<std::uint8_t>(kFollowedLength));
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      ASSERT_EQ(client.endpoint
                    .request(sessions[i], {payload.data() + i, kFollowedLength}, {responses[i].data(), kFollowedLength},
                             {}, net.now)
                    .status,
                CallStatus::ok);
    }
  }
  bool all_answered() {
    const auto ended = static_cast<std::ptrdiff_t>(sessions.size());
    if (!net.run([&] { return Two::count(client, EventKind::response) == ended; })) return false;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      if (!std::equal(responses[i].begin(), responses[i].end(), payload.data() + i)) return false;
    }
    return std::ranges::all_of(client.events, [](const MessageEvent& e) { return e.status == MessageStatus::ok; });
  }

  /// What is under way from the client is lost; the first datagram of it.
  std::vector<std::uint8_t> first_datagram() {
    net.tap = [this](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
      if (&from == &client) datagrams.push_back(bytes);
      return &from == &client;
    };
    net.settle();
    return datagrams.empty() ? std::vector<std::uint8_t>{} : datagrams.front();
  }

  Loopback net{3};
  Loopback::Host& client;
  Loopback::Host& server;
  std::vector<SessionId> sessions;
  std::vector<std::vector<std::uint8_t>> datagrams;
  bool lose_next = false;
  std::vector<std::uint8_t> payload = pattern(1000, 7);
  std::vector<std::vector<std::uint8_t>> responses;
};

TEST(Followed, packets_to_one_peer_fill_a_datagram) {
  Many many;
  many.ask();
  many.net.settle();
  ASSERT_EQ(many.datagrams.size(), 2U);
  EXPECT_LE(many.datagrams[0].size(), 1472U);
  EXPECT_GT(many.datagrams[0].size() + kFollowedLength, 1400U);
  ASSERT_TRUE(many.all_answered());
  EXPECT_GE(many.server.endpoint.counters().packets_behind.get(), kSessions - 2);
  EXPECT_GE(many.client.endpoint.counters().packets_behind.get(), kSessions - 2);
}

TEST(Followed, packets_to_different_peers_travel_alone) {
  Many many;
  Loopback::Host& other = many.net.add(of_many());
  other.handle = [&](const MessageEvent& event) { return many.answer(other, event); };
  for (std::size_t i = 0; i < kSessions; i += 2) many.sessions[i] = many.net.connect(many.client, other).first;
  many.net.run_for(Nanos{10'000'000});
  many.datagrams.clear();
  const std::uint64_t before = many.server.endpoint.counters().packets_behind.get();
  many.ask();
  many.net.settle();
  EXPECT_EQ(many.datagrams.size(), kSessions);
  ASSERT_TRUE(many.all_answered());
  EXPECT_EQ(many.server.endpoint.counters().packets_behind.get(), before);
}

TEST(Followed, only_where_the_peer_takes_it) {
  EndpointConfig config = of_many();
  config.bundles = false;
  Many many(of_many(), config);
  many.ask();
  many.net.settle();
  EXPECT_EQ(many.datagrams.size(), kSessions);
  ASSERT_TRUE(many.all_answered());
}

TEST(Followed, packets_that_are_lost_together_come_again) {
  Many many;
  many.lose_next = true;
  many.ask();
  ASSERT_TRUE(many.all_answered());
}

TEST(Followed, a_session_that_is_not_there_ends_nobody_else) {
  Many many;
  many.ask();
  std::vector<std::uint8_t> datagram = many.first_datagram();
  ASSERT_FALSE(datagram.empty());
  packet::store_be32(datagram.data() + packet::MessageHeader::kSession, 0x00fffff0);
  const EndpointCounters& counters = many.server.endpoint.counters();
  const std::uint64_t taken = counters.packets_in.get();
  const std::uint64_t behind = counters.packets_behind.get();
  many.net.inject(many.server, many.client.address, datagram);
  EXPECT_EQ(counters.dropped(MessageDrop::unknown_session), 1U);
  EXPECT_EQ(counters.packets_in.get() - taken, counters.packets_behind.get() - behind);
  EXPECT_GE(counters.packets_in.get() - taken, 8U);
}

TEST(Followed, what_is_malformed_ends_the_datagram) {
  Many many;
  many.ask();
  const std::vector<std::uint8_t> whole = many.first_datagram();
  ASSERT_FALSE(whole.empty());
  const EndpointCounters& counters = many.server.endpoint.counters();
  packet::MessageHeader header;
  ASSERT_EQ(packet::parse(whole.data(), static_cast<std::uint32_t>(whole.size()), header), packet::MessageParse::ok);
  ASSERT_TRUE(header.has(packet::kMessageFollowed));

  const std::uint64_t taken = counters.packets_in.get();
  std::vector<std::uint8_t> foreign = whole;
  foreign[header.packet_length()] ^= 1;
  many.net.inject(many.server, many.client.address, foreign);
  EXPECT_EQ(counters.packets_in.get(), taken + 1);
  EXPECT_EQ(counters.dropped(MessageDrop::malformed), 1U);

  // The first one says that another follows, but there is none.
  const std::vector<std::uint8_t> alone(whole.begin(), whole.begin() + header.packet_length());
  many.net.inject(many.server, many.client.address, alone);
  EXPECT_EQ(counters.packets_in.get(), taken + 1);
  EXPECT_EQ(counters.dropped(MessageDrop::truncated), 1U);

  // A handshake packet may not follow.
  std::vector<std::uint8_t> hello = whole;
  hello[header.packet_length() + 1] = static_cast<std::uint8_t>(packet::kMessageVersion << 4);
  packet::store_be64(hello.data() + 16, 1000);
  many.net.inject(many.server, many.client.address, hello);
  EXPECT_EQ(counters.dropped(MessageDrop::malformed), 2U);
}

}  // namespace
}  // namespace warpline::message
