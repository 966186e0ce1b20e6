// SPDX-License-Identifier: Apache-2.0
// What is high goes before what is normal, which goes on nevertheless.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "warpline/message/endpoint.h"
#include "warpline/message/traffic_testing.h"
#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

constexpr RequestOptions kHigh{.code = 1, .priority = Priority::high};

/// The server answers at once, and keeps the codes in the order of their arrival.
void answer_at_once(Two& two, std::vector<std::uint16_t>& codes) {
  two.server.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::request) return false;
    codes.push_back(event.code);
    EXPECT_EQ(two.server.endpoint.respond(event.id, {}, {}, two.net.now), CallStatus::ok);
    return true;
  };
}

TEST(Priority, high_overtakes_what_was_submitted_before) {
  Two two;
  std::vector<std::uint16_t> codes;
  answer_at_once(two, codes);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(two.request(30'000).status, CallStatus::ok);
  ASSERT_EQ(two.request(100, kHigh).status, CallStatus::ok);
  ASSERT_TRUE(two.net.run([&] { return codes.size() == 21; }));
  EXPECT_EQ(codes[0], 1);
}

TEST(Priority, high_gets_a_slot_before_those_that_wait) {
  EndpointConfig config = small();
  config.max_messages = 1024;
  Two two(config, config);
  std::vector<std::uint16_t> codes;
  answer_at_once(two, codes);
  for (int i = 0; i < 150; ++i) ASSERT_EQ(two.request(100).status, CallStatus::ok);
  for (int i = 0; i < 90; ++i) ASSERT_EQ(two.request(100, kHigh).status, CallStatus::ok);
  EXPECT_EQ(two.client.endpoint.facts().queued_messages, 176U);
  ASSERT_TRUE(two.net.run([&] { return codes.size() == 240; }));
  // One of each eight that got a slot was normal.
  EXPECT_EQ(std::count(codes.begin(), codes.begin() + 64, 1), 0);
  EXPECT_EQ(std::count(codes.begin() + 64, codes.begin() + 128, 0), 8);
}

/// Cancelled, too late or at their end: those that wait leave both queues.
TEST(Priority, what_waits_ends_as_other_messages_do) {
  Two two;
  two.server.away = true;
  for (int i = 0; i < 64; ++i) ASSERT_EQ(two.request(10).status, CallStatus::ok);
  const Nanos deadline{two.net.now.value + 50'000};
  const Submitted cancelled = two.request(10, {.context = 1, .priority = Priority::high});
  ASSERT_EQ(two.request(10, {.context = 2, .priority = Priority::high, .deadline = deadline}).status, CallStatus::ok);
  ASSERT_EQ(two.request(10, {.context = 3, .priority = Priority::high}).status, CallStatus::ok);
  ASSERT_EQ(two.client.endpoint.cancel(cancelled.id, two.net.now), CallStatus::ok);
  two.net.run_for(Nanos{kMs});
  ASSERT_EQ(two.client.events.size(), 2U);
  EXPECT_EQ(two.client.events[0].status, MessageStatus::cancelled);
  EXPECT_EQ(two.client.events[1].status, MessageStatus::deadline);
  EXPECT_EQ(two.client.endpoint.facts().queued_messages, 1U);
  ASSERT_EQ(two.client.endpoint.close(two.session, two.net.now), CallStatus::ok);
  two.net.run_for(Nanos{kMs});
  EXPECT_EQ(two.client.events.size(), 68U);
  EXPECT_EQ(two.client.endpoint.facts().free_messages, 256U);
}

/// A client that sends bursts of 8 packets into the void, and whose they are.
struct Bursts {
  explicit Bursts(std::size_t count) : client(net.add(config())), server(net.add(config())), sessions(count) {
    for (SessionId& session : sessions) session = net.connect(client, server).first;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].head = heads.data() + i * 2048;
      out[i].head_capacity = out[i].copy_up_to = 2048;
    }
  }
  static EndpointConfig config() {
    EndpointConfig config = small();
    config.cc.kind = CcKind::none;
    return config;
  }

  void send(std::size_t session, std::uint32_t length, Priority priority) {
    const SendOptions options{.code = static_cast<std::uint16_t>(priority), .priority = priority};
    ASSERT_EQ(client.endpoint.send(sessions[session], {payload.data(), length, false}, options, net.now).status,
              CallStatus::ok);
  }
  /// How many of the next 8 packets begin with a message of this priority.
  std::uint32_t burst(Priority priority) {
    EXPECT_EQ(client.endpoint.transmit(out, net.now), out.size());
    std::uint32_t found = 0;
    for (const Outgoing& each : out) {
      packet::MessageHeader header;
      packet::MessageFragment fragment;
      EXPECT_EQ(packet::parse(each.head, each.head_length, header), packet::MessageParse::ok);
      const std::uint8_t* const at = each.head + packet::MessageHeader::kLength + header.ack_length();
      EXPECT_EQ(packet::parse(at, header.payload_length, fragment), packet::MessageParse::ok);
      EXPECT_EQ(fragment.has(packet::MessageFragment::kHigh), fragment.code == 1);
      found += fragment.code == static_cast<std::uint16_t>(priority) ? 1 : 0;
    }
    return found;
  }

  Loopback net{5};
  Loopback::Host& client;
  Loopback::Host& server;
  std::vector<SessionId> sessions;
  std::vector<std::uint8_t> payload = pattern(60'000, 1);
  std::vector<std::uint8_t> heads = std::vector<std::uint8_t>(8 * 2048);
  std::array<Outgoing, 8> out;
};

TEST(Priority, one_of_eight_packets_is_normal_beside_endless_high) {
  Bursts bursts(1);
  bursts.send(0, 30'000, Priority::normal);
  for (int i = 0; i < 5; ++i) bursts.send(0, 60'000, Priority::high);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(bursts.burst(Priority::normal), 1U) << i;
}

TEST(Priority, one_of_eight_turns_goes_to_sessions_without_high) {
  Bursts bursts(3);
  for (int i = 0; i < 8; ++i) {
    bursts.send(0, 60'000, Priority::normal);
    bursts.send(1, 60'000, Priority::high);
    bursts.send(2, 60'000, Priority::high);
  }
  std::uint32_t normal = 0;
  for (int i = 0; i < 64; ++i) normal += bursts.burst(Priority::normal);
  EXPECT_EQ(normal, 8U * 8U);
}

/// Sessions with something high take turns before all others.
TEST(Priority, goes_before_other_sessions) {
  Bursts bursts(4);
  for (const std::size_t session : {0U, 1U, 2U}) bursts.send(session, 60'000, Priority::normal);
  bursts.send(3, 3000, Priority::high);
  EXPECT_EQ(bursts.burst(Priority::high), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(bursts.out[i].session, bursts.sessions[3].index);
  EXPECT_EQ(bursts.burst(Priority::high), 0U);
}

/// Responses are high as their requests are, or as the server has them.
TEST(Priority, responses_to_high_requests_are_high) {
  for (const bool asked : {true, false}) {
    Two two;
    two.response.resize(200'000);
    std::vector<MessageId> requests;
    two.server.handle = [&](const MessageEvent& event) {
      if (event.kind == EventKind::request) requests.push_back(event.id);
      return event.kind == EventKind::request;
    };
    for (std::uint64_t i = 0; i < 11; ++i) {
      const Priority priority = i == 10 && asked ? Priority::high : Priority::normal;
      ASSERT_EQ(two.request(10, {.context = i, .priority = priority}).status, CallStatus::ok);
    }
    ASSERT_TRUE(two.net.run([&] { return requests.size() == 11; }));
    // The high one overtook the others on its way here.
    const std::size_t high = asked ? 0 : 10;
    for (std::size_t i = 0; i < 11; ++i) {
      if (i == high) continue;
      ASSERT_EQ(two.server.endpoint.respond(requests[i], {two.payload.data(), 20'000, false}, {}, two.net.now),
                CallStatus::ok);
    }
    const SendOptions options{.priority = asked ? Priority::normal : Priority::high};
    ASSERT_EQ(two.server.endpoint.respond(requests[high], {two.payload.data(), 2000, false}, options, two.net.now),
              CallStatus::ok);
    ASSERT_TRUE(two.until(two.client, EventKind::response));
    EXPECT_EQ(Two::first(two.client, EventKind::response).context, 10U);
  }
}

/// The order of an ordered session stands above priorities.
TEST(Priority, is_none_on_ordered_sessions) {
  Two two(small(), small(), {.ordered = true});
  bool told = false;
  two.net.tap = [&](const Loopback::Host&, std::vector<std::uint8_t>& bytes) {
    packet::MessageHeader header;
    const auto length = static_cast<std::uint32_t>(bytes.size());
    const bool has = packet::parse(bytes.data(), length, header) == packet::MessageParse::ok &&
                     header.has(packet::kMessageHasFragment);
    const std::uint8_t* const at = bytes.data() + packet::MessageHeader::kLength + header.ack_length();
    told = told || (has && (at[0] & packet::MessageFragment::kHigh) != 0);
    return false;
  };
  std::vector<std::uint16_t> codes;
  answer_at_once(two, codes);
  for (std::uint16_t i = 0; i < 100; ++i) {
    const Priority priority = i % 3 == 0 ? Priority::high : Priority::normal;
    ASSERT_EQ(two.request(i % 7 * 900, {.code = i, .priority = priority}).status, CallStatus::ok);
  }
  ASSERT_TRUE(two.net.run([&] { return codes.size() == 100; }));
  EXPECT_TRUE(std::is_sorted(codes.begin(), codes.end()));
  EXPECT_FALSE(told);
}

TEST(Priority, loses_and_repeats_nothing_whatever_the_network_does) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Loopback net(seed, {.loss = 30'000, .duplicate = 10'000, .reorder = 200'000});
    EndpointConfig config = small();
    config.max_messages = 2048;
    Loopback::Host& one = net.add(config);
    Loopback::Host& other = net.add(config);
    const auto [here, there] = net.connect(one, other);
    Traffic traffic(net, seed,
                    {.messages = 500, .outstanding = 300, .max_length = 20'000, .give_up = true, .some_high = true});
    traffic.add(one, here);
    traffic.add(other, there);
    EXPECT_TRUE(traffic.run(Nanos{20'000 * kMs})) << seed;
    traffic.check();
  }
}

}  // namespace
}  // namespace warpline::message
