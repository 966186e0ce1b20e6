// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/address.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

TEST(Address, ReadsAndPrintsEveryKind) {
  EXPECT_EQ(to_string(*parse_mac("02:00:5e:00:00:ff")), "02:00:5e:00:00:ff");
  EXPECT_EQ(to_string(*parse_ip("10.0.0.1")), "10.0.0.1");
  EXPECT_EQ(to_string(*parse_ip("fd00:0:0::1")), "fd00::1");
  EXPECT_EQ(to_string(*parse_interface_address("10.0.0.1/24")), "10.0.0.1/24");
  EXPECT_EQ(to_string(*parse_interface_address("fd00::1/64")), "fd00::1/64");
  EXPECT_EQ(to_string(*parse_socket_address("10.0.0.1:7000")), "10.0.0.1:7000");
  EXPECT_EQ(to_string(*parse_socket_address("[fd00::1]:65535")), "[fd00::1]:65535");
}

TEST(Address, RefusesAnythingElse) {
  for (const char* text : {"", "02:00:00:00:00", "02-00-00-00-00-01", "02:00:00:00:00:0g", "02:00:00:00:00:011"}) {
    EXPECT_FALSE(parse_mac(text).ok()) << text;
  }
  for (const char* text : {"", "10.0.0", "10.0.0.256", "fd00:::1", "host"}) EXPECT_FALSE(parse_ip(text).ok()) << text;
  for (const char* text : {"10.0.0.1", "10.0.0.1/33", "10.0.0.1/", "10.0.0.1/+8", "fd00::1/129", "/24"}) {
    EXPECT_FALSE(parse_interface_address(text).ok()) << text;
  }
  for (const char* text : {"", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", ":7000", "fd00::1:7000",
                           "[10.0.0.1]:7000", "[]:7000", "[fd00::1]7000", "10.0.0.1:+7"}) {
    EXPECT_FALSE(parse_socket_address(text).ok()) << text;
  }
}

TEST(SocketAddress, OfALinkNamesItsInterface) {
  const auto address = parse_socket_address("[fe80::1%lo]:7000");
  ASSERT_TRUE(address);
  EXPECT_NE(address->scope, 0U);
  EXPECT_EQ(address->port, 7000);
  EXPECT_EQ(to_string(*address), "[fe80::1%lo]:7000");
  EXPECT_NE(*address, *parse_socket_address("[fe80::1]:7000"));
  EXPECT_FALSE(parse_socket_address("[fe80::1%no-such-one]:7000"));
  EXPECT_FALSE(parse_socket_address("10.0.0.1%lo:7000"));
}

}  // namespace
}  // namespace warpline
