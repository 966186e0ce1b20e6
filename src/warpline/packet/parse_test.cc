// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/parse.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::packet {
namespace {

/// Everything that parse() found, comparable.
auto fields(const ParsedFrame& p) {
  return std::tuple(p.verdict, p.l3, p.l4, p.protocol, p.vlan_tags, p.fragment, p.source_routed, p.vlan[0], p.vlan[1],
                    p.ether_type, p.l2_length, p.l3_offset, p.l3_length, p.l4_offset, p.l4_length, p.payload_offset,
                    p.payload_length);
}

ParsedFrame parsed(const FrameBytes& bytes) {
  SegmentedFrame frame(bytes);
  return parse(frame.ref());
}

struct Place {
  L3Kind l3;
  L4Kind l4;
  std::uint32_t l3_offset, l3_length, l4_offset, l4_length, payload_offset, payload_length;
};

void expect_place(const FrameBytes& bytes, const Place& place) {
  const ParsedFrame p = parsed(bytes);
  EXPECT_EQ(name(p.verdict), "forward");
  EXPECT_EQ(p.l3, place.l3);
  EXPECT_EQ(p.l4, place.l4);
  EXPECT_EQ(p.l2_length, place.l3 == L3Kind::none ? p.l2_length : place.l3_offset);
  EXPECT_EQ(p.l3_offset, place.l3_offset);
  EXPECT_EQ(p.l3_length, place.l3_length);
  EXPECT_EQ(p.l4_offset, place.l4_offset);
  EXPECT_EQ(p.l4_length, place.l4_length);
  EXPECT_EQ(p.payload_offset, place.payload_offset);
  EXPECT_EQ(p.payload_length, place.payload_length);
}

TEST(Parse, UdpOverIpv4LeavesThePaddingOut) {
  const FrameBytes padded = ipv4_frame(kProtocolUdp, udp_datagram(counting(5))) + FrameBytes(13);
  expect_place(padded, {L3Kind::ipv4, L4Kind::udp, 14, 20, 34, 8, 42, 5});
}

TEST(Parse, UdpLengthBelowTheDatagramsEndsThePayload) {
  expect_place(ipv4_frame(kProtocolUdp, udp_datagram(counting(5)) + counting(7)),
               {L3Kind::ipv4, L4Kind::udp, 14, 20, 34, 8, 42, 5});
}

TEST(Parse, TcpWithOptionsOverIpv4WithOptions) {
  expect_place(ipv4_frame(kProtocolTcp, tcp_segment(counting(3), {1, 1, 1, 1}), {}, {148, 4, 0, 0}),
               {L3Kind::ipv4, L4Kind::tcp, 14, 24, 38, 24, 62, 3});
}

TEST(Parse, EchoOfBothFamilies) {
  expect_place(ipv4_frame(kProtocolIcmp, icmp_message(kIcmpEchoRequest, counting(3))),
               {L3Kind::ipv4, L4Kind::icmp, 14, 20, 34, 8, 42, 3});
  expect_place(ipv6_frame(kProtocolIcmpv6, icmp_message(kIcmpv6EchoRequest, counting(3))),
               {L3Kind::ipv6, L4Kind::icmpv6, 14, 40, 54, 8, 62, 3});
}

TEST(Parse, OneFamilysIcmpIsNoneOfTheOther) {
  expect_place(ipv4_frame(kProtocolIcmpv6, counting(3)), {L3Kind::ipv4, L4Kind::none, 14, 20, 0, 0, 34, 3});
  expect_place(ipv6_frame(kProtocolIcmp, counting(3)), {L3Kind::ipv6, L4Kind::none, 14, 40, 0, 0, 54, 3});
}

TEST(Parse, TcpBehindExtensionHeaders) {
  const FrameBytes chain{60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0};
  expect_place(ipv6_frame(kExtensionHopByHop, chain + tcp_segment(counting(3))),
               {L3Kind::ipv6, L4Kind::tcp, 14, 56, 70, 20, 90, 3});
}

TEST(Parse, NoNextHeader) {
  expect_place(ipv6_frame(kExtensionNone, counting(3)), {L3Kind::ipv6, L4Kind::none, 14, 40, 0, 0, 54, 3});
}

TEST(Parse, FragmentsHaveNoL4) {
  Ipv4Header first;
  first.more_fragments = true;
  const FrameBytes v4 = ipv4_frame(kProtocolUdp, udp_datagram(counting(8)), first);
  expect_place(v4, {L3Kind::ipv4, L4Kind::none, 14, 20, 0, 0, 34, 16});
  EXPECT_TRUE(parsed(v4).fragment);
  const FrameBytes v6 = ipv6_frame(kExtensionFragment, FrameBytes{17, 0, 0, 1, 0, 0, 0, 1} + counting(16));
  expect_place(v6, {L3Kind::ipv6, L4Kind::none, 14, 48, 0, 0, 62, 16});
  EXPECT_TRUE(parsed(v6).fragment);
  EXPECT_EQ(parsed(v6).protocol, kProtocolUdp);
}

TEST(Parse, ArpWithPadding) {
  expect_place(arp_frame({}) + FrameBytes(18), {L3Kind::arp, L4Kind::none, 14, 28, 0, 0, 42, 0});
}

TEST(Parse, TagsAreKeptOutermostFirst) {
  const FrameBytes one = tagged(ipv4_frame(kProtocolUdp, udp_datagram({})), kEtherTypeVlan, 0x6005);
  expect_place(one, {L3Kind::ipv4, L4Kind::udp, 18, 20, 38, 8, 46, 0});
  const FrameBytes two = tagged(one, kEtherTypeService, 100);
  expect_place(two, {L3Kind::ipv4, L4Kind::udp, 22, 20, 42, 8, 50, 0});
  const ParsedFrame p = parsed(two);
  EXPECT_EQ(p.vlan_tags, 2);
  EXPECT_EQ(p.vlan[0], 100);
  EXPECT_EQ(p.vlan[1], 0x6005);
  EXPECT_EQ(p.ether_type, kEtherTypeIpv4);
}

TEST(Parse, WhatItDoesNotKnowIsPayload) {
  const ParsedFrame p = parsed(ethernet_frame(0x88cc, counting(50)));  // LLDP
  EXPECT_EQ(p.verdict, Verdict::forward);
  EXPECT_EQ(p.l3, L3Kind::none);
  EXPECT_EQ(p.payload_offset, 14U);
  EXPECT_EQ(p.payload_length, 50U);
  EXPECT_EQ(parsed(ethernet_frame(38, counting(38))).verdict, Verdict::forward);  // 802.3 with a length
  EXPECT_EQ(parsed(ipv4_frame(47, counting(2))).verdict, Verdict::forward);       // GRE
}

TEST(Parse, LayersBeforeTheMalformedOneAreTold) {
  const ParsedFrame p = parsed(tagged(ipv4_frame(kProtocolUdp, counting(7)), kEtherTypeVlan, 5));
  EXPECT_EQ(p.verdict, Verdict::udp_truncated);
  EXPECT_EQ(p.l3, L3Kind::ipv4);
  EXPECT_EQ(p.l4, L4Kind::none);
  EXPECT_EQ(p.payload_offset, 38U);
  EXPECT_EQ(p.payload_length, 7U);
}

TEST(Parse, MoreSegmentsThanAFrameMayHave) {
  const FrameBytes bytes = ipv4_frame(kProtocolUdp, udp_datagram(counting(30)));
  SegmentedFrame most(bytes, std::vector<std::uint32_t>(kMaxSegments - 1, 2));
  EXPECT_EQ(parse(most.ref()).verdict, Verdict::forward);
  SegmentedFrame more(bytes, std::vector<std::uint32_t>(kMaxSegments, 2));
  EXPECT_EQ(parse(more.ref()).verdict, Verdict::too_many_segments);
}

TEST(Parse, ALengthThatTheSegmentsDoNotHaveIsNotBelieved) {
  const FrameBytes bytes = ipv4_frame(kProtocolTcp, tcp_segment(counting(30), {1, 1, 1, 1}), {}, {1, 1, 1, 0});
  for (std::size_t have = 0; have < 14 + 24 + 24; ++have) {
    const std::span<const std::uint8_t> front(bytes.data(), have);
    SegmentedFrame frame(front, {7, 20});
    FrameRef lying = frame.ref();
    lying.length = static_cast<std::uint32_t>(bytes.size());
    EXPECT_TRUE(is_drop(parse(lying).verdict)) << have;
  }
}

/// Any frame that the builders make, tagged or not.
FrameBytes any_frame() {
  const auto payload = *rc::gen::container<FrameBytes>(*rc::gen::inRange(0, 80), rc::gen::arbitrary<std::uint8_t>());
  const FrameBytes options(static_cast<std::size_t>(*rc::gen::inRange(0, 11)) * 4, 1);
  const FrameBytes extension{0, 1, 1, 4, 0, 0, 0, 0, 5, 4, 1, 2, 3, 4, 1, 0};
  const auto behind = [&](std::uint8_t next) {
    FrameBytes header = extension;
    header[0] = next;
    return header;
  };
  const std::vector<FrameBytes> kinds = {
      ipv4_frame(kProtocolUdp, udp_datagram(payload), {}, options),
      ipv4_frame(kProtocolTcp, tcp_segment(payload, options), {}, options),
      ipv4_frame(kProtocolIcmp, icmp_message(kIcmpEchoRequest, payload)),
      ipv6_frame(kProtocolUdp, udp_datagram(payload)),
      ipv6_frame(kProtocolTcp, tcp_segment(payload, options)),
      ipv6_frame(kProtocolIcmpv6, icmp_message(kIcmpv6EchoRequest, payload)),
      ipv6_frame(kExtensionDestination, behind(kProtocolTcp) + tcp_segment(payload, options)),
      ipv6_frame(kExtensionHopByHop, behind(kExtensionDestination) + behind(kProtocolUdp) + udp_datagram(payload)),
      arp_frame({}) + payload,
      ethernet_frame(0x88cc, payload),
  };
  FrameBytes frame = *rc::gen::elementOf(kinds);
  const int tags = *rc::gen::inRange(0, 3);
  for (int i = 0; i < tags; ++i) frame = tagged(frame, kEtherTypeVlan, static_cast<std::uint16_t>(i));
  return with_checksums(frame);
}

std::vector<std::uint32_t> any_cuts() {
  return *rc::gen::container<std::vector<std::uint32_t>>(
      static_cast<std::size_t>(*rc::gen::inRange<int>(0, kMaxSegments)), rc::gen::inRange(0U, 40U));
}

WARPLINE_PROPERTY(ParseProperty, WellFormedFramesAreForwardedHoweverTheyAreCut, ()) {
  const FrameBytes bytes = any_frame();
  SegmentedFrame whole(bytes);
  SegmentedFrame pieces(bytes, any_cuts());
  const ParsedFrame expected = parse(whole.ref());
  RC_ASSERT(expected.verdict == Verdict::forward);
  RC_ASSERT(fields(parse(pieces.ref())) == fields(expected));
  RC_ASSERT(verify_checksums(whole.ref(), expected) == Verdict::forward);
  RC_ASSERT(verify_checksums(pieces.ref(), expected) == Verdict::forward);
  RC_ASSERT(expected.payload_offset + expected.payload_length <= bytes.size());
}

WARPLINE_PROPERTY(ParseProperty, DamagedFramesReadNoFurtherAndGiveOneVerdictHoweverTheyAreCut, ()) {
  FrameBytes bytes = any_frame();
  const int damages = *rc::gen::inRange(0, 4);
  for (int i = 0; i < damages; ++i)
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<std::uint8_t>();
  bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
  SegmentedFrame whole(bytes);
  SegmentedFrame pieces(bytes, any_cuts());
  const ParsedFrame expected = parse(whole.ref());
  RC_ASSERT(fields(parse(pieces.ref())) == fields(expected));
  RC_ASSERT(verify_checksums(pieces.ref(), expected) == verify_checksums(whole.ref(), expected));
  RC_ASSERT(expected.payload_offset + expected.payload_length <= bytes.size());
}

WARPLINE_PROPERTY(ParseProperty, ChecksumsWrittenAcrossSegmentsAreThoseOfTheWhole, ()) {
  const FrameBytes right = any_frame();
  SegmentedFrame pieces(right, any_cuts());
  const ParsedFrame p = parse(pieces.ref());
  const std::uint8_t wrong[2] = {*rc::gen::arbitrary<std::uint8_t>(), *rc::gen::arbitrary<std::uint8_t>()};
  if (p.l3 == L3Kind::ipv4) scatter(pieces.ref(), p.l3_offset + Ipv4View::kChecksum, wrong, 2);
  if (p.l4 != L4Kind::none) scatter(pieces.ref(), p.l4_offset + l4_checksum_offset(p.l4), wrong, 2);
  update_checksums(pieces.ref(), p);
  RC_ASSERT(pieces.bytes() == right);
}

}  // namespace
}  // namespace warpline::packet
