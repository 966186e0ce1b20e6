// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/checksum_flags.h"

#include <gtest/gtest.h>

#include <array>

namespace warpline::stream_port {
namespace {

struct Case {
  std::uint64_t flags;
  bool v4_is_right;
  bool v6_is_right;
};

TEST(ChecksumFlags, ASumIsBelievedWhereTheDeviceFoundItRightOrThereIsNone) {
  constexpr Case kCases[] = {
      {0, false, false},
      {RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_GOOD, true, true},
      {RTE_MBUF_F_RX_L4_CKSUM_GOOD, false, true},
      {RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_BAD, false, true},
      {RTE_MBUF_F_RX_L4_CKSUM_BAD | RTE_MBUF_F_RX_IP_CKSUM_GOOD, false, false},
      // What net_vhost says of a segment whose sender left the sum to a device.
      {RTE_MBUF_F_RX_L4_CKSUM_NONE, true, true},
  };
  std::array<std::uint8_t, 64> frame{};
  rte_mbuf mbuf{};
  mbuf.buf_addr = frame.data();
  mbuf.data_len = frame.size();
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.flags);
    mbuf.ol_flags = c.flags;
    frame[12] = 0x08;
    frame[13] = 0x00;
    EXPECT_EQ(device_found_right(&mbuf), c.v4_is_right);
    EXPECT_EQ(device_says_right(&mbuf), c.v4_is_right);
    frame[12] = 0x86;
    frame[13] = 0xdd;
    EXPECT_EQ(device_found_right(&mbuf), c.v6_is_right);
  }
}

}  // namespace
}  // namespace warpline::stream_port
