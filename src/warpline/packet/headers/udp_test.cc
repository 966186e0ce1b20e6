// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/udp.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/packet/udp_frame.h"

namespace warpline::packet {
namespace {

UdpFrame udp_over(const IpAddress& source, const IpAddress& destination) {
  UdpFrame header;
  header.destination_mac = kTestDestinationMac;
  header.source_mac = kTestSourceMac;
  header.source = source;
  header.destination = destination;
  header.source_port = 49152;
  header.destination_port = 9;
  return header;
}

TEST(Udp, BytesOnTheWire) {
  FrameBytes bytes(8);
  emit(UdpHeader{0x0102, 0x0304, 0x0506, 0x0708}, bytes.data());
  EXPECT_EQ(bytes, counting(8, 1));
}

TEST(Udp, Text) { EXPECT_EQ(to_string(UdpHeader{49152, 9, 26, 0}), "udp 49152 > 9 length 26"); }

WARPLINE_PROPERTY(UdpProperty, EmittedIsParsed, (std::uint16_t source, std::uint16_t destination, std::uint16_t sum)) {
  const UdpHeader header{source, destination, *rc::gen::inRange<std::uint16_t>(8, 0xffff), sum};
  FrameBytes bytes(8);
  emit(header, bytes.data());
  UdpHeader back;
  RC_ASSERT(parse(bytes.data(), header.length, back) == Verdict::forward);
  RC_ASSERT(back == header);
  RC_ASSERT(parse(bytes.data(), header.length - 1U, back) ==
            (header.length == 8 ? Verdict::udp_truncated : Verdict::udp_length));
}

TEST(UdpFrame, FamiliesMustAgreeAndHeadersFit) {
  FrameBytes bytes(61);
  EXPECT_EQ(emit(udp_over(kTestSourceV4, kTestDestinationV6), bytes), 0U);
  EXPECT_EQ(emit(udp_over(kTestSourceV6, kTestDestinationV6), bytes), 0U);
  EXPECT_EQ(emit(udp_over(kTestSourceV4, kTestDestinationV4), std::span(bytes).first(41)), 0U);
  EXPECT_EQ(bytes, FrameBytes(61));
  FrameBytes long_frame(42 + kMaxUdpPayload + 1);
  EXPECT_EQ(emit(udp_over(kTestSourceV4, kTestDestinationV4), long_frame), 0U);
  long_frame.pop_back();
  EXPECT_EQ(emit(udp_over(kTestSourceV4, kTestDestinationV4), long_frame), 42U);
}

TEST(UdpFrame, ZeroChecksumGoesOutAsAllOnes) {
  UdpFrame header = udp_over(Ipv4Address{}, Ipv4Address{});
  header.source_port = 0;
  header.destination_port = 0xffff - kProtocolUdp - 2 * 8;  // what brings the sum to 0xffff
  FrameBytes bytes(42);
  ASSERT_EQ(emit(header, bytes), 42U);
  EXPECT_EQ(load_be16(bytes.data() + 40), 0xffff);
  SegmentedFrame frame(bytes);
  EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
}

WARPLINE_PROPERTY(UdpFrameProperty, IsWellFormedWithRightChecksums, (bool v4, const FrameBytes& payload)) {
  UdpFrame header = v4 ? udp_over(kTestSourceV4, kTestDestinationV4) : udp_over(kTestSourceV6, kTestDestinationV6);
  header.source_port = *rc::gen::arbitrary<std::uint16_t>();
  header.type_of_service = *rc::gen::arbitrary<std::uint8_t>();
  FrameBytes bytes = FrameBytes(udp_headers_length(header)) + payload;
  RC_ASSERT(emit(header, bytes) == (v4 ? 42U : 62U));
  SegmentedFrame frame(bytes);
  const ParsedFrame parsed = parse(frame.ref());
  RC_ASSERT(verify_checksums(frame.ref(), parsed) == Verdict::forward);
  RC_ASSERT(parsed.l4 == L4Kind::udp);
  RC_ASSERT(parsed.payload_length == payload.size());
  RC_ASSERT(with_checksums(bytes) == bytes);
  RC_ASSERT(load_be16(bytes.data() + parsed.l4_offset) == header.source_port);
}

}  // namespace
}  // namespace warpline::packet
