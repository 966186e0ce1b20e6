// SPDX-License-Identifier: Apache-2.0
// An endpoint whose only session has ended has nothing more to do, whatever the session waited for. The same is true of
// messages.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "warpline/message/two_testing.h"

namespace warpline::message {
namespace {

/// When an endpoint has something to do that has sent what was due and handed out its events. advance() is not called:
/// it would fire a timer that was left behind.
Nanos deadline_of(Endpoint& endpoint, Nanos now) {
  std::array<std::array<std::uint8_t, 2048>, 16> heads;
  std::array<Outgoing, 16> out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].head = heads[i].data();
    out[i].head_capacity = 2048;
  }
  while (endpoint.transmit(out, now) != 0) {
  }
  std::array<MessageEvent, 16> events;
  while (endpoint.poll(events) != 0) {
  }
  return endpoint.next_deadline();
}

/// Closes the client's session, and returns when the client has something to do then.
Nanos deadline_after_end(Two& two) {
  EXPECT_NE(two.client.endpoint.next_deadline(), kNever);
  EXPECT_EQ(two.client.endpoint.close(two.session, two.net.now), CallStatus::ok);
  return deadline_of(two.client.endpoint, two.net.now);
}

TEST(SessionEnd, LeavesNothingOfWhatIsInFlight) {
  Two two;
  two.server.dead = true;
  ASSERT_EQ(two.request(3000, {.deadline = Nanos{two.net.now.value + 1000 * kMs}}).status, CallStatus::ok);
  two.net.settle();
  EXPECT_EQ(deadline_after_end(two), kNever);
}

TEST(SessionEnd, LeavesNothingOfWhatIsBeingOpened) {
  Loopback net(3);
  Loopback::Host& client = net.add(small());
  const Opened opened = client.endpoint.connect(peer_address(Ipv4Address{{10, 0, 0, 9}}, 4000), {}, net.now);
  net.settle();
  EXPECT_NE(client.endpoint.next_deadline(), kNever);
  EXPECT_EQ(client.endpoint.close(opened.session, net.now), CallStatus::ok);
  EXPECT_EQ(deadline_of(client.endpoint, net.now), kNever);
}

TEST(SessionEnd, LeavesNoAcknowledgementThatIsOwed) {
  EndpointConfig config = small();
  config.ack_packets = 8;
  config.max_ack_delay = Nanos{kMs};
  Two two(config, config);
  two.net.run_for(Nanos{10 * kMs});
  ASSERT_EQ(two.server.endpoint.send(two.there, {two.payload.data(), 20, false}, {}, two.net.now).status,
            CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::message));
  EXPECT_LE(two.client.endpoint.next_deadline().value, two.net.now.value + config.max_ack_delay.value);
  EXPECT_EQ(deadline_after_end(two), kNever);
}

TEST(SessionEnd, LeavesNoPacketThatWaitsForItsPace) {
  EndpointConfig config = small();
  config.cc.kind = CcKind::timely;
  config.cc.timely.min_rate = 10'000;
  config.cc.max_window_bytes = 16 << 10;
  Two two(config, config);
  two.net.impairment.delay = Nanos{5 * kMs};  // beyond what TIMELY takes without lowering its rate
  ASSERT_EQ(two.request(1 << 20).status, CallStatus::ok);
  two.net.run_for(Nanos{2000 * kMs});
  ASSERT_EQ(Two::count(two.server, EventKind::request), 0) << "it is paced";
  EXPECT_EQ(deadline_after_end(two), kNever);
}

TEST(SessionEnd, LeavesNothingOfWhatArrivesAndIsGranted) {
  EndpointConfig config = small();
  config.grants = 16 << 10;
  Two two(config, config);
  const MessageId none{};
  ASSERT_NE(two.server.endpoint.send(two.there, {two.payload.data(), 1 << 20, false}, {}, two.net.now).id, none);
  two.net.run_for(Nanos{50'000});
  ASSERT_LT(two.client.endpoint.facts().free_receive_bytes, std::uint64_t{config.receive_bytes}) << "it arrives";
  EXPECT_EQ(deadline_after_end(two), kNever);
  EXPECT_EQ(two.client.endpoint.facts().free_receive_bytes, std::uint64_t{config.receive_bytes});
}

/// A request that waits for its turn has a slot, and a slot that becomes free is a reason to look whether a session
/// whose peer drains is over.
TEST(SessionEnd, LeavesNothingOfWhatWaitsForItsTurnWhileThePeerDrains) {
  Two two(small(), small(), {.ordered = true});
  int requests = 0;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    return &from == &two.server && bytes.size() > 500 && requests++ != 1;  // the second arrives, once
  };
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(two.server.endpoint.request(two.there, {two.payload.data(), 600, false}, {}, {}, two.net.now).status,
              CallStatus::ok);
  }
  two.net.settle();
  ASSERT_EQ(requests, 2);
  two.server.endpoint.drain(Nanos{two.net.now.value + 1000 * kMs}, two.net.now);
  ASSERT_TRUE(two.net.run([&] { return two.client.endpoint.facts(two.session).going_away; }));
  ASSERT_EQ(Two::count(two.client, EventKind::request), 0);
  EXPECT_EQ(deadline_after_end(two), kNever);
}

/// A client whose second message finds no room at the server, which keeps the first one.
struct NoRoom : Two {
  NoRoom() : Two(config(), config()) {
    EXPECT_EQ(send(config().receive_window).status, CallStatus::ok);
    EXPECT_TRUE(until(server, EventKind::message));
    net.run_for(Nanos{10 * kMs});
    free_messages = client.endpoint.facts().free_messages;
    blocked = send(20'000);
    EXPECT_EQ(blocked.status, CallStatus::ok);
    net.run_for(Nanos{10 * kMs});
    packets = client.packets;
  }
  static EndpointConfig config() {
    EndpointConfig config = small();
    config.receive_window = 64 << 10;
    return config;
  }
  Submitted send(std::uint32_t length) {
    return client.endpoint.send(session, {payload.data(), length, false}, {}, net.now);
  }

  Submitted blocked;
  std::uint32_t free_messages = 0;
  std::uint64_t packets = 0;  ///< of the client, until it waits
};

TEST(MessageEnd, LeavesNothingOfWhatWaitsForThePeersRoom) {
  NoRoom two;
  ASSERT_EQ(two.client.endpoint.cancel(two.blocked.id, two.net.now), CallStatus::ok);
  std::uint64_t turns = 0;
  two.client.work = [&] {
    ++turns;
    return false;
  };
  two.net.settle();
  EXPECT_EQ(two.client.endpoint.facts().free_messages, two.free_messages);
  EXPECT_EQ(two.client.packets, two.packets) << "the peer knows nothing of it";
  two.net.run_for(Nanos{3000 * kMs});
  EXPECT_LE(turns, 100U) << "nothing is to be done in this time";
}

TEST(MessageEnd, AtADeadlineLeavesNothingOfWhatWaitsForThePeersRoom) {
  NoRoom two;
  ASSERT_EQ(two.client.endpoint.cancel(two.blocked.id, two.net.now), CallStatus::ok);
  ASSERT_EQ(two.request(3000, {.deadline = Nanos{two.net.now.value + kMs}}).status, CallStatus::ok);
  two.net.run_for(Nanos{2 * kMs});
  EXPECT_EQ(Two::first(two.client, EventKind::response).status, MessageStatus::deadline);
  EXPECT_EQ(two.client.endpoint.facts().free_messages, two.free_messages);
}

}  // namespace
}  // namespace warpline::message
