// SPDX-License-Identifier: Apache-2.0
// More messages than a session has slots.
#include <gtest/gtest.h>

#include <vector>

#include "warpline/message/endpoint.h"
#include "warpline/message/traffic_testing.h"
#include "warpline/message/two_testing.h"

namespace warpline::message {
namespace {

/// Answers at once with nothing, and keeps the codes in the order of their arrival.
std::vector<std::uint16_t>& answer(Two& two, std::vector<std::uint16_t>& codes) {
  two.server.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::request) return false;
    codes.push_back(event.code);
    EXPECT_EQ(two.server.endpoint.respond(event.id, {}, {}, two.net.now), CallStatus::ok);
    return true;
  };
  return codes;
}

TEST(Queue, holds_what_has_no_slot_and_sends_it_in_order) {
  for (const bool ordered : {false, true}) {
    Two two(small(), small(), {.ordered = ordered});
    std::vector<std::uint16_t> codes;
    answer(two, codes);
    for (std::uint16_t i = 0; i < 190; ++i) {
      ASSERT_EQ(two.request(i % 7 == 0 ? 5000 : 32, {.context = i, .code = i}).status, CallStatus::ok) << i;
    }
    EXPECT_EQ(two.client.endpoint.facts().queued_messages, 126U);
    EXPECT_EQ(two.client.endpoint.facts(two.session).messages, 64U);
    ASSERT_TRUE(two.net.run([&] { return Two::count(two.client, EventKind::response) == 190; }));
    for (const MessageEvent& event : two.client.events) EXPECT_EQ(event.status, MessageStatus::ok);
    EXPECT_EQ(two.client.endpoint.facts().queued_messages, 0U);
    EXPECT_EQ(two.client.endpoint.counters().messages_queued.get(), 126U);
    ASSERT_EQ(codes.size(), 190U);
    for (std::uint16_t i = 0; ordered && i < 190; ++i) EXPECT_EQ(codes[i], i);
  }
}

TEST(Queue, that_is_full_says_so_and_counts) {
  EndpointConfig config = small();
  config.max_queued = 10;
  Two two(config);
  for (int i = 0; i < 74; ++i) ASSERT_EQ(two.request(32).status, CallStatus::ok);
  EXPECT_EQ(two.request(32).status, CallStatus::no_slot);
  EXPECT_EQ(two.client.endpoint.send(two.session, {}, {}, two.net.now).status, CallStatus::no_slot);
  EXPECT_EQ(two.client.endpoint.counters().queue_full.get(), 2U);
  config.max_queued = 1000;  // of 256 messages
  Two many(config);
  int taken = 0;
  while (many.request(32).status == CallStatus::ok) ++taken;
  EXPECT_EQ(taken, 64 + 128);
}

TEST(Queue, leaves_what_is_cancelled_or_late_unsent) {
  for (const bool ordered : {false, true}) {
    Two two(small(), small(), {.ordered = ordered});
    std::vector<std::uint16_t> codes;
    answer(two, codes);
    two.server.away = true;
    std::vector<MessageId> ids;
    for (std::uint16_t i = 0; i < 100; ++i) {
      RequestOptions options{.context = i, .code = i};
      if (i >= 64 && i % 3 == 1) options.deadline = Nanos{two.net.now.value + 10'000 + i};
      ids.push_back(two.request(32, options).id);
    }
    for (std::uint16_t i = 66; i < 100; i += 3) {
      ASSERT_EQ(two.client.endpoint.cancel(ids[i], two.net.now), CallStatus::ok);
      EXPECT_EQ(two.client.endpoint.cancel(ids[i], two.net.now), CallStatus::unknown_message);
    }
    two.net.run_for(Nanos{kMs});
    ASSERT_EQ(two.client.events.size(), 24U);
    for (const MessageEvent& event : two.client.events) {
      EXPECT_EQ(event.status, event.context % 3 == 0 ? MessageStatus::cancelled : MessageStatus::deadline);
      EXPECT_EQ(event.reach, Reach::never_sent);
    }
    two.net.come_back(two.server);
    ASSERT_TRUE(two.net.run([&] { return two.client.events.size() == 100; }));
    EXPECT_EQ(codes.size(), 76U);
  }
}

TEST(Queue, ends_with_its_session) {
  Two two;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_EQ(two.client.endpoint.close(two.session, two.net.now), CallStatus::ok);
  two.net.run_for(Nanos{kMs});
  ASSERT_EQ(two.client.events.size(), 101U);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(two.client.events[i].status, MessageStatus::peer_lost);
  EXPECT_EQ(two.client.events[100].kind, EventKind::lost);
  EXPECT_EQ(two.client.endpoint.facts().queued_messages, 0U);
  EXPECT_EQ(two.client.endpoint.facts().free_messages, 256U);
}

/// Before the handshake nobody knows how long fragments may be.
TEST(Queue, that_began_with_the_session_is_cut_as_its_path_allows) {
  EndpointConfig server = small();
  server.datagram_bytes = 400;
  Loopback net(1);
  Loopback::Host& one = net.add(small());
  Loopback::Host& other = net.add(server);
  const std::vector<std::uint8_t> payload = pattern(3000, 1);
  const Opened opened = one.endpoint.connect(other.address, {}, net.now);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(one.endpoint.send(opened.session, {payload.data(), 3000, false}, {}, net.now).status, CallStatus::ok);
  }
  int right = 0;
  other.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::message) return false;
    right += std::vector<std::uint8_t>(event.data, event.data + event.length) == payload ? 1 : 0;
    return other.endpoint.release(event.id, net.now) == CallStatus::ok;
  };
  EXPECT_TRUE(net.run([&] { return right == 100; }));
}

TEST(Queue, loses_and_repeats_nothing_whatever_the_network_does) {
  for (const bool ordered : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Loopback net(seed, {.loss = 30'000, .duplicate = 10'000, .reorder = 200'000});
      EndpointConfig config = small();
      config.max_messages = 2048;
      Loopback::Host& one = net.add(config);
      Loopback::Host& other = net.add(config);
      const auto [here, there] = net.connect(one, other, {.ordered = ordered});
      Traffic traffic(net, seed,
                      {.messages = 500, .outstanding = 300, .max_length = 20'000, .ordered = ordered, .give_up = true});
      traffic.add(one, here);
      traffic.add(other, there);
      EXPECT_TRUE(traffic.run(Nanos{20'000 * kMs})) << seed;
      traffic.check();
      EXPECT_GT(one.endpoint.counters().messages_queued.get(), 100U);
    }
  }
}

}  // namespace
}  // namespace warpline::message
