// SPDX-License-Identifier: Apache-2.0
#include "warpline/workload/checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include "warpline/packet/frame_testing.h"

namespace warpline::workload {
namespace {

TEST(ChecksumVerify, ForwardsSoundFramesUnchanged) {
  const packet::FrameBytes udp = packet::udp_datagram(packet::counting(1473));
  const packet::FrameBytes tcp = packet::tcp_segment(packet::counting(31));
  const packet::FrameBytes echo = packet::icmp_message(8, packet::counting(9));
  const packet::FrameBytes echo_v6 = packet::icmp_message(128, packet::counting(9));
  std::vector<packet::FrameBytes> frames{packet::arp_frame({}), packet::ethernet_frame(0x9999, packet::counting(46))};
  for (const packet::FrameBytes& frame :
       {packet::ipv4_frame(packet::kProtocolUdp, udp), packet::ipv6_frame(packet::kProtocolUdp, udp),
        packet::ipv4_frame(packet::kProtocolTcp, tcp), packet::ipv6_frame(packet::kProtocolTcp, tcp),
        packet::ipv4_frame(packet::kProtocolIcmp, echo), packet::ipv6_frame(packet::kProtocolIcmpv6, echo_v6)}) {
    frames.push_back(packet::with_checksums(frame));
    frames.push_back(packet::tagged(frames.back(), packet::kEtherTypeVlan, 7));
  }
  for (const packet::FrameBytes& bytes : frames) {
    packet::SegmentedFrame frame(bytes, {20, 1, 30});
    EXPECT_EQ(name(ChecksumVerify{}(frame.ref())), "forward");
    EXPECT_EQ(frame.bytes(), bytes);
  }
}

TEST(ChecksumVerify, OneWrongBitAnywhereBehindTheMacAddressesIsSeen) {
  const packet::FrameBytes sound =
      packet::with_checksums(packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(20))));
  for (std::size_t i = packet::EthernetView::kHeaderLength; i < sound.size(); ++i) {
    packet::FrameBytes wrong = sound;
    wrong[i] ^= 0x10;
    packet::SegmentedFrame frame(wrong);
    EXPECT_TRUE(is_drop(ChecksumVerify{}(frame.ref()))) << "byte " << i;
    EXPECT_EQ(frame.bytes(), wrong);
  }
}

TEST(ChecksumVerify, UdpOverIpv4MayGoWithoutOne) {
  packet::SegmentedFrame over_ipv4(
      packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(18))));
  EXPECT_EQ(name(ChecksumVerify{}(over_ipv4.ref())), "forward");
  packet::SegmentedFrame over_ipv6(
      packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(18))));
  EXPECT_EQ(name(ChecksumVerify{}(over_ipv6.ref())), "udp_checksum");
}

}  // namespace
}  // namespace warpline::workload
