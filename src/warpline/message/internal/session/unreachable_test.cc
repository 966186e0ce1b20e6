// SPDX-License-Identifier: Apache-2.0
// What the network says of packets that did not arrive, truly or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

/// Two ends, and somebody between them who reads what the client sends, and may say that it did not arrive.
struct Overheard : Two {
  Overheard() {
    net.tap = [this](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
      if (&from == &client) {
        last = bytes;
        if (says) say(bytes);
      }
      return false;
    };
    server.handle = [this](const MessageEvent& event) {
      return event.kind == EventKind::request &&
             server.endpoint.respond(event.id, {payload.data(), 500, false}, {.copy = true}, net.now) == CallStatus::ok;
    };
  }
  void say(const std::vector<std::uint8_t>& bytes) {
    const Unreachable said{server.address, bytes};
    client.endpoint.unreachable({&said, 1}, net.now);
  }
  bool ask() { return request(300).status == CallStatus::ok && until(client, EventKind::response); }
  /// The server is gone, the network says so, and the client sends a request: ns until it has lost the server.
  std::int64_t time_until_lost() {
    client.events.clear();
    server.dead = says = true;
    const Nanos before = net.now;
    EXPECT_EQ(request(300).status, CallStatus::ok);
    EXPECT_TRUE(until(client, EventKind::lost));
    EXPECT_EQ(first(client, EventKind::lost).reason, LossReason::unreachable);
    return net.now.value - before.value;
  }
  [[nodiscard]] bool established() { return client.endpoint.facts(session).established; }
  [[nodiscard]] std::uint64_t doubted() const { return client.endpoint.counters().peers_doubted.get(); }
  [[nodiscard]] std::uint64_t ignored() const { return client.endpoint.counters().unreachable_ignored.get(); }

  bool says = false;
  std::vector<std::uint8_t> last;
};

TEST(UnreachablePeer, IsLostSoon) {
  Overheard two;
  ASSERT_TRUE(two.ask());
  const std::int64_t time = two.time_until_lost();
  EXPECT_EQ(Two::first(two.client, EventKind::response).status, MessageStatus::peer_lost);
  EXPECT_GE(time, kSecond) << "one that is away for a moment";
  EXPECT_LT(time, 2 * kSecond);
  EXPECT_EQ(two.doubted(), 1U);
  EXPECT_GT(two.ignored(), 2U) << "what was said of the probes";
}

TEST(UnreachablePeer, IsLostWhenNothingWasAsked) {
  Overheard two;
  ASSERT_TRUE(two.ask());
  two.net.run_for(Nanos{kSecond});
  two.client.events.clear();
  two.server.dead = two.says = true;
  ASSERT_TRUE(two.until(two.client, EventKind::lost)) << "after a sign of life";
  EXPECT_EQ(Two::first(two.client, EventKind::lost).reason, LossReason::unreachable);
}

TEST(UnreachablePeer, IsAskedAnewWhateverSilenceWasBefore) {
  Overheard two;
  ASSERT_TRUE(two.ask());
  two.client.events.clear();
  two.server.away = true;
  ASSERT_EQ(two.request(300).status, CallStatus::ok);
  two.net.run_for(Nanos{10 * kSecond});
  ASSERT_TRUE(two.established());
  const std::uint64_t sent = two.client.packets;
  two.say(two.last);
  EXPECT_EQ(two.doubted(), 1U);
  two.net.run_for(Nanos{kSecond / 2});
  EXPECT_GT(two.client.packets, sent + 3);
  ASSERT_TRUE(two.established());
  two.net.come_back(two.server);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(Two::first(two.client, EventKind::response).status, MessageStatus::ok);
  two.net.run_for(Nanos{20 * kSecond});
  EXPECT_TRUE(two.established());
}

TEST(UnreachablePeer, WhoSaysSoOfEachPacketOfALivePeerEndsNothing) {
  Overheard two;
  two.says = true;
  for (int i = 0; i < 1000; ++i) {
    two.client.events.clear();
    ASSERT_TRUE(two.ask());
    EXPECT_EQ(Two::first(two.client, EventKind::response).status, MessageStatus::ok);
  }
  two.net.run_for(Nanos{60 * kSecond});
  EXPECT_TRUE(two.established());
  EXPECT_GT(two.doubted(), 1U);
  EXPECT_EQ(two.client.endpoint.counters().sessions_lost.get(), 0U);
}

/// What is said of each packet of both ends. An answer to a ping is such a packet, so that without a limit pings follow
/// each other as long as there are sessions.
struct BothOverheard : Two {
  explicit BothOverheard(EndpointConfig config = small()) : Two(config, config) {
    net.tap = [this](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
      Loopback::Host& sender = &from == &client ? client : server;
      const Unreachable said{&from == &client ? server.address : client.address, bytes};
      if (says) sender.endpoint.unreachable({&said, 1}, net.now);
      return false;
    };
  }
  [[nodiscard]] std::uint64_t doubted() const {
    return client.endpoint.counters().peers_doubted.get() + server.endpoint.counters().peers_doubted.get();
  }
  bool says = true;
};

TEST(UnreachablePeer, IsAskedOnceASecondWhateverIsSaidOfBothEnds) {
  BothOverheard two;
  ASSERT_EQ(two.request(300).status, CallStatus::ok);
  two.net.run_for(Nanos{10 * kSecond});
  EXPECT_LE(two.doubted(), 2U * 11) << "docs/message_security.md: once a second";
  EXPECT_EQ(two.client.endpoint.counters().sessions_lost.get(), 0U);
  EXPECT_EQ(two.server.endpoint.counters().sessions_lost.get(), 0U);
}

/// Pings are in flight like messages, and congestion control counts them. Packets arrive one by one, so that after each
/// the peer can be doubted again.
TEST(UnreachablePeer, LeavesTheWindowToMessagesWhateverIsSaidOfBothEnds) {
  EndpointConfig config = small();
  config.cc.kind = CcKind::none;
  config.cc.max_window_bytes = 16 * 1472;
  config.ack_packets = 1;
  const auto time_of_a_mebibyte = [&](bool says) {
    BothOverheard two(config);
    two.net.impairment = {.reorder = 1'000'000, .delay = Nanos{500'000}, .reorder_by = Nanos{500'000}};
    two.says = says;
    EXPECT_EQ(two.request(1 << 20).status, CallStatus::ok);
    const Nanos begin = two.net.now;
    EXPECT_TRUE(two.until(two.server, EventKind::request));
    return two.net.now.value - begin.value;
  };
  const std::int64_t undisturbed = time_of_a_mebibyte(false);
  EXPECT_LE(time_of_a_mebibyte(true), undisturbed * 11 / 10);
}

/// A peer that answered is doubted again, when it is gone a second later.
TEST(UnreachablePeer, IsLostSoonThoughSomebodyHasLiedBefore) {
  Overheard two;
  two.says = true;
  ASSERT_TRUE(two.ask());
  two.says = false;
  two.net.run_for(Nanos{kSecond / 100});
  EXPECT_EQ(two.doubted(), 1U);
  EXPECT_LT(two.time_until_lost(), 4 * kSecond) << "a second, probes that are a second apart, a second";
  EXPECT_EQ(two.doubted(), 2U);
}

TEST(UnreachablePeer, WhatItHasAcknowledgedSinceIsNoNews) {
  Overheard two;
  std::vector<std::vector<std::uint8_t>> sent;
  for (int i = 0; i < 10; ++i) {
    two.client.events.clear();
    ASSERT_TRUE(two.ask());
    sent.push_back(two.last);
  }
  ASSERT_TRUE(two.ask());
  for (const auto& bytes : sent) two.say(bytes);
  EXPECT_EQ(two.doubted(), 0U);
  EXPECT_EQ(two.ignored(), sent.size());
}

TEST(UnreachablePeer, WhoHasNotReadThePacketIsNotHeard) {
  Overheard two;
  two.server.away = true;
  ASSERT_EQ(two.request(300).status, CallStatus::ok);
  two.net.settle();
  const std::vector<std::uint8_t> packet = two.last;
  packet::MessageHeader header;
  ASSERT_EQ(packet::parse(packet.data(), static_cast<std::uint32_t>(packet.size()), header), packet::MessageParse::ok);
  const std::uint64_t before = two.client.packets;
  std::uint64_t said = 0;
  const auto lie = [&](PeerAddress to, std::vector<std::uint8_t> bytes) {
    const Unreachable unreachable{to, bytes};
    two.client.endpoint.unreachable({&unreachable, 1}, two.net.now);
    ++said;
  };
  // Everything is right but one thing.
  for (std::size_t bit = 0; bit < 16U * 8; ++bit) {  // prefix, session, cookie
    if (bit / 8 == packet::MessageHeader::kFlags || bit / 8 == packet::MessageHeader::kWords) continue;  // say nothing
    auto bytes = packet;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    lie(two.server.address, bytes);
  }
  for (std::size_t length = 0; length < packet::MessageHeader::kFloorDistance; ++length) {
    lie(two.server.address, {packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(length)});
  }
  PeerAddress elsewhere = two.server.address;
  ++elsewhere.port;
  lie(elsewhere, packet);
  for (const std::uint64_t number : {header.packet_number + 1, header.packet_number + 1000, ~std::uint64_t{0}}) {
    auto bytes = packet;
    packet::store_be64(bytes.data() + packet::MessageHeader::kPacketNumber, number);
    lie(two.server.address, bytes);
  }
  Random random(5);
  for (int i = 0; i < 1'000'000; ++i) {  // who knows all but the cookie
    auto bytes = packet;
    packet::store_be64(bytes.data() + packet::MessageHeader::kCookie, random.next());
    bytes.resize(packet::MessageHeader::kLength);
    lie(two.server.address, std::move(bytes));
  }
  EXPECT_EQ(two.doubted(), 0U);
  EXPECT_EQ(two.ignored(), said);
  two.net.settle();
  EXPECT_EQ(two.client.packets, before);
  lie(two.server.address, packet);
  EXPECT_EQ(two.doubted(), 1U);
  two.net.settle();
  EXPECT_EQ(two.client.packets, before + 1) << "it asks at once";
}

/// A client whose request waits for its answer, which the server sends to where it was; and ICMP of all that it sends.
struct Waiting : Two {
  Waiting() {
    net.tap = [this](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
      if (&from != &server || !gone) return false;
      PeerAddress to = client.address;
      to.port = port;
      const Unreachable said{to, bytes};
      server.endpoint.unreachable({&said, 1}, net.now);
      return false;
    };
    server.handle = [this](const MessageEvent& event) {
      if (event.kind == EventKind::request) asked = event.id;
      return event.kind == EventKind::request;
    };
  }
  /// The server answers a second after it was asked, when the NAT has already forgotten the port.
  void answer_late() {
    ASSERT_EQ(request(300).status, CallStatus::ok);
    net.run_for(Nanos{kSecond});
    gone = true;
    ASSERT_EQ(server.endpoint.respond(asked, {payload.data(), 500, false}, {.copy = true}, net.now), CallStatus::ok);
    answered_at = net.now;
  }
  [[nodiscard]] std::uint64_t doubted() const { return server.endpoint.counters().peers_doubted.get(); }

  bool gone = false;
  std::uint16_t port = client.address.port;  ///< where it was
  MessageId asked{};
  Nanos answered_at{};
};

TEST(UnreachablePeer, ThatOpenedTheSessionIsFoundBehindItsNatsOtherPort) {
  Waiting two;
  two.answer_late();
  two.client.address.port = 5000;
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(Two::first(two.client, EventKind::response).status, MessageStatus::ok);
  EXPECT_GE(two.doubted(), 1U);
  EXPECT_EQ(two.server.endpoint.counters().sessions_lost.get(), 0U);
  two.net.run_for(Nanos{kSecond});
  EXPECT_EQ(two.server.endpoint.facts(two.there).peer, two.client.address);
}

TEST(UnreachablePeer, ThatOpenedTheSessionIsLostAfterHalfTheSilence) {
  Waiting two;
  two.answer_late();
  two.client.dead = true;
  ASSERT_TRUE(two.until(two.server, EventKind::lost));
  EXPECT_EQ(Two::first(two.server, EventKind::lost).reason, LossReason::unreachable);
  const std::int64_t silence = two.net.now.value - two.answered_at.value;
  EXPECT_GE(silence, small().peer_timeout.value / 2);
  EXPECT_GE(silence, small().keepalive.value) << "signs of life of an idle peer are so far apart";
  EXPECT_LT(silence, small().peer_timeout.value / 2 + kSecond);
  EXPECT_EQ(two.doubted(), 1U);
}

}  // namespace
}  // namespace warpline::message
