// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/units.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"

namespace warpline {
namespace {

TEST(Units, CountsTakeDecimalAndBinarySuffixes) {
  EXPECT_EQ(*parse_count("64"), 64U);
  EXPECT_EQ(*parse_count("10K"), 10'000U);
  EXPECT_EQ(*parse_count("1.5G"), 1'500'000'000U);
  EXPECT_EQ(*parse_count("2Mi"), 2U << 20);
  EXPECT_EQ(*parse_count("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(parse_bytes("9216B")->value, 9216U);
}

TEST(Units, BadCountsAreRefusedWithTheTextQuoted) {
  for (const char* text : {"", "-1", "1.5", "ten", "1X", "1e30", "nan", "inf", " 1", "1 "}) {
    const auto result = parse_count(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::usage);
    EXPECT_NE(result.error().message().find("'" + std::string(text) + "'"), std::string::npos)
        << result.error().message();
  }
}

TEST(Units, TimesTakeASuffixOrTheDefaultUnit) {
  EXPECT_EQ(parse_nanos("250ns", 1)->value, 250);
  EXPECT_EQ(parse_nanos("10us", 1)->value, 10'000);
  EXPECT_EQ(parse_nanos("1.5ms", 1)->value, 1'500'000);
  EXPECT_EQ(parse_nanos("10", 1000)->value, 10'000);
  EXPECT_FALSE(parse_nanos("10 us", 1).ok());
  EXPECT_FALSE(parse_nanos("1h", 1).ok());
}

TEST(Units, RatesAreBitsOrPackets) {
  EXPECT_EQ(std::get<BitRate>(*parse_rate("40gbit")).value, 40e9);
  EXPECT_DOUBLE_EQ(std::get<PacketRate>(*parse_rate("14.88Mpps")).value, 14.88e6);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*parse_rate("max")));
  for (const char* text : {"", "0pps", "10", "10gbps", "-1pps"}) EXPECT_FALSE(parse_rate(text).ok()) << text;
}

WARPLINE_PROPERTY(UnitsProperty, TimesSurviveTheRoundTrip, ()) {
  const Nanos nanos{*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 50)};
  RC_ASSERT(*parse_nanos(to_string(nanos), 1) == nanos);
}

TEST(Units, RatesSurviveTheRoundTrip) {
  for (const char* text : {"max", "40gbit", "9.5mbit", "14.88mpps", "10kpps", "3pps"}) {
    EXPECT_EQ(*parse_rate(to_string(*parse_rate(text))), *parse_rate(text)) << text;
  }
}

TEST(Units, HumanizeKeepsThreeDigits) {
  EXPECT_EQ(humanize(999), "999");
  EXPECT_EQ(humanize(1500), "1.50 k");
  EXPECT_EQ(humanize(12'300'000), "12.3 M");
}

TEST(TimeSum, StaysWithinTheType) {
  constexpr Nanos kNever{std::numeric_limits<std::int64_t>::max()};
  constexpr Nanos kFirst{std::numeric_limits<std::int64_t>::min()};
  static_assert(time_sum({2}, {3}) == Nanos{5});
  EXPECT_EQ(time_sum({5}, {-7}), Nanos{-2});
  EXPECT_EQ(time_sum({0}, kNever), kNever);
  EXPECT_EQ(time_sum({1}, kNever), kNever);
  EXPECT_EQ(time_sum(kNever, kNever), kNever);
  EXPECT_EQ(time_sum({kNever.value - 3}, {3}), kNever);
  EXPECT_EQ(time_sum({kNever.value - 3}, {4}), kNever);
  EXPECT_EQ(time_sum({-1}, kNever), kNever);
  EXPECT_EQ(time_sum({-2}, kFirst), kFirst);
  EXPECT_EQ(time_sum(kNever, kFirst), Nanos{-1});
}

}  // namespace
}  // namespace warpline
