// SPDX-License-Identifier: Apache-2.0
#include "warpline/workload/checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include "warpline/packet/frame_testing.h"

namespace warpline {
namespace {

TEST(ChecksumVerify, ForwardsSoundFramesUnchanged) {
  const FrameBytes udp = udp_datagram(counting(1473));
  const FrameBytes tcp = tcp_segment(counting(31));
  const FrameBytes echo = icmp_message(8, counting(9));
  const FrameBytes echo_v6 = icmp_message(128, counting(9));
  std::vector<FrameBytes> frames{arp_frame({}), ethernet_frame(0x9999, counting(46))};
  for (const FrameBytes& frame :
       {ipv4_frame(kProtocolUdp, udp), ipv6_frame(kProtocolUdp, udp), ipv4_frame(kProtocolTcp, tcp),
        ipv6_frame(kProtocolTcp, tcp), ipv4_frame(kProtocolIcmp, echo), ipv6_frame(kProtocolIcmpv6, echo_v6)}) {
    frames.push_back(with_checksums(frame));
    frames.push_back(tagged(frames.back(), kEtherTypeVlan, 7));
  }
  for (const FrameBytes& bytes : frames) {
    SegmentedFrame frame(bytes, {20, 1, 30});
    EXPECT_EQ(name(ChecksumVerify{}(frame.ref())), "forward");
    EXPECT_EQ(frame.bytes(), bytes);
  }
}

TEST(ChecksumVerify, OneWrongBitAnywhereBehindTheMacAddressesIsSeen) {
  const FrameBytes sound = with_checksums(ipv4_frame(kProtocolTcp, tcp_segment(counting(20))));
  for (std::size_t i = EthernetView::kHeaderLength; i < sound.size(); ++i) {
    FrameBytes wrong = sound;
    wrong[i] ^= 0x10;
    SegmentedFrame frame(wrong);
    EXPECT_TRUE(is_drop(ChecksumVerify{}(frame.ref()))) << "byte " << i;
    EXPECT_EQ(frame.bytes(), wrong);
  }
}

TEST(ChecksumVerify, UdpOverIpv4MayGoWithoutOne) {
  SegmentedFrame over_ipv4(ipv4_frame(kProtocolUdp, udp_datagram(counting(18))));
  EXPECT_EQ(name(ChecksumVerify{}(over_ipv4.ref())), "forward");
  SegmentedFrame over_ipv6(ipv6_frame(kProtocolUdp, udp_datagram(counting(18))));
  EXPECT_EQ(name(ChecksumVerify{}(over_ipv6.ref())), "udp_checksum");
}

}  // namespace
}  // namespace warpline
