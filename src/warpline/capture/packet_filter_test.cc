// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/packet_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace warpline::capture {
namespace {

/// A UDP datagram from port 7 to `port`, without payload.
std::vector<std::uint8_t> udp_to(std::uint8_t port) {
  std::vector<std::uint8_t> frame(42);
  frame[12] = 0x08;  // IPv4
  frame[14] = 0x45;
  frame[17] = 28;  // total length
  frame[23] = 17;  // UDP
  frame[35] = 7;
  frame[37] = port;
  return frame;
}

bool matches(const PacketFilter& filter, const std::vector<std::uint8_t>& frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  return filter.matches(frame.data(), length, length);
}

TEST(PacketFilter, WithoutAnExpressionAllMatch) {
  const auto filter = PacketFilter::compile("");
  ASSERT_TRUE(filter);
  EXPECT_TRUE(filter->matches_all());
  EXPECT_TRUE(matches(*filter, udp_to(9)));
}

TEST(PacketFilter, LooksAtHeaders) {
  const auto filter = PacketFilter::compile("udp port 9");
  ASSERT_TRUE(filter);
  EXPECT_FALSE(filter->matches_all());
  EXPECT_TRUE(matches(*filter, udp_to(9)));
  EXPECT_FALSE(matches(*filter, udp_to(10)));
}

TEST(PacketFilter, WhatWasNotKeptMatchesNothing) {
  const auto filter = PacketFilter::compile("udp port 9");
  const std::vector<std::uint8_t> frame = udp_to(9);
  EXPECT_FALSE(filter->matches(frame.data(), static_cast<std::uint32_t>(frame.size()), 34));
  EXPECT_FALSE(filter->matches(frame.data(), 0, 0));
}

TEST(PacketFilter, KnowsTheWholeLength) {
  const auto filter = PacketFilter::compile("greater 1000");
  const std::vector<std::uint8_t> frame = udp_to(9);
  EXPECT_TRUE(filter->matches(frame.data(), 1500, static_cast<std::uint32_t>(frame.size())));
  EXPECT_FALSE(matches(*filter, frame));
}

TEST(PacketFilter, ACopyOutlivesTheFirst) {
  auto filter = PacketFilter::compile("udp port 9");
  const PacketFilter copy = *filter;
  filter = PacketFilter::compile("");
  EXPECT_TRUE(matches(copy, udp_to(9)));
}

TEST(PacketFilter, WhatLibpcapDoesNotUnderstandIsRefused) {
  const auto filter = PacketFilter::compile("udp prot 9");
  ASSERT_FALSE(filter);
  EXPECT_EQ(filter.error().kind, ErrorKind::usage);
  EXPECT_THAT(filter.error().message(), testing::HasSubstr("'udp prot 9'"));
  EXPECT_THAT(filter.error().why, testing::HasSubstr("syntax error"));
}

TEST(PacketFilter, ItsProgramIsTheSameFilterElsewhere) {
  const PacketFilter compiled = *PacketFilter::compile("ether[0] = 0x61");
  const auto sent = PacketFilter::of_program(compiled.program());
  ASSERT_TRUE(sent) << sent.error().message();
  const std::uint8_t frame[] = {0x61, 0x62};
  EXPECT_TRUE(sent->matches(frame, 2, 2));
  EXPECT_FALSE(sent->matches(frame + 1, 1, 1));
  EXPECT_TRUE(PacketFilter::compile("")->program().empty());
  EXPECT_TRUE(PacketFilter::of_program({})->matches_all());
}

TEST(PacketFilter, WhatLibpcapCompilesIsTakenElsewhere) {
  for (const char* const expression :
       {"udp port 9", "ip6 and tcp dst portrange 1-100", "vlan 7 and not arp", "ip[0] & 0xf != 5",
        "len > 100 and ip[2:2] % 4 = 1", "ether[0] & 1 = 0 and ip[16] >= 224", "icmp6 or sctp",
        "host 10.0.0.1 or net 192.0.2.0/24", "tcp[tcpflags] & (tcp-syn|tcp-ack) != 0",
        "(ip[0] ^ 3) + 1 * 2 - 1 << 1 >> 1 = 7", "greater 60", "mpls 3", "pppoes and ip"}) {
    const auto compiled = PacketFilter::compile(expression);
    ASSERT_TRUE(compiled) << expression;
    EXPECT_TRUE(PacketFilter::of_program(compiled->program())) << expression;
  }
}

TEST(PacketFilter, AProgramThatDoesNotEndIsRefused) {
  EXPECT_FALSE(PacketFilter::of_program(std::vector<std::uint8_t>(8, 0)));  // loads and falls off its end
  EXPECT_FALSE(PacketFilter::of_program(std::vector<std::uint8_t>(7, 6)));
  const std::uint8_t unknown[] = {0xf6, 0x52, 0, 0, 0, 0, 0, 0};  // of RET's class
  EXPECT_FALSE(PacketFilter::of_program(unknown));
  const std::uint8_t beyond[] = {0x15, 0, 1, 0, 0, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0};  // jeq #0 jt 1; ret 1
  EXPECT_FALSE(PacketFilter::of_program(beyond));
  const std::uint8_t outside[] = {2, 0, 0, 0, 16, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0};  // st M[16]; ret 1
  EXPECT_FALSE(PacketFilter::of_program(outside));
  const std::uint8_t by_zero[] = {0x34, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0};  // div #0; ret 1
  EXPECT_FALSE(PacketFilter::of_program(by_zero));
  const std::uint8_t again[] = {5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 6, 0, 0, 0, 1, 0, 0, 0};  // ja -1; ret 1
  EXPECT_FALSE(PacketFilter::of_program(again));
}

}  // namespace
}  // namespace warpline::capture
