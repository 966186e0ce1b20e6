// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "warpline/message/loopback_testing.h"

namespace warpline::message {
namespace {

/// Many sessions share few places for packets in flight, and a bad network makes each want to send again at once.
TEST(Scarcity, of_places_for_sent_packets_stops_nobody) {
  constexpr std::uint32_t kSessionCount = 6;
  constexpr std::uint32_t kMessages = 6;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Loopback net(seed);
    EndpointConfig config;
    config.max_sessions = 8;
    config.max_sent_packets = 256;
    config.cc.kind = CcKind::none;
    config.datagram_bytes = 512;
    config.max_rto = Nanos{20'000'000};
    config.peer_timeout = Nanos{10'000'000'000};
    Loopback::Host& client = net.add(config);
    Loopback::Host& server = net.add(config);
    const EndpointFacts fresh = client.endpoint.facts();
    const auto bytes = pattern(30'000, seed);
    std::uint32_t sent = 0;
    std::uint32_t arrived = 0;
    client.handle = [&](const MessageEvent& event) {
      sent += event.kind == EventKind::sent && event.status == MessageStatus::ok ? 1 : 0;
      return true;
    };
    server.handle = [&](const MessageEvent& event) {
      if (event.kind != EventKind::message) return true;
      ++arrived;
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), event.data, event.data + event.length));
      EXPECT_EQ(server.endpoint.release(event.id, net.now), CallStatus::ok);
      return true;
    };
    std::vector<SessionId> sessions;
    for (std::uint32_t i = 0; i < kSessionCount; ++i) {
      sessions.push_back(client.endpoint.connect(server.address, {}, net.now).session);
    }
    net.run_for(Nanos{1'000'000});
    net.impairment.loss = 400'000;
    for (const SessionId session : sessions) {
      for (std::uint32_t i = 0; i < kMessages; ++i) {
        const ConstBuffer buffer{bytes.data(), static_cast<std::uint32_t>(bytes.size()), false};
        ASSERT_EQ(client.endpoint.send(session, buffer, {}, net.now).status, CallStatus::ok);
      }
    }
    EXPECT_TRUE(net.run([&] { return sent == kSessionCount * kMessages; }, Nanos{20'000'000'000})) << "seed " << seed;
    EXPECT_EQ(arrived, kSessionCount * kMessages) << "seed " << seed;
    net.impairment.loss = 0;
    net.run_for(Nanos{1'000'000'000});
    EXPECT_EQ(client.endpoint.facts().free_sent_packets, fresh.free_sent_packets);
    EXPECT_EQ(client.endpoint.facts().free_messages, fresh.free_messages);
  }
}

}  // namespace
}  // namespace warpline::message
