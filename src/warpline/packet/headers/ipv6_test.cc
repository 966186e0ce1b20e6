// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/ipv6.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/packet/headers/ipv6_extension.h"

namespace warpline::packet {
namespace {

TEST(Ipv6, BytesOnTheWire) {
  Ipv6Header header;
  header.traffic_class = 0xab;
  header.flow_label = 0x12345;
  header.payload_length = 0x0102;
  header.next_header = kProtocolTcp;
  header.hop_limit = 7;
  header.source = kTestSourceV6;
  header.destination = kTestDestinationV6;
  FrameBytes bytes(40);
  emit(header, bytes.data());
  EXPECT_EQ(bytes, (FrameBytes{0x6a, 0xb1, 0x23, 0x45, 1,    2, 6, 7, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0,    0,
                               0,    0,    0,    1,    0xfd, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 2}));
}

TEST(Ipv6, Text) {
  Ipv6Header header;
  header.source = kTestSourceV6;
  header.destination = kTestDestinationV6;
  header.next_header = 17;
  header.payload_length = 26;
  EXPECT_EQ(to_string(header), "fd00::1 > fd00::12:3402 next 17 length 26 hops 64");
  header.traffic_class = 0xb8;
  header.flow_label = 0xbeef;
  EXPECT_EQ(to_string(header), "fd00::1 > fd00::12:3402 next 17 length 26 hops 64 class 0xb8 flow 0xbeef");
}

WARPLINE_PROPERTY(Ipv6Property, EmittedIsParsed,
                  (std::uint8_t traffic_class, std::uint16_t length, std::uint8_t next, std::uint8_t hops)) {
  Ipv6Header header;
  header.traffic_class = traffic_class;
  header.flow_label = *rc::gen::inRange(0U, 1U << 20);
  header.payload_length = length;
  header.next_header = next;
  header.hop_limit = hops;
  header.source.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 16>>();
  header.destination.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 16>>();
  FrameBytes bytes(40);
  emit(header, bytes.data());
  Ipv6Header back;
  RC_ASSERT(parse(bytes.data(), 40U + length, back) == Verdict::forward);
  RC_ASSERT(back == header);
}

struct Walk {
  Verdict verdict;
  Ipv6Chain chain;
};

Walk walk(std::uint8_t first, const FrameBytes& bytes) {
  SegmentedFrame frame(bytes);
  Walk result{};
  result.verdict = walk_ipv6_extensions(frame.ref(), 0, static_cast<std::uint32_t>(bytes.size()), first, result.chain);
  return result;
}

TEST(Ipv6Extensions, NoneLeavesTheProtocol) {
  const Walk none = walk(kProtocolUdp, counting(8));
  EXPECT_EQ(none.verdict, Verdict::forward);
  EXPECT_EQ(none.chain.protocol, kProtocolUdp);
  EXPECT_EQ(none.chain.offset, 0U);
}

TEST(Ipv6Extensions, EachKindHasItsLength) {
  const FrameBytes hop_by_hop{60, 0, 1, 4, 0, 0, 0, 0};
  const FrameBytes destination{43, 1, 5, 2, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0};
  const FrameBytes routing{51, 0, 0, 0, 0, 0, 0, 0};
  const FrameBytes authentication{6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1};
  const Walk all = walk(kExtensionHopByHop, hop_by_hop + destination + routing + authentication);
  EXPECT_EQ(all.verdict, Verdict::forward);
  EXPECT_EQ(all.chain.protocol, kProtocolTcp);
  EXPECT_EQ(all.chain.offset, 44U);
  EXPECT_FALSE(all.chain.source_routed);
}

TEST(Ipv6Extensions, RoutingWithSegmentsLeft) {
  const Walk routed = walk(kExtensionRouting, FrameBytes{17, 2, 0, 1, 0, 0, 0, 0} + counting(16));
  EXPECT_EQ(routed.verdict, Verdict::forward);
  EXPECT_TRUE(routed.chain.source_routed);
}

TEST(Ipv6Extensions, AFragmentEndsTheChainAndAnAtomicOneDoesNot) {
  const Walk fragment = walk(kExtensionFragment, {60, 0, 0, 8, 0, 0, 0, 1, 1, 2, 3});
  EXPECT_EQ(fragment.verdict, Verdict::forward);
  EXPECT_TRUE(fragment.chain.fragment);
  EXPECT_EQ(fragment.chain.protocol, kExtensionDestination);
  EXPECT_EQ(fragment.chain.offset, 8U);
  const Walk atomic = walk(kExtensionFragment, {60, 0, 0, 0, 0, 0, 0, 1, 17, 0, 1, 4, 0, 0, 0, 0});
  EXPECT_EQ(atomic.verdict, Verdict::forward);
  EXPECT_FALSE(atomic.chain.fragment);
  EXPECT_EQ(atomic.chain.protocol, kProtocolUdp);
  EXPECT_EQ(atomic.chain.offset, 16U);
}

TEST(Ipv6Extensions, AsManyAsAllowed) {
  FrameBytes bytes;
  for (std::uint32_t i = 1; i < kMaxIpv6Extensions; ++i) bytes = bytes + FrameBytes{60, 0, 1, 4, 0, 0, 0, 0};
  EXPECT_EQ(walk(kExtensionDestination, bytes + FrameBytes{17, 0, 1, 4, 0, 0, 0, 0}).verdict, Verdict::forward);
  bytes = bytes + FrameBytes{60, 0, 1, 4, 0, 0, 0, 0};
  EXPECT_EQ(walk(kExtensionDestination, bytes + FrameBytes{17, 0, 1, 4, 0, 0, 0, 0}).verdict, Verdict::ipv6_extension);
}

}  // namespace
}  // namespace warpline::packet
