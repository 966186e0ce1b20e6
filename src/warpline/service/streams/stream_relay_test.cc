// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_relay.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "warpline/message/loopback_testing.h"
#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::service {
namespace {

using message::EventKind;
using stream::ConnectionState;
using stream::testing::pattern_at;
using stream::testing::Peer;

message::EndpointConfig endpoint_settings(std::uint32_t sessions) {
  message::EndpointConfig config;
  config.max_sessions = sessions;
  config.max_messages = 256;
  config.max_sent_packets = 4096;
  config.receive_bytes = 8U << 20;
  return config;
}

/// TCP peers, a relay, and a server that takes what the relay sends, on a simulated network.
class RelayWorld {
 public:
  /// What the server heard of a session.
  struct Heard {
    std::optional<stream::RelayedBegin> begin;
    std::vector<std::uint8_t> bytes;
    std::optional<stream::RelayedEnd> end;
    bool lost = false;
  };

  explicit RelayWorld(message::Impairment faults = {}, std::uint32_t sessions = 16)
      : net(5, faults),
        proxy(net.add(endpoint_settings(sessions))),
        server(net.add(endpoint_settings(16))),
        settings(stream::testing::small_settings()),
        receiver(std::move(stream::StreamReceiver::create(settings, net.now)).value()),
        relay(server.address, settings.connections, settings.ring_bytes) {
    proxy.handle = [this](const message::MessageEvent& event) {
      relay.handle(receiver, proxy.endpoint, event, net.now);
      return true;
    };
    server.handle = [this](const message::MessageEvent& event) { return hear(event); };
  }

  void open(Peer& peer) {
    ASSERT_TRUE(peer.open(net.now));
    turn();
  }

  /// Has the peer send so many bytes of the pattern in segments, as far as the window reaches.
  std::uint64_t send(Peer& peer, std::uint64_t from, std::uint64_t length) {
    constexpr std::uint32_t kSegment = 1000;
    std::uint64_t sent = 0;
    for (; sent + kSegment <= length; sent += kSegment) peer.send(from + sent, kSegment, net.now);
    receiver.end_burst(net.now);
    turn();
    return sent;
  }

  void turn() {
    while (relay.turn(receiver, proxy.endpoint, net.now)) {
    }
  }

  /// Runs the network and the relay until `done`.
  bool until(const std::function<bool()>& done) {
    return net.run([&] {
      turn();
      return done();
    });
  }

  bool hear(const message::MessageEvent& event) {
    if (event.kind == EventKind::lost) heard[event.session].lost = true;
    if (event.kind != EventKind::message) return true;
    Heard& session = heard[event.session];
    const std::span<const std::uint8_t> bytes(event.data, event.length);
    switch (static_cast<stream::RelayCode>(event.code)) {
      case stream::RelayCode::begin:
        session.begin = stream::decode_begin(bytes);
        break;
      case stream::RelayCode::bytes:
        session.bytes.insert(session.bytes.end(), bytes.begin(), bytes.end());
        break;
      case stream::RelayCode::end:
        session.end = stream::decode_end(bytes);
        break;
    }
    EXPECT_EQ(server.endpoint.release(event.id, net.now), message::CallStatus::ok);
    return true;
  }

  message::Loopback net;
  message::Loopback::Host& proxy;
  message::Loopback::Host& server;
  stream::ReceiverSettings settings;
  stream::StreamReceiver receiver;
  StreamRelay relay;
  std::map<message::SessionId, Heard> heard;
};

void expect_pattern(const std::vector<std::uint8_t>& bytes, std::uint64_t length) {
  ASSERT_EQ(bytes.size(), length);
  for (std::uint64_t i = 0; i < length; ++i) ASSERT_EQ(bytes[i], pattern_at(i)) << i;
}

TEST(StreamRelay, HandsOnBeginningBytesAndEnd) {
  RelayWorld world;
  Peer peer(world.receiver, 40'000, 77);
  world.open(peer);
  ASSERT_EQ(world.send(peer, 0, 30'000), 30'000U);
  peer.send(30'000, 0, world.net.now, packet::kTcpAck | packet::kTcpFin);
  world.receiver.end_burst(world.net.now);
  ASSERT_TRUE(world.until([&] { return world.relay.counters().ended.get() == 1; }));
  ASSERT_EQ(world.heard.size(), 1U);
  const RelayWorld::Heard& heard = world.heard.begin()->second;
  const stream::RelayedBegin begin{{Ipv4Address{{10, 0, 0, 2}}, 40'000}, {Ipv4Address{{10, 0, 0, 1}}, 5001}};
  EXPECT_EQ(heard.begin, begin);
  expect_pattern(heard.bytes, 30'000);
  EXPECT_EQ(heard.end, (stream::RelayedEnd{ConnectionState::finished, 30'000}));
  EXPECT_TRUE(world.relay.settled());
  EXPECT_EQ(world.relay.counters().delivered.get(), 30'000U);
}

TEST(StreamRelay, TellsThatAConnectionWasReset) {
  RelayWorld world;
  Peer peer(world.receiver, 40'000, 77);
  world.open(peer);
  world.send(peer, 0, 2'000);
  peer.send_raw(peer.sequence(2'000), packet::kTcpRst, {}, world.net.now);
  ASSERT_TRUE(world.until([&] { return world.relay.counters().ended.get() == 1; }));
  const RelayWorld::Heard& heard = world.heard.begin()->second;
  expect_pattern(heard.bytes, 2'000);
  EXPECT_EQ(heard.end, (stream::RelayedEnd{ConnectionState::reset, 2'000}));
}

TEST(StreamRelay, GivesPlaceBackAsTheServerHasBytesAndLosesNothingMeanwhile) {
  RelayWorld world({.loss = 50'000, .duplicate = 20'000, .reorder = 50'000});
  Peer peer(world.receiver, 40'000, 0xffff'0000);
  world.open(peer);
  std::uint64_t sent = 0;
  constexpr std::uint64_t kBytes = 1'000'000;
  while (sent < kBytes) {
    const std::uint64_t room = world.settings.ring_bytes - (sent - world.relay.counters().delivered.get());
    sent += world.send(peer, sent, std::min(kBytes - sent, room));
    const std::uint64_t delivered = world.relay.counters().delivered.get();
    if (sent == kBytes) break;
    ASSERT_TRUE(world.until([&] { return world.relay.counters().delivered.get() != delivered; }));
  }
  ASSERT_TRUE(world.until([&] { return world.relay.counters().delivered.get() == kBytes; }));
  expect_pattern(world.heard.begin()->second.bytes, kBytes);
}

TEST(StreamRelay, KeepsConnectionsApart) {
  RelayWorld world({.loss = 20'000, .reorder = 100'000});
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::uint16_t i = 0; i < 8; ++i) {
    peers.push_back(std::make_unique<Peer>(world.receiver, static_cast<std::uint16_t>(40'000 + i), 1000U * i));
    world.open(*peers.back());
  }
  for (std::uint64_t i = 0; i < peers.size(); ++i) {
    const std::uint64_t length = 1'000 * (i + 1);
    world.send(*peers[i], 0, length);
    peers[i]->send(length, 0, world.net.now, packet::kTcpAck | packet::kTcpFin);
  }
  world.receiver.end_burst(world.net.now);
  ASSERT_TRUE(world.until([&] { return world.relay.counters().ended.get() == peers.size(); }));
  ASSERT_EQ(world.heard.size(), peers.size());
  for (const auto& [session, heard] : world.heard) {
    ASSERT_TRUE(heard.begin && heard.end);
    expect_pattern(heard.bytes, 1'000U * (heard.begin->peer.port - 40'000U + 1));
  }
}

TEST(StreamRelay, AbortsConnectionsOfAServerThatIsGone) {
  RelayWorld world;
  Peer peer(world.receiver, 40'000, 77);
  world.open(peer);
  world.send(peer, 0, 1'000);
  ASSERT_TRUE(world.until([&] { return world.relay.counters().delivered.get() == 1'000; }));
  world.server.dead = true;
  world.send(peer, 1'000, 1'000);
  ASSERT_TRUE(world.until([&] { return world.relay.counters().lost_sessions.get() == 1; }));
  EXPECT_EQ(world.receiver.counters().aborted.get(), 1U);
  EXPECT_TRUE(world.relay.settled());
  bool reset = false;
  for (const stream::testing::Reply& reply : stream::testing::replies_of(world.receiver, world.net.now)) {
    reset |= reply.has(packet::kTcpRst);
  }
  EXPECT_TRUE(reset);
}

TEST(StreamRelay, AbortsWhatFindsNoSession) {
  RelayWorld world({}, 1);
  Peer first(world.receiver, 40'000, 77);
  Peer second(world.receiver, 40'001, 99);
  world.open(first);
  world.open(second);
  EXPECT_EQ(world.relay.counters().no_session.get(), 1U);
  EXPECT_EQ(world.receiver.connections(), 1U);
}

TEST(StreamRelay, EndsAllAtTheEnd) {
  RelayWorld world;
  Peer peer(world.receiver, 40'000, 77);
  world.open(peer);
  world.send(peer, 0, 1'000);
  ASSERT_TRUE(world.until([&] { return world.relay.settled(); }));
  EXPECT_EQ(world.relay.abort_some(world.receiver, world.proxy.endpoint, 64, world.net.now), 1U);
  EXPECT_EQ(world.relay.abort_some(world.receiver, world.proxy.endpoint, 64, world.net.now), 0U);
  ASSERT_TRUE(world.until([&] { return world.heard.begin()->second.lost; }));
  EXPECT_FALSE(world.heard.begin()->second.end);
}

}  // namespace
}  // namespace warpline::service
