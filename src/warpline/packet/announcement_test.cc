// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/announcement.h"

#include <gtest/gtest.h>

#include "warpline/packet/frame_testing.h"
#include "warpline/packet/listener.h"

namespace warpline::packet {
namespace {

constexpr MacAddress kMac{{2, 0, 0, 0, 0, 7}};

std::vector<FrameBytes> reported(std::initializer_list<const char*> addresses, ReportReason reason) {
  std::vector<InterfaceAddress> own;
  for (const char* address : addresses) own.push_back(*parse_interface_address(address));
  std::vector<FrameBytes> frames = group_reports(kMac, own, reason);
  for (FrameBytes& bytes : frames) {
    SegmentedFrame frame(bytes);
    EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
  }
  return frames;
}

std::string hex(const FrameBytes& bytes, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) {
    text += "0123456789abcdef"[bytes.at(i) >> 4];
    text += "0123456789abcdef"[bytes.at(i) & 15];
  }
  return text;
}

/// RFC 5227, 2.3: a request whose sender and target are the address.
TEST(Announcement, OfAnIpv4AddressIsAnArpRequestForItself) {
  const FrameBytes frame = arp_announcement(kMac, std::get<Ipv4Address>(*parse_ip("10.0.0.1")));
  EXPECT_EQ(frame.size(), 60U);
  EXPECT_EQ(hex(frame, 0, 42),
            "ffffffffffff0200000000070806"
            "0001080006040001"
            "020000000007"
            "0a000001"
            "000000000000"
            "0a000001");
}

/// RFC 3810, 5.2.12: "change to exclude mode" is 4.
TEST(Announcement, OfIpv6AddressesReportsEachGroupOnce) {
  const auto frames = reported({"10.0.0.1/24", "fe80::1/64", "fd00:1::1/64", "fd00:1::2/64"}, ReportReason::joined);
  ASSERT_EQ(frames.size(), 2U);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(hex(frames[i], 0, 14), "33330000001602000000000786dd");
    EXPECT_EQ(hex(frames[i], 14, 62),
              "60000000"
              "0024"
              "00"
              "01"
              "fe800000000000000000000000000001"
              "ff020000000000000000000000000016"
              "3a00050200000100");
    EXPECT_EQ(hex(frames[i], 62, 64), "8f00");
    EXPECT_EQ(hex(frames[i], 66, 90), std::string("00000001"
                                                  "04000000"
                                                  "ff0200000000000000000001ff00000") +
                                          (i == 0 ? "1" : "2"));
  }
}

/// RFC 3810, 5.2.12 and 6.2: a record of the current state, "mode is exclude", which is 2; RFC 2710, 3: type 131, to
/// the group.
TEST(Announcement, AnswersAQueryInItsVersion) {
  const auto v2 = reported({"fd00:1::1/64"}, ReportReason::query_v2);
  ASSERT_EQ(v2.size(), 1U);
  EXPECT_EQ(hex(v2[0], 62, 64), "8f00");
  EXPECT_EQ(hex(v2[0], 66, 90), "0000000102000000ff0200000000000000000001ff000001");
  EXPECT_EQ(hex(v2[0], 22, 38), std::string(32, '0')) << "no link-local address (RFC 3590)";
  const auto v1 = reported({"fd00:1::1/64"}, ReportReason::query_v1);
  ASSERT_EQ(v1.size(), 1U);
  EXPECT_EQ(hex(v1[0], 0, 6), "3333ff000001");
  EXPECT_EQ(hex(v1[0], 38, 54), "ff0200000000000000000001ff000001");
  EXPECT_EQ(hex(v1[0], 62, 64), "8300");
  EXPECT_EQ(hex(v1[0], 66, 86), "00000000ff0200000000000000000001ff000001");
  EXPECT_EQ(v1[0].size(), 86U);
}

}  // namespace
}  // namespace warpline::packet
