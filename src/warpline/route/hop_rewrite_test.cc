// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/hop_rewrite.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::route {
namespace {

using packet::operator+;

const PlainFrames kPlain(packet::kTestDestinationMac);

bool is_ipv4(const packet::FrameBytes& bytes) {
  packet::SegmentedFrame frame(bytes);  // so that reading too far shows
  return kPlain.is_ipv4(frame.ref().data(), frame.ref().head_length(), frame.ref().length);
}
bool is_ipv6(const packet::FrameBytes& bytes) {
  packet::SegmentedFrame frame(bytes);
  return kPlain.is_ipv6(frame.ref().data(), frame.ref().head_length(), frame.ref().length);
}

TEST(PlainFrames, AreTheCommonOnes) {
  const packet::FrameBytes v4 = packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(30)));
  const packet::FrameBytes v6 = packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(30)));
  EXPECT_TRUE(is_ipv4(v4));
  EXPECT_TRUE(is_ipv4(v4 + packet::FrameBytes(10))) << "padded";
  EXPECT_TRUE(is_ipv6(v6));
  EXPECT_FALSE(is_ipv6(v4));
  EXPECT_FALSE(is_ipv4(v6));
  for (const packet::FrameBytes& frame : {v4, v6}) {
    packet::FrameBytes other = frame;
    other[5] ^= 1;
    EXPECT_FALSE(is_ipv4(other) || is_ipv6(other)) << "another station's";
    EXPECT_FALSE(is_ipv4(packet::tagged(frame, packet::kEtherTypeVlan, 5)) ||
                 is_ipv6(packet::tagged(frame, packet::kEtherTypeVlan, 5)));
    EXPECT_FALSE(is_ipv4(packet::FrameBytes(frame.begin(), frame.end() - 1)) ||
                 is_ipv6(packet::FrameBytes(frame.begin(), frame.end() - 1)));
  }
  EXPECT_FALSE(is_ipv4(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram({}), {}, {1, 1, 1, 0})))
      << "options";
  packet::FrameBytes wrong = v4;
  wrong[14 + packet::Ipv4View::kChecksum] ^= 1;
  EXPECT_FALSE(is_ipv4(wrong));
}

/// A frame that the quick look takes is one that the parser takes, with a right checksum and from a host.
WARPLINE_PROPERTY(PlainFrames, AreWellFormed, (std::uint8_t at, std::uint8_t value, bool v4, bool fix)) {
  packet::FrameBytes bytes = v4 ? packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(8)))
                                : packet::ipv6_frame(59, packet::counting(8));
  bytes[at % bytes.size()] = value;
  if (fix) bytes = packet::with_checksums(bytes);
  packet::SegmentedFrame frame(bytes);
  const packet::ParsedFrame parsed = packet::parse(frame.ref());
  const bool v4_well = parsed.l3 == packet::L3Kind::ipv4 && parsed.vlan_tags == 0 &&
                       packet::checksum(bytes.data() + 14, packet::Ipv4View::kHeaderLength) == 0;
  if (is_ipv4(bytes))
    RC_ASSERT(v4_well && packet::load_address<MacAddress>(bytes.data()) == packet::kTestDestinationMac);
  if (is_ipv6(bytes)) RC_ASSERT(parsed.l3 == packet::L3Kind::ipv6 || parsed.verdict == Verdict::ipv6_extension);
}

/// The checksum stays right, and is what RFC 1624 says, for every time to live and checksum.
WARPLINE_PROPERTY(HopRewrite, KeepsTheChecksumRight, (std::uint16_t identification, std::uint8_t tos)) {
  packet::Ipv4Header header;
  header.identification = identification;
  header.type_of_service = tos;
  header.time_to_live = *rc::gen::inRange<std::uint8_t>(2, 255);
  packet::FrameBytes bytes = packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram({}), header);
  std::uint8_t* ip = bytes.data() + 14;
  const std::uint16_t before = packet::load_be16(ip + packet::Ipv4View::kTimeToLive);
  const std::uint16_t stored = packet::load_be16(ip + packet::Ipv4View::kChecksum);
  HopRewrite::live_less_v4(ip);
  RC_ASSERT(ip[packet::Ipv4View::kTimeToLive] == header.time_to_live - 1);
  RC_ASSERT(packet::checksum(ip, packet::Ipv4View::kHeaderLength) == 0);
  RC_ASSERT(packet::load_be16(ip + packet::Ipv4View::kChecksum) ==
            packet::update_checksum(stored, before, packet::load_be16(ip + packet::Ipv4View::kTimeToLive)));
}

TEST(HopRewrite, ChangesStationsAndNothingElse) {
  packet::FrameBytes bytes = packet::counting(20, 100);
  const HopRewrite rewrite(MacAddress{{1, 2, 3, 4, 5, 6}});
  rewrite.stations(bytes.data(), mac_bits(MacAddress{{11, 12, 13, 14, 15, 16}}));
  EXPECT_EQ(bytes, (packet::FrameBytes{11, 12, 13, 14, 15, 16, 1, 2, 3, 4, 5, 6} + packet::counting(8, 112)));
}

}  // namespace
}  // namespace warpline::route
