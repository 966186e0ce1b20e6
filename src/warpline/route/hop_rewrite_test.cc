// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/hop_rewrite.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "warpline/packet/frame_testing.h"

namespace warpline {
namespace {

const PlainFrames kPlain(kTestDestinationMac);

bool is_ipv4(const FrameBytes& bytes) {
  SegmentedFrame frame(bytes);  // so that reading too far shows
  return kPlain.is_ipv4(frame.ref().data(), frame.ref().head_length(), frame.ref().length);
}
bool is_ipv6(const FrameBytes& bytes) {
  SegmentedFrame frame(bytes);
  return kPlain.is_ipv6(frame.ref().data(), frame.ref().head_length(), frame.ref().length);
}

TEST(PlainFrames, AreTheCommonOnes) {
  const FrameBytes v4 = ipv4_frame(kProtocolUdp, udp_datagram(counting(30)));
  const FrameBytes v6 = ipv6_frame(kProtocolUdp, udp_datagram(counting(30)));
  EXPECT_TRUE(is_ipv4(v4));
  EXPECT_TRUE(is_ipv4(v4 + FrameBytes(10))) << "padded";
  EXPECT_TRUE(is_ipv6(v6));
  EXPECT_FALSE(is_ipv6(v4));
  EXPECT_FALSE(is_ipv4(v6));
  for (const FrameBytes& frame : {v4, v6}) {
    FrameBytes other = frame;
    other[5] ^= 1;
    EXPECT_FALSE(is_ipv4(other) || is_ipv6(other)) << "another station's";
    EXPECT_FALSE(is_ipv4(tagged(frame, kEtherTypeVlan, 5)) || is_ipv6(tagged(frame, kEtherTypeVlan, 5)));
    EXPECT_FALSE(is_ipv4(FrameBytes(frame.begin(), frame.end() - 1)) ||
                 is_ipv6(FrameBytes(frame.begin(), frame.end() - 1)));
  }
  EXPECT_FALSE(is_ipv4(ipv4_frame(kProtocolUdp, udp_datagram({}), {}, {1, 1, 1, 0}))) << "options";
  FrameBytes wrong = v4;
  wrong[14 + Ipv4View::kChecksum] ^= 1;
  EXPECT_FALSE(is_ipv4(wrong));
}

/// A frame that the quick look takes is one that the parser takes, with a right checksum and from a host.
RC_GTEST_PROP(PlainFrames, AreWellFormed, (std::uint8_t at, std::uint8_t value, bool v4, bool fix)) {
  FrameBytes bytes = v4 ? ipv4_frame(kProtocolUdp, udp_datagram(counting(8))) : ipv6_frame(59, counting(8));
  bytes[at % bytes.size()] = value;
  if (fix) bytes = with_checksums(bytes);
  SegmentedFrame frame(bytes);
  const ParsedFrame parsed = parse(frame.ref());
  const bool v4_well =
      parsed.l3 == L3Kind::ipv4 && parsed.vlan_tags == 0 && checksum(bytes.data() + 14, Ipv4View::kHeaderLength) == 0;
  if (is_ipv4(bytes)) RC_ASSERT(v4_well && load_address<MacAddress>(bytes.data()) == kTestDestinationMac);
  if (is_ipv6(bytes)) RC_ASSERT(parsed.l3 == L3Kind::ipv6 || parsed.verdict == Verdict::ipv6_extension);
}

/// The checksum stays right, and is what RFC 1624 says, for every time to live and checksum.
RC_GTEST_PROP(HopRewrite, KeepsTheChecksumRight, (std::uint16_t identification, std::uint8_t tos)) {
  Ipv4Header header;
  header.identification = identification;
  header.type_of_service = tos;
  header.time_to_live = *rc::gen::inRange<std::uint8_t>(2, 255);
  FrameBytes bytes = ipv4_frame(kProtocolUdp, udp_datagram({}), header);
  std::uint8_t* ip = bytes.data() + 14;
  const std::uint16_t before = load_be16(ip + Ipv4View::kTimeToLive);
  const std::uint16_t stored = load_be16(ip + Ipv4View::kChecksum);
  HopRewrite::live_less_v4(ip);
  RC_ASSERT(ip[Ipv4View::kTimeToLive] == header.time_to_live - 1);
  RC_ASSERT(checksum(ip, Ipv4View::kHeaderLength) == 0);
  RC_ASSERT(load_be16(ip + Ipv4View::kChecksum) ==
            update_checksum(stored, before, load_be16(ip + Ipv4View::kTimeToLive)));
}

TEST(HopRewrite, ChangesStationsAndNothingElse) {
  FrameBytes bytes = counting(20, 100);
  const HopRewrite rewrite(MacAddress{{1, 2, 3, 4, 5, 6}});
  rewrite.stations(bytes.data(), mac_bits(MacAddress{{11, 12, 13, 14, 15, 16}}));
  EXPECT_EQ(bytes, (FrameBytes{11, 12, 13, 14, 15, 16, 1, 2, 3, 4, 5, 6} + counting(8, 112)));
}

}  // namespace
}  // namespace warpline
