// SPDX-License-Identifier: Apache-2.0
// Sessions that are opened and never confirmed, and more of them than one peer may have.
#include <gtest/gtest.h>

#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kPlaces = 64;

EndpointConfig with_places(SessionQuotas quotas = {}) {
  EndpointConfig config = small();
  config.max_sessions = kPlaces;
  config.quotas = quotas;
  return config;
}

/// A server, and peers that answer its challenges but hear no accept.
struct Flooded {
  explicit Flooded(SessionQuotas quotas = {}) : server(net.add(with_places(quotas))) {}

  void open_half(IpAddress address, std::uint32_t session) {
    packet::MessageHello hello;
    hello.session = session;
    hello.nonce = mix64(session) | 1;
    hello.terms.datagram_bytes = 1472;
    net.tap = [&](const Loopback::Host&, std::vector<std::uint8_t>& sent) {
      packet::MessageChallenge challenge;
      if (packet::MessagePrefix::type(sent.data()) == packet::MessagePacketType::challenge &&
          packet::parse(sent.data(), static_cast<std::uint32_t>(sent.size()), challenge) == packet::MessageParse::ok) {
        hello.token = challenge.token;
        hello.token_time = challenge.token_time;
      }
      return true;
    };
    for (int i = 0; i < 2; ++i) {
      std::vector<std::uint8_t> bytes(packet::MessageHello::kLength);
      packet::emit(hello, bytes.data());
      net.inject(server, peer_address(address, 9), bytes);
      net.settle();
    }
    net.tap = nullptr;
  }
  [[nodiscard]] std::uint32_t taken() const { return kPlaces - server.endpoint.facts().free_sessions; }
  /// How a new client's attempt to connect ends.
  MessageEvent connect() {
    Loopback::Host& client = net.add(small());
    EXPECT_EQ(client.endpoint.connect(server.address, {}, net.now).status, CallStatus::ok);
    EXPECT_TRUE(net.run([&] { return !client.events.empty(); }));
    return client.events.front();
  }

  Loopback net{1};
  Loopback::Host& server;
};

TEST(Quota, of_half_open_sessions_is_a_quarter_an_address_and_half_a_prefix) {
  Flooded flooded;
  for (std::uint32_t i = 0; i < 1000; ++i) flooded.open_half(Ipv4Address{{192, 0, 2, 1}}, i);
  EXPECT_EQ(flooded.taken(), kPlaces / 4);
  EXPECT_EQ(flooded.server.endpoint.counters().dropped(MessageDrop::over_quota), 1000U - kPlaces / 4);
  EXPECT_EQ(flooded.server.endpoint.counters().over_half_open_per_address.get(), 1000U - kPlaces / 4);
  EXPECT_EQ(flooded.server.endpoint.counters().over_half_open_per_prefix.get(), 0U);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    flooded.open_half(Ipv4Address{{192, 0, 2, static_cast<std::uint8_t>(i)}}, i);
  }
  EXPECT_EQ(flooded.taken(), kPlaces / 2);
  EXPECT_GT(flooded.server.endpoint.counters().over_half_open_per_prefix.get(), 0U);
  EXPECT_EQ(flooded.connect().kind, EventKind::connected);
}

TEST(Quota, of_sessions_is_told) {
  Flooded flooded({.per_address = 2});
  Loopback::Host& client = flooded.net.add(small());
  std::vector<SessionId> sessions;
  for (int i = 0; i < 3; ++i) {
    sessions.push_back(client.endpoint.connect(flooded.server.address, {}, flooded.net.now).session);
    ASSERT_TRUE(flooded.net.run([&] { return client.events.size() > static_cast<std::size_t>(i); }));
  }
  EXPECT_EQ(Two::count(client, EventKind::connected), 2);
  EXPECT_EQ(client.events.back().reason, LossReason::peer_full);
  EXPECT_EQ(flooded.server.endpoint.counters().dropped(MessageDrop::over_quota), 1U);
  EXPECT_EQ(flooded.server.endpoint.counters().over_per_address.get(), 1U);
  EXPECT_EQ(flooded.connect().kind, EventKind::connected) << "from another address";
  ASSERT_EQ(client.endpoint.close(sessions[0], flooded.net.now), CallStatus::ok);
  flooded.net.run_for(Nanos{kMs});
  client.events.clear();
  ASSERT_EQ(client.endpoint.reconnect(sessions[2], flooded.net.now), CallStatus::ok);
  EXPECT_TRUE(flooded.net.run([&] { return Two::count(client, EventKind::connected) == 1; }));
}

TEST(Quota, of_a_prefix_is_not_passed_by_one_who_has_all_its_addresses) {
  Flooded flooded({.per_prefix = 3});
  std::vector<Loopback::Host*> hostile;  // all have addresses of 10.0.0.0/24
  for (int i = 0; i < 6; ++i) {
    Loopback::Host& host = *hostile.emplace_back(&flooded.net.add(small()));
    ASSERT_EQ(host.endpoint.connect(flooded.server.address, {}, flooded.net.now).status, CallStatus::ok);
    ASSERT_TRUE(flooded.net.run([&] { return !host.events.empty(); }));
    EXPECT_EQ(host.events.front().kind, i < 3 ? EventKind::connected : EventKind::lost) << i;
  }
  EXPECT_EQ(hostile.back()->events.front().reason, LossReason::peer_full);
  EXPECT_EQ(flooded.server.endpoint.counters().over_per_prefix.get(), 3U);
  EXPECT_EQ(flooded.server.endpoint.counters().over_per_address.get(), 0U);
  EXPECT_EQ(flooded.server.endpoint.counters().dropped(MessageDrop::over_quota), 3U);
  flooded.open_half(Ipv4Address{{192, 0, 2, 1}}, 1);
  EXPECT_EQ(flooded.taken(), 4U) << "of another prefix";
}

TEST(Quota, holds_up_nobody_who_opens_all_sessions_at_once) {
  constexpr std::uint32_t kMany = 10'000;
  EndpointConfig config = small();
  config.max_sessions = kMany;
  config.max_sent_packets = 1 << 19;
  Loopback net(1);
  const Loopback::Host& server = net.add(config);
  Loopback::Host& client = net.add(config);
  for (std::uint32_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(client.endpoint.connect(server.address, {}, net.now).status, CallStatus::ok);
    if (i % 200 == 199) net.run_for(Nanos{100});  // a burst of hellos
  }
  EXPECT_TRUE(net.run([&] { return client.events.size() == kMany; }));
  EXPECT_EQ(Two::count(client, EventKind::connected), kMany);
}

TEST(HalfOpen, sessions_give_way_when_they_have_had_their_time) {
  Flooded flooded({.half_open_per_address = kPlaces, .half_open_per_prefix = kPlaces});
  for (std::uint32_t i = 0; i < 2 * kPlaces; ++i) flooded.open_half(Ipv4Address{{192, 0, 2, 1}}, i);
  EXPECT_EQ(flooded.taken(), kPlaces);
  EXPECT_EQ(flooded.connect().reason, LossReason::peer_full) << "they may yet be confirmed";
  flooded.net.run_for(Nanos{130 * kMs});
  EXPECT_EQ(flooded.connect().kind, EventKind::connected);
  EXPECT_EQ(flooded.taken(), kPlaces);
  flooded.net.run_for(Nanos{1'000 * kMs});
  EXPECT_EQ(flooded.taken(), 1U);
}

}  // namespace
}  // namespace warpline::message
