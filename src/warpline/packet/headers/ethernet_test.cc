// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/ethernet.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/packet/headers/vlan.h"

namespace warpline::packet {
namespace {

TEST(Ethernet, BytesOnTheWire) {
  FrameBytes bytes(14);
  emit(EthernetHeader{{{1, 2, 3, 4, 5, 6}}, {{7, 8, 9, 10, 11, 12}}, 0x86dd}, bytes.data());
  EXPECT_EQ(bytes, (FrameBytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd}));
}

TEST(Ethernet, ShorterThanItsHeaderIsARunt) {
  EthernetHeader header;
  const FrameBytes bytes(14);
  EXPECT_EQ(parse(bytes.data(), 13, header), Verdict::runt);
  EXPECT_EQ(parse(bytes.data(), 14, header), Verdict::forward);
}

TEST(Ethernet, Text) {
  EXPECT_EQ(to_string(EthernetHeader{kTestDestinationMac, kTestSourceMac, 0x0800}),
            "02:00:00:00:00:01 > 02:00:00:00:00:02 type 0x0800");
}

WARPLINE_PROPERTY(EthernetProperty, EmittedIsParsed, (std::uint16_t type)) {
  const EthernetHeader header{
      {*rc::gen::arbitrary<std::array<std::uint8_t, 6>>()}, {*rc::gen::arbitrary<std::array<std::uint8_t, 6>>()}, type};
  FrameBytes bytes(14);
  emit(header, bytes.data());
  EthernetHeader back;
  RC_ASSERT(parse(bytes.data(), 14, back) == Verdict::forward);
  RC_ASSERT(back == header);
}

WARPLINE_PROPERTY(EthernetProperty, SwapExchangesTheAddressesAndNoMore, ()) {
  const auto bytes = *rc::gen::container<FrameBytes>(14, rc::gen::arbitrary<std::uint8_t>());
  SegmentedFrame frame(bytes);
  swap_macs(frame.ref().data());
  const FrameBytes swapped = frame.bytes();
  RC_ASSERT(std::equal(swapped.begin(), swapped.begin() + 6, bytes.begin() + 6));
  RC_ASSERT(std::equal(swapped.begin() + 6, swapped.begin() + 12, bytes.begin()));
  RC_ASSERT(std::equal(swapped.begin() + 12, swapped.end(), bytes.begin() + 12));
}

TEST(Vlan, BytesOnTheWire) {
  FrameBytes bytes(4);
  emit(VlanTag{5, true, 0x123, 0x0800}, bytes.data());
  EXPECT_EQ(bytes, (FrameBytes{0xb1, 0x23, 0x08, 0x00}));
}

TEST(Vlan, TruncatedBelowFourBytes) {
  VlanTag tag;
  const FrameBytes bytes(4);
  EXPECT_EQ(parse(bytes.data(), 3, tag), Verdict::vlan_truncated);
  EXPECT_EQ(parse(bytes.data(), 4, tag), Verdict::forward);
}

TEST(Vlan, Text) {
  EXPECT_EQ(to_string(VlanTag{3, true, 7, 0x0800}), "vlan 7 priority 3 dei type 0x0800");
  EXPECT_EQ(to_string(VlanTag{0, false, 4095, 0x86dd}), "vlan 4095 priority 0 type 0x86dd");
}

WARPLINE_PROPERTY(VlanProperty, EmittedIsParsed, (bool drop_eligible, std::uint16_t type)) {
  const VlanTag tag{*rc::gen::inRange<std::uint8_t>(0, 8), drop_eligible, *rc::gen::inRange<std::uint16_t>(0, 4096),
                    type};
  FrameBytes bytes(4);
  emit(tag, bytes.data());
  VlanTag back;
  RC_ASSERT(parse(bytes.data(), 4, back) == Verdict::forward);
  RC_ASSERT(back == tag);
}

}  // namespace
}  // namespace warpline::packet
