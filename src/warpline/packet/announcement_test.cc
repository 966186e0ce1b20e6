// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/announcement.h"

#include <gtest/gtest.h>

#include "warpline/packet/frame_testing.h"
#include "warpline/packet/listener.h"

namespace warpline::packet {
namespace {

constexpr MacAddress kMac{{2, 0, 0, 0, 0, 7}};

std::vector<FrameBytes> announced(std::initializer_list<const char*> addresses, bool router) {
  std::vector<InterfaceAddress> own;
  for (const char* address : addresses) own.push_back(*parse_interface_address(address));
  std::vector<FrameBytes> frames = announcements(kMac, own, router);
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
  const auto frames = announced({"10.0.0.1/24"}, false);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].size(), 60U);
  EXPECT_EQ(hex(frames[0], 0, 42),
            "ffffffffffff0200000000070806"
            "0001080006040001"
            "020000000007"
            "0a000001"
            "000000000000"
            "0a000001");
}

/// RFC 4861, 7.2.6 and 4.4; RFC 3810, 5.2.12: "change to exclude mode" is 4.
TEST(Announcement, OfIpv6AddressesReportsTheirGroupsOnceAndAdvertisesEach) {
  const auto frames = announced({"fe80::1/64", "fd00:1::1/64", "fd00:1::2/64"}, true);
  ASSERT_EQ(frames.size(), 5U);
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
  EXPECT_EQ(hex(frames[3], 0, 54),
            "33330000000102000000000786dd"
            "60000000"
            "0020"
            "3a"
            "ff"
            "fd000001000000000000000000000001"
            "ff020000000000000000000000000001");
  EXPECT_EQ(hex(frames[3], 58, 86),
            "a0000000"
            "fd000001000000000000000000000001"
            "0201020000000007");
}

TEST(Announcement, OfAHostIsNotOneOfARouter) {
  EXPECT_EQ(hex(announced({"fd00:1::1/64"}, false)[1], 58, 62), "20000000");
}

}  // namespace
}  // namespace warpline::packet
