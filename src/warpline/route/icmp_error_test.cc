// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/icmp_error.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::route {
namespace {

using packet::operator+;

constexpr MacAddress kOwnMac{{2, 0, 0, 0, 0, 7}};
const IpAddress kOwnV4 = *parse_ip("10.0.0.1");
const IpAddress kOwnV6 = *parse_ip("fd00:7::1");

bool may_send(const packet::FrameBytes& bytes, IcmpReason reason = IcmpReason::time_exceeded) {
  packet::SegmentedFrame frame(bytes);
  return may_send_icmp_error(frame.ref(), packet::parse(frame.ref()), reason);
}

/// The error about `offender`, a whole frame.
packet::FrameBytes error_about(const packet::FrameBytes& offender, const IcmpError& error) {
  const std::uint32_t headers =
      std::holds_alternative<Ipv4Address>(error.own) ? kIcmpV4ErrorHeaders : kIcmpV6ErrorHeaders;
  const packet::FrameBytes room(headers - packet::EthernetView::kHeaderLength);
  packet::FrameBytes bytes = room + offender;
  const auto have = static_cast<std::uint32_t>(offender.size() - packet::EthernetView::kHeaderLength);
  bytes.resize(headers + write_icmp_error(error, bytes.data() + headers, have));
  return bytes;
}

TEST(IcmpErrors, CarryTheDatagramBackToItsSender) {
  for (const bool v4 : {true, false}) {
    for (const std::size_t payload : {0U, 10U, 500U, 1400U}) {
      const packet::FrameBytes datagram = packet::udp_datagram(packet::counting(payload));
      const packet::FrameBytes offender =
          v4 ? packet::ipv4_frame(packet::kProtocolUdp, datagram) : packet::ipv6_frame(packet::kProtocolUdp, datagram);
      const packet::FrameBytes bytes = error_about(
          offender, {IcmpReason::time_exceeded, kOwnMac, packet::kTestSourceMac, v4 ? kOwnV4 : kOwnV6, 1500});
      packet::SegmentedFrame frame(bytes);
      EXPECT_EQ(packet::verdict_of(frame.ref()), Verdict::forward);
      const packet::ParsedFrame parsed = packet::parse(frame.ref());
      EXPECT_EQ(parsed.l4, v4 ? packet::L4Kind::icmp : packet::L4Kind::icmpv6);
      EXPECT_EQ(bytes[parsed.l4_offset], v4 ? 11 : 3);
      EXPECT_LE(bytes.size(), 14 + (v4 ? 576U : 1280U));
      EXPECT_TRUE(std::equal(bytes.begin() + parsed.payload_offset, bytes.end(), offender.begin() + 14));
      EXPECT_EQ(packet::load_address<MacAddress>(bytes.data()), packet::kTestSourceMac);
      EXPECT_EQ(packet::load_address<MacAddress>(bytes.data() + 6), kOwnMac);
      if (v4) {
        EXPECT_EQ(packet::load_address<Ipv4Address>(bytes.data() + 14 + packet::Ipv4View::kDestination),
                  packet::kTestSourceV4);
        EXPECT_EQ(IpAddress{packet::load_address<Ipv4Address>(bytes.data() + 14 + packet::Ipv4View::kSource)}, kOwnV4);
      } else {
        EXPECT_EQ(packet::load_address<Ipv6Address>(bytes.data() + 14 + packet::Ipv6View::kDestination),
                  packet::kTestSourceV6);
      }
      EXPECT_FALSE(may_send(bytes)) << "an error about an error";
    }
  }
}

TEST(IcmpErrors, TooBigTellsTheMtu) {
  packet::Ipv4Header header;
  header.dont_fragment = true;
  const packet::FrameBytes v4 = packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram({}), header);
  EXPECT_TRUE(may_send(v4, IcmpReason::too_big));
  EXPECT_FALSE(may_send(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram({})), IcmpReason::too_big))
      << "it may be fragmented";
  const packet::FrameBytes error =
      error_about(v4, {IcmpReason::too_big, kOwnMac, packet::kTestSourceMac, kOwnV4, 1280});
  EXPECT_EQ(error[34], 3);
  EXPECT_EQ(error[35], 4);
  EXPECT_EQ(packet::load_be32(error.data() + 38), 1280U);
  const packet::FrameBytes v6 = error_about(packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram({})),
                                            {IcmpReason::too_big, kOwnMac, packet::kTestSourceMac, kOwnV6, 1400});
  EXPECT_EQ(v6[54], 2);
  EXPECT_EQ(packet::load_be32(v6.data() + 58), 1400U);
}

TEST(IcmpErrors, AreNotSentAboutErrorsGroupsAndFragments) {
  const packet::FrameBytes udp = packet::udp_datagram(packet::counting(8));
  EXPECT_TRUE(may_send(packet::ipv4_frame(packet::kProtocolUdp, udp)));
  EXPECT_TRUE(may_send(packet::ipv6_frame(packet::kProtocolUdp, udp)));
  EXPECT_TRUE(may_send(packet::ipv4_frame(packet::kProtocolIcmp, packet::icmp_message(packet::kIcmpEchoRequest, {}))));
  EXPECT_TRUE(
      may_send(packet::ipv6_frame(packet::kProtocolIcmpv6, packet::icmp_message(packet::kIcmpv6EchoRequest, {}))));
  for (const std::uint8_t type : {3, 4, 5, 11, 12}) {
    EXPECT_FALSE(may_send(packet::ipv4_frame(packet::kProtocolIcmp, packet::icmp_message(type, {})))) << int{type};
  }
  for (const std::uint8_t type : {1, 2, 3, 4, 100, 137}) {
    EXPECT_FALSE(may_send(packet::ipv6_frame(packet::kProtocolIcmpv6, packet::icmp_message(type, {})))) << int{type};
  }
  packet::Ipv4Header fragment;
  fragment.fragment_offset = 100;
  EXPECT_FALSE(may_send(packet::ipv4_frame(packet::kProtocolUdp, udp, fragment)));
  packet::Ipv4Header first;
  first.more_fragments = true;
  EXPECT_TRUE(may_send(packet::ipv4_frame(packet::kProtocolUdp, udp, first)));

  packet::FrameBytes to_group = packet::ipv4_frame(packet::kProtocolUdp, udp);
  to_group[0] |= 1;
  EXPECT_FALSE(may_send(to_group)) << "a group of stations";
  EXPECT_FALSE(may_send(packet::tagged(packet::ipv4_frame(packet::kProtocolUdp, udp), packet::kEtherTypeVlan, 1)));
  for (const std::uint8_t first_byte : {0, 127, 224, 255}) {
    packet::FrameBytes from = packet::ipv4_frame(packet::kProtocolUdp, udp);
    from[14 + packet::Ipv4View::kSource] = first_byte;
    EXPECT_FALSE(may_send(from)) << int{first_byte};
  }
  packet::FrameBytes v6_group = packet::ipv6_frame(packet::kProtocolUdp, udp);
  v6_group[14 + packet::Ipv6View::kDestination] = 0xff;
  EXPECT_FALSE(may_send(v6_group));
  packet::FrameBytes unspecified = packet::ipv6_frame(packet::kProtocolUdp, udp);
  std::fill_n(unspecified.begin() + 14 + packet::Ipv6View::kSource, 16, 0);
  EXPECT_FALSE(may_send(unspecified));
}

/// Arbitrary bytes: nothing outside them is read (the sanitizers check), and malformed frames get no error.
WARPLINE_PROPERTY(IcmpErrors, AreNotSentAboutMalformedFrames, (packet::FrameBytes bytes)) {
  bytes.resize(std::max<std::size_t>(bytes.size(), 14));
  packet::SegmentedFrame frame(bytes);
  const packet::ParsedFrame parsed = packet::parse(frame.ref());
  if (is_drop(parsed.verdict)) RC_ASSERT(!may_send_icmp_error(frame.ref(), parsed, IcmpReason::no_route));
}

}  // namespace
}  // namespace warpline::route
