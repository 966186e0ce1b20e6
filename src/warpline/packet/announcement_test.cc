// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/announcement.h"

#include <gtest/gtest.h>

#include "warpline/packet/frame_testing.h"
#include "warpline/packet/listener.h"

namespace warpline::packet {
namespace {

constexpr MacAddress kMac{{2, 0, 0, 0, 0, 7}};

std::vector<FrameBytes> announced(std::initializer_list<const char*> addresses) {
  std::vector<InterfaceAddress> own;
  for (const char* address : addresses) own.push_back(*parse_interface_address(address));
  std::vector<FrameBytes> frames = announcements(kMac, own);
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
  const auto frames = announced({"10.0.0.1/24"});
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

/// RFC 3810, 5.2.12: "change to exclude mode" is 4.
TEST(Announcement, OfIpv6AddressesReportsEachGroupOnce) {
  const auto frames = announced({"fe80::1/64", "fd00:1::1/64", "fd00:1::2/64"});
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

}  // namespace
}  // namespace warpline::packet
