// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/endpoint.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "warpline/message/loopback_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

ConstBuffer bytes_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.data(), static_cast<std::uint32_t>(bytes.size()), false};
}

MutableBuffer room_in(std::vector<std::uint8_t>& bytes) {
  return {bytes.data(), static_cast<std::uint32_t>(bytes.size()), false};
}

EndpointConfig few() {
  EndpointConfig config;
  config.max_sessions = 8;
  config.max_messages = 512;
  config.max_sent_packets = 8192;
  config.receive_bytes = 80U << 20;
  return config;
}

/// Answers every request with its own bytes, and gives every message back.
void echo(Loopback& net, Loopback::Host& host) {
  host.handle = [&net, &host](const MessageEvent& event) {
    if (event.kind == EventKind::request) {
      SendOptions options;
      options.code = static_cast<std::uint16_t>(event.code + 1);
      EXPECT_EQ(host.endpoint.respond(event.id, {event.data, event.length}, options, net.now), CallStatus::ok);
      return true;
    }
    return event.kind == EventKind::sent && event.id.incoming;
  };
}

class Echo : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Echo, comes_back_as_it_was) {
  Loopback net(1);
  Loopback::Host& client = net.add(few());
  Loopback::Host& server = net.add(few());
  echo(net, server);
  const auto [session, there] = net.connect(client, server);
  const std::vector<std::uint8_t> sent = pattern(GetParam(), 5);
  std::vector<std::uint8_t> back(sent.size());
  RequestOptions options;
  options.context = 77;
  options.code = 41;
  const Submitted submitted = client.endpoint.request(session, bytes_of(sent), room_in(back), options, net.now);
  ASSERT_EQ(submitted.status, CallStatus::ok);
  ASSERT_TRUE(net.run([&] { return !client.events.empty(); }));
  const MessageEvent& event = client.events[0];
  EXPECT_EQ(event.kind, EventKind::response);
  EXPECT_EQ(event.status, MessageStatus::ok);
  EXPECT_EQ(event.context, 77U);
  EXPECT_EQ(event.code, 42);
  EXPECT_EQ(event.id, submitted.id);
  EXPECT_EQ(event.length, sent.size());
  EXPECT_EQ(back, sent);
  EXPECT_EQ(client.endpoint.counters().packets_lost.get(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Lengths, Echo,
                         ::testing::Values(0, 1, 32, 128, 129, 1375, 1376, 1377, 4096, 100'000, 1 << 20, 16 << 20));

TEST(Endpoint, refuses_a_secret_of_zeros) {
  EndpointConfig config = few();
  config.secret.emplace();
  const Result<Endpoint> without = Endpoint::create(config, Nanos{0});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().kind, ErrorKind::usage);
  EXPECT_NE(without.error().message().find("drawn at random"), std::string::npos) << without.error().message();
  config.secret->back() = 1;
  EXPECT_TRUE(Endpoint::create(config, Nanos{0}));
}

TEST(Endpoint, draws_its_secret_so_that_no_nonce_comes_again_after_a_restart) {
  std::set<std::uint64_t> nonces;
  for (int start = 0; start < 8; ++start) {
    auto endpoint = Endpoint::create(few(), Nanos{0});
    ASSERT_TRUE(endpoint);
    ASSERT_EQ(endpoint->connect(peer_address(Ipv4Address{{10, 0, 0, 1}}, 1), {}, Nanos{0}).status, CallStatus::ok);
    std::uint8_t head[kMinHeadCapacity];
    Outgoing out;
    out.head = head;
    out.head_capacity = sizeof head;
    ASSERT_EQ(endpoint->transmit({&out, 1}, Nanos{0}), 1U);
    packet::MessageHello hello;
    ASSERT_EQ(packet::parse(head, out.head_length, hello), packet::MessageParse::ok);
    nonces.insert(hello.nonce);
  }
  EXPECT_EQ(nonces.size(), 8U);
}

}  // namespace
}  // namespace warpline::message
