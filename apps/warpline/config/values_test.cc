// SPDX-License-Identifier: Apache-2.0
#include "config/values.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"

namespace warpline::config {
namespace {

TEST(Values, TextIsUtf8WithoutControlCharacters) {
  for (const char* good :
       {"", "plain", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(check_text(good).ok()) << good;
  }
  // RFC 3629 section 10: overlong forms, surrogates, past U+10FFFF, cut sequences.
  for (const char* bad : {"\n", "\x7f", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xff", "a\xe2\x82"}) {
    EXPECT_FALSE(check_text(bad).ok()) << bad;
  }
  EXPECT_FALSE(check_text(std::string_view("\0", 1)).ok());
}

TEST(Values, NumbersWithinTheirBounds) {
  EXPECT_EQ(*parse_bounded("1K", 0, 1000), 1000U);
  EXPECT_FALSE(parse_bounded("1001", 0, 1000).ok());
  EXPECT_EQ(*parse_power_of_two("16", 2, 64), 16U);
  EXPECT_FALSE(parse_power_of_two("0", 0, 64).ok());
  EXPECT_FALSE(parse_power_of_two("17", 2, 64).ok());
  EXPECT_EQ(*parse_frame_size("1K"), "1000");
  EXPECT_FALSE(parse_bounded_rate("1e10gbit").ok());
  EXPECT_FALSE(parse_bounded_rate("0.5bit").ok());
}

TEST(Values, HexBytes) {
  EXPECT_EQ(*parse_hex("00fF"), (std::vector<std::uint8_t>{0, 255}));
  EXPECT_TRUE(parse_hex("driver")->empty());
  for (const char* bad : {"", "0", "0g", "-1", "0x", " 1"}) EXPECT_FALSE(parse_hex(bad).ok()) << bad;
  EXPECT_FALSE(parse_hex(std::string(258, '0')).ok());
}

WARPLINE_PROPERTY(Values, RatesArePrintedExactly, (std::uint64_t bits, bool packets)) {
  const double value = 1 + static_cast<double>(bits) / 18'500;
  const Rate rate = packets ? Rate{PacketRate{value}} : Rate{BitRate{value}};
  RC_ASSERT(*parse_bounded_rate(exact_text(rate)) == rate);
}

}  // namespace
}  // namespace warpline::config
