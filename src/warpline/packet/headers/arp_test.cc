// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/arp.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::packet {
namespace {

ArpPacket request() {
  ArpPacket packet;
  packet.sender_mac = kTestSourceMac;
  packet.sender_ip = kTestSourceV4;
  packet.target_ip = kTestDestinationV4;
  return packet;
}

TEST(Arp, BytesOnTheWire) {
  FrameBytes bytes(28);
  emit(request(), bytes.data());
  EXPECT_EQ(bytes,
            (FrameBytes{0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 198, 18, 0, 1, 0, 0, 0, 0, 0, 0, 198, 19, 0, 1}));
}

TEST(Arp, OnlyIpv4OverEthernet) {
  FrameBytes bytes(28);
  emit(request(), bytes.data());
  EXPECT_EQ(ArpView::check(bytes.data(), 28), Verdict::forward);
  EXPECT_EQ(ArpView::check(bytes.data(), 27), Verdict::arp_truncated);
  for (std::size_t at = 0; at < 6; ++at) {
    FrameBytes other = bytes;
    other[at] ^= 0x40;
    EXPECT_EQ(ArpView::check(other.data(), 28), Verdict::arp_malformed) << at;
  }
}

TEST(Arp, Text) {
  ArpPacket packet = request();
  EXPECT_EQ(to_string(packet), "arp who has 198.19.0.1, tell 198.18.0.1 at 02:00:00:00:00:01");
  packet.operation = kArpReply;
  packet.target_mac = kTestDestinationMac;
  EXPECT_EQ(to_string(packet), "arp 198.18.0.1 is at 02:00:00:00:00:01, to 198.19.0.1 at 02:00:00:00:00:02");
  packet.operation = 8;
  EXPECT_EQ(to_string(packet),
            "arp operation 8 from 198.18.0.1 at 02:00:00:00:00:01 to 198.19.0.1 at 02:00:00:00:00:02");
}

WARPLINE_PROPERTY(ArpProperty, EmittedIsParsed, (std::uint16_t operation)) {
  ArpPacket packet;
  packet.operation = operation;
  packet.sender_mac.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 6>>();
  packet.sender_ip.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 4>>();
  packet.target_mac.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 6>>();
  packet.target_ip.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 4>>();
  FrameBytes bytes(28);
  emit(packet, bytes.data());
  ArpPacket back;
  RC_ASSERT(parse(bytes.data(), 28, back) == Verdict::forward);
  RC_ASSERT(back == packet);
}

}  // namespace
}  // namespace warpline::packet
