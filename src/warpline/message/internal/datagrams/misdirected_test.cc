// SPDX-License-Identifier: Apache-2.0
// Packets that come to another endpoint at the address of theirs.
#include <gtest/gtest.h>

#include "warpline/message/two_testing.h"

namespace warpline::message {
namespace {

EndpointConfig numbered(std::uint8_t endpoint, std::uint16_t endpoints) {
  EndpointConfig config = small();
  config.endpoint = endpoint;
  config.endpoints = endpoints;
  return config;
}

/// Has `other` get what the client sends.
void lead_to(Two& two, Loopback::Host& other) {
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& packet) {
    if (&from != &two.client) return false;
    two.net.inject(other, two.client.address, packet);
    return true;
  };
}

TEST(Misdirected, packet_is_dropped_and_its_session_lives) {
  Two two(small(), numbered(1, 2));
  Loopback::Host& other = two.net.add(numbered(0, 2));
  lead_to(two, other);
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  two.net.run_for(Nanos{20'000'000});
  EXPECT_GT(other.endpoint.counters().dropped(MessageDrop::misdirected), 0U);
  EXPECT_EQ(other.endpoint.counters().dropped(MessageDrop::unknown_session), 0U);
  EXPECT_EQ(other.endpoint.counters().packets_out.get(), 0U);
  two.net.tap = nullptr;
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  EXPECT_EQ(Two::count(two.client, EventKind::lost), 0);
}

TEST(Misdirected, are_not_those_for_an_endpoint_that_is_not_there) {
  Two two(small(), numbered(2, 3));
  for (const std::uint16_t endpoints : {0, 1, 2}) {
    Loopback::Host& other = two.net.add(numbered(0, endpoints));
    lead_to(two, other);
    ASSERT_EQ(two.request(32).status, CallStatus::ok);
    two.net.run_for(Nanos{20'000'000});
    EXPECT_EQ(other.endpoint.counters().dropped(MessageDrop::misdirected), 0U);
    EXPECT_GT(other.endpoint.counters().dropped(MessageDrop::unknown_session), 0U);
    EXPECT_GT(other.endpoint.counters().packets_out.get(), 0U) << "a reset";
  }
}

TEST(Misdirected, cannot_be_said_of_endpoints_without_numbers) {
  for (const EndpointConfig& config : {numbered(2, 2), numbered(0, 257)}) {
    const auto made = Endpoint::create(config, Nanos{});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().kind, ErrorKind::usage);
  }
  EXPECT_TRUE(Endpoint::create(numbered(255, 256), Nanos{}).ok());
  EXPECT_TRUE(Endpoint::create(numbered(9, 0), Nanos{}).ok());
}

}  // namespace
}  // namespace warpline::message
