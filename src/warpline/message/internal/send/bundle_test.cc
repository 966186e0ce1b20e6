// SPDX-License-Identifier: Apache-2.0
// Small messages that travel together.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kBundledLength = 32;
constexpr std::uint32_t kPolled = 16;  ///< events that a host of the network handles before it sends

/// A client whose packets are seen, and a server that answers each request by its own bytes.
struct Talk : Two {
  explicit Talk(EndpointConfig client_config = small(), EndpointConfig server_config = small(),
                SessionOptions options = {})
      : Two(client_config, server_config, options) {
    server.handle = [this](const MessageEvent& event) {
      if (event.kind != EventKind::request) return event.kind == EventKind::sent && event.id.incoming;
      ++handled;
      EXPECT_EQ(server.endpoint.respond(event.id, {event.data, event.length}, {}, net.now), CallStatus::ok);
      return true;
    };
    net.tap = [this](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
      if (&from != &client) return false;
      packets.push_back(bytes);
      return std::exchange(lose_next, false);
    };
  }

  /// Requests of `length` bytes that differ, at once.
  void ask(std::uint32_t count, std::uint32_t length = kBundledLength) {
    for (std::uint32_t i = 0; i < count; ++i) {
      sent.push_back(pattern(length, sent.size() + 100));
      answers.emplace_back(length);
      RequestOptions options;
      options.context = sent.size() - 1;
      ASSERT_EQ(client.endpoint
                    .request(session, {sent.back().data(), length, false}, {answers.back().data(), length, false},
                             options, net.now)
                    .status,
                CallStatus::ok);
    }
  }

  bool all_answered() {
    if (!net.run([&] { return count(client, EventKind::response) == static_cast<std::ptrdiff_t>(sent.size()); })) {
      return false;
    }
    std::set<std::uint64_t> contexts;
    for (const MessageEvent& event : client.events) {
      if (event.kind == EventKind::response && event.status == MessageStatus::ok) contexts.insert(event.context);
    }
    return contexts.size() == sent.size() && answers == sent;
  }

  [[nodiscard]] std::ptrdiff_t bundles() const {
    return std::count_if(packets.begin(), packets.end(), [](const auto& bytes) {
      return (bytes[packet::MessageHeader::kFlags] & packet::kMessageBundle) != 0;
    });
  }

  std::vector<std::vector<std::uint8_t>> packets;  ///< of the client
  bool lose_next = false;
  std::deque<std::vector<std::uint8_t>> sent;
  std::deque<std::vector<std::uint8_t>> answers;
  std::uint32_t handled = 0;
};

TEST(Bundle, is_one_packet_each_way) {
  Talk talk;
  talk.ask(kPolled);
  talk.net.settle();
  EXPECT_EQ(talk.packets.size(), 1U);
  ASSERT_TRUE(talk.all_answered());
  EXPECT_EQ(talk.handled, kPolled);
  EXPECT_EQ(talk.bundles(), 1);
  EXPECT_EQ(talk.client.endpoint.counters().fragments_bundled.get(), kPolled - 1);
  EXPECT_EQ(talk.server.endpoint.counters().fragments_bundled.get(), kPolled - 1);
}

TEST(Bundle, ends_where_the_datagram_does) {
  EndpointConfig config = small();
  config.datagram_bytes = 300;
  Talk talk(config);
  talk.ask(40, 100);
  ASSERT_TRUE(talk.all_answered());
  for (const auto& packet : talk.packets) EXPECT_LE(packet.size(), 300U);
  EXPECT_GE(talk.bundles(), 19);
}

TEST(Bundle, takes_what_is_empty_and_leaves_what_is_long) {
  Talk talk;
  talk.ask(3, 0);
  talk.ask(2, 129);
  talk.ask(3, kInlineBytes);
  talk.net.settle();
  EXPECT_EQ(talk.packets.size(), 4U);  // three, one, one, three
  EXPECT_EQ(talk.bundles(), 2);
  ASSERT_TRUE(talk.all_answered());
}

TEST(Bundle, that_is_lost_comes_again_as_one) {
  Talk talk;
  talk.lose_next = true;
  talk.ask(20);
  ASSERT_TRUE(talk.all_answered());
  EXPECT_EQ(talk.handled, 20U);
  EXPECT_EQ(talk.client.endpoint.counters().fragments_repeated.get(), 20U) << "a probe of one, then the others";
  EXPECT_LE(talk.packets.size(), 6U);
}

TEST(Bundle, is_made_of_requests_that_were_lost_one_by_one) {
  Talk talk;
  for (int i = 0; i < 3; ++i) {
    talk.lose_next = true;
    talk.ask(1);
    talk.net.settle();
  }
  EXPECT_EQ(talk.client.endpoint.counters().fragments_bundled.get(), 0U);
  ASSERT_TRUE(talk.all_answered());
  EXPECT_EQ(talk.handled, 3U);
  EXPECT_GT(talk.client.endpoint.counters().fragments_bundled.get(), 0U) << "they are due at the same time";
}

TEST(Bundle, that_comes_twice_is_taken_once) {
  Talk talk;
  talk.net.impairment.duplicate = 1'000'000;
  talk.ask(20);
  ASSERT_TRUE(talk.all_answered());
  EXPECT_EQ(talk.handled, 20U);
  EXPECT_GT(talk.server.endpoint.counters().dropped(MessageDrop::stale), 0U);
}

TEST(Bundle, of_which_a_part_finds_no_room_comes_again_in_part) {
  EndpointConfig server_config = small();
  server_config.max_messages = 8;
  Talk talk(small(), server_config);
  talk.ask(30);
  ASSERT_TRUE(talk.all_answered());
  EXPECT_EQ(talk.handled, 30U);
  EXPECT_GT(talk.server.endpoint.counters().dropped(MessageDrop::over_share), 0U);
}

TEST(Bundle, that_lies_about_a_length_is_taken_up_to_there) {
  Talk talk;
  bool lie = true;
  talk.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    if (&from != &talk.client || !lie) return false;
    lie = false;
    packet::MessageHeader header;
    EXPECT_EQ(packet::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), header), packet::MessageParse::ok);
    const std::uint32_t third =
        header.length() + 2 * (kBundledLength + packet::MessageFragment::kLength) - packet::MessageFragment::kLength;
    packet::store_be32(bytes.data() + third + packet::MessageFragment::kTotal, 0xffffffff);
    return false;
  };
  talk.ask(5);
  talk.net.run_for(Nanos{6'000});
  EXPECT_EQ(talk.handled, 2U);
  EXPECT_EQ(talk.server.endpoint.counters().dropped(MessageDrop::bad_fragment), 1U);
  ASSERT_TRUE(talk.all_answered());
  EXPECT_EQ(talk.handled, 5U);
}

TEST(Bundle, is_not_sent_to_who_wants_none) {
  EndpointConfig config = small();
  config.bundles = false;
  Talk talk(small(), config);
  talk.ask(kPolled);
  ASSERT_TRUE(talk.all_answered());
  EXPECT_EQ(talk.bundles(), 0);
  EXPECT_EQ(talk.server.endpoint.counters().fragments_bundled.get(), kPolled - 1) << "the other way they come";
}

TEST(Bundle, is_not_sent_by_go_back_n) {
  EndpointConfig config = small();
  config.reliability = Reliability::go_back_n;
  Talk talk(config);
  talk.ask(20);
  ASSERT_TRUE(talk.all_answered());
  EXPECT_EQ(talk.bundles(), 0);
}

TEST(Bundle, keeps_the_order_of_ordered_sessions) {
  Talk talk(small(), small(), {.ordered = true});
  std::vector<std::uint32_t> order;
  talk.server.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::request) return false;
    order.push_back(event.code);
    return talk.server.endpoint.respond(event.id, {}, {}, talk.net.now) == CallStatus::ok;
  };
  talk.lose_next = true;
  for (std::uint16_t i = 0; i < 40; ++i) {
    RequestOptions options;
    options.code = i;
    ASSERT_EQ(talk.request(i % 60, options).status, CallStatus::ok);
  }
  ASSERT_TRUE(talk.net.run([&] { return Two::count(talk.client, EventKind::response) == 40; }));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Bundle, whose_headers_lie_in_device_memory_is_not_taken) {
  Talk talk;
  std::vector<std::uint8_t> packet;
  talk.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    if (&from == &talk.client && packet.empty()) packet = bytes;
    return &from == &talk.client;
  };
  talk.ask(20);
  talk.net.settle();
  ASSERT_GT(packet.size(), kMaxHeadBytes);
  Datagram datagram;
  datagram.head = packet.data();
  datagram.head_length = kMaxHeadBytes;
  datagram.rest = packet.data() + kMaxHeadBytes;
  datagram.rest_length = static_cast<std::uint32_t>(packet.size()) - kMaxHeadBytes;
  datagram.rest_device = true;
  datagram.from = talk.client.address;
  talk.server.endpoint.receive({&datagram, 1}, talk.net.now);
  talk.net.settle();
  EXPECT_EQ(talk.handled, 0U);
  EXPECT_EQ(talk.server.endpoint.counters().dropped(MessageDrop::bad_fragment), 1U);
}

}  // namespace
}  // namespace warpline::message
