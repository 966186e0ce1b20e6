// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/icmp.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/packet/headers/icmpv6.h"

namespace warpline::packet {
namespace {

TEST(Icmp, BytesOnTheWire) {
  FrameBytes bytes(8);
  emit(IcmpHeader{8, 1, 0x0203, 0x0405, 0x0607}, bytes.data());
  EXPECT_EQ(bytes, (FrameBytes{8, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Icmp, Text) {
  EXPECT_EQ(to_string(IcmpHeader{kIcmpEchoRequest, 0, 0, 1, 2}), "icmp echo request id 1 seq 2");
  EXPECT_EQ(to_string(IcmpHeader{kIcmpv6EchoReply, 0, 0, 1, 2}), "icmp echo reply id 1 seq 2");
  EXPECT_EQ(to_string(IcmpHeader{3, 4, 0, 0, 0}), "icmp type 3 code 4");
}

WARPLINE_PROPERTY(IcmpProperty, EmittedIsParsed,
                  (std::uint8_t type, std::uint8_t code, std::uint16_t sum, std::uint16_t id, std::uint16_t sequence)) {
  const IcmpHeader header{type, code, sum, id, sequence};
  FrameBytes bytes(8);
  emit(header, bytes.data());
  IcmpHeader back;
  RC_ASSERT(parse(bytes.data(), 8, back) == Verdict::forward);
  RC_ASSERT(back == header);
  RC_ASSERT(parse(bytes.data(), 7, back) == Verdict::icmp_truncated);
}

TEST(Neighbour, BytesOnTheWire) {
  NeighbourMessage message;
  message.type = kNeighbourAdvertisement;
  message.checksum = 0x0102;
  message.flags = kAdvertisementSolicited | kAdvertisementOverride;
  message.target = kTestSourceV6;
  message.has_link_layer = true;
  message.link_layer = kTestSourceMac;
  FrameBytes bytes(32);
  emit(message, bytes.data());
  EXPECT_EQ(bytes, (FrameBytes{136, 0, 1, 2, 0x60, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0,
                               0,   0, 0, 0, 0,    0, 0, 1, 2,    1, 2, 0, 0, 0, 0, 1}));
}

TEST(Neighbour, TheOptionIsFoundAmongOthers) {
  FrameBytes bytes(24);
  emit(NeighbourMessage{}, bytes.data());
  const FrameBytes nonce{14, 1, 1, 2, 3, 4, 5, 6};
  const FrameBytes source{1, 1, 2, 0, 0, 0, 0, 1};
  const FrameBytes both = bytes + nonce + source;
  NeighbourMessage message;
  ASSERT_EQ(parse(both.data(), 40, message), Verdict::forward);
  EXPECT_TRUE(message.has_link_layer);
  EXPECT_EQ(message.link_layer, kTestSourceMac);
  EXPECT_EQ(parse(both.data(), 36, message), Verdict::neighbour_malformed);
  EXPECT_EQ(parse(both.data(), 23, message), Verdict::icmp_truncated);
}

TEST(Neighbour, Text) {
  NeighbourMessage message;
  message.target = kTestSourceV6;
  EXPECT_EQ(to_string(message), "neighbour solicitation for fd00::1");
  message.has_link_layer = true;
  message.link_layer = kTestSourceMac;
  EXPECT_EQ(to_string(message), "neighbour solicitation for fd00::1 from 02:00:00:00:00:01");
  message.type = kNeighbourAdvertisement;
  message.flags = kAdvertisementSolicited | kAdvertisementOverride;
  EXPECT_EQ(to_string(message), "neighbour advertisement of fd00::1 at 02:00:00:00:00:01 solicited override");
}

WARPLINE_PROPERTY(NeighbourProperty, EmittedIsParsed, (bool solicits, bool has_link_layer, std::uint16_t sum)) {
  NeighbourMessage message;
  message.type = solicits ? kNeighbourSolicitation : kNeighbourAdvertisement;
  message.checksum = sum;
  message.flags = *rc::gen::arbitrary<std::uint32_t>();
  message.target.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 16>>();
  message.has_link_layer = has_link_layer;
  if (has_link_layer) message.link_layer.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 6>>();
  FrameBytes bytes(has_link_layer ? 32 : 24);
  emit(message, bytes.data());
  NeighbourMessage back;
  RC_ASSERT(parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), back) == Verdict::forward);
  RC_ASSERT(back == message);
}

}  // namespace
}  // namespace warpline::packet
