// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "warpline/base/property_testing.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/verify.h"
#include "warpline/traffic/pool_testing.h"

namespace warpline::traffic {
namespace {

using ::testing::HasSubstr;

std::vector<std::uint8_t> frame_of(const TrafficPlan& plan, std::uint64_t sequence, std::uint64_t ticks = 77) {
  const FramePlace place = plan.place(sequence);
  const Stamp stamp = plan.stamp(3, sequence, ticks);
  std::vector<std::uint8_t> frame(plan.frame_bytes(place));
  plan.write_head(place, stamp, frame.data());
  std::copy_n(plan.pattern(stamp), frame.size() - plan.head_bytes(), frame.begin() + plan.head_bytes());
  return frame;
}

Verdict verdict_of(std::vector<std::uint8_t>& frame) {
  Segment segment{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
  const FrameRef ref = frame_at(&segment);
  return packet::verify_checksums(ref, packet::parse(ref));
}

WARPLINE_PROPERTY(TrafficPlan, MakesWellFormedFramesOfEverySize, ()) {
  const bool ipv6 = *rc::gen::arbitrary<bool>();
  const auto size = *rc::gen::inRange<std::uint32_t>(ipv6 ? 80 : 60, kMaxFrameBytes + 1);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto plan = TrafficPlan::make(
      ipv6 ? ipv6_traffic_of_size(std::to_string(size)) : traffic_of_size(std::to_string(size)), seed);
  RC_ASSERT(plan.ok());
  for (int i = 0; i < 20; ++i) {
    const auto sequence = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 48);
    std::vector<std::uint8_t> frame = frame_of(*plan, sequence, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(frame.size() == size);
    RC_ASSERT(verdict_of(frame) == Verdict::forward);
    RC_ASSERT(packet::load_be16(&frame[plan->head_bytes() - kStampBytes - 2]) != 0);  // with a checksum
  }
}

TEST(TrafficPlan, ImixIsSevenFourOneInAnyTwelve) {
  const auto plan = TrafficPlan::make(traffic_of_size("imix"), 1);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->max_frame_bytes(), 1514U);
  for (const std::uint64_t from : {0U, 1U, 5U, 1000003U}) {
    std::map<std::uint32_t, int> sizes;
    for (std::uint64_t i = from; i < from + 12; ++i) ++sizes[plan->frame_bytes(plan->place(i))];
    EXPECT_EQ(sizes, (std::map<std::uint32_t, int>{{60, 7}, {590, 4}, {1514, 1}}));
  }
}

TEST(TrafficPlan, FollowsPlacesWithoutDividing) {
  const auto plan = TrafficPlan::make(traffic_of_size("imix", 7), 1);
  ASSERT_TRUE(plan.ok());
  FramePlace place = plan->place(0);
  for (std::uint64_t i = 0; i < 1000; ++i, place = plan->next(place)) {
    EXPECT_EQ(place.sequence, i);
    EXPECT_EQ(place.flow, plan->place(i).flow);
    EXPECT_EQ(place.slot, plan->place(i).slot);
  }
}

/// Source address and port of each of `flows` flows.
std::set<std::string> sources(const TrafficSettings& settings, std::size_t address, std::size_t length) {
  const auto plan = TrafficPlan::make(settings, 1);
  std::set<std::string> distinct;
  for (std::uint32_t flow = 0; flow < settings.flows; ++flow) {
    std::vector<std::uint8_t> frame = frame_of(*plan, flow);
    std::string key(frame.data() + address, frame.data() + address + length);
    const std::uint8_t* const udp = frame.data() + plan->head_bytes() - kStampBytes - 8;
    key.append(udp, udp + 2);
    EXPECT_EQ(verdict_of(frame), Verdict::forward);
    distinct.insert(key);
  }
  return distinct;
}

TEST(TrafficPlan, FlowsCountPortsThenAddresses) {
  TrafficSettings settings = traffic_of_size("64", 1000);
  settings.src_port = 65530;
  EXPECT_EQ(sources(settings, 26, 4).size(), 1000U);
  TrafficSettings ipv6 = ipv6_traffic_of_size("80");
  ipv6.flows = 1000;
  ipv6.src_port = 65530;
  EXPECT_EQ(sources(ipv6, 22, 16).size(), 1000U);
}

TEST(TrafficPlan, SourceAddressesCarryIntoTheNextByte) {
  TrafficSettings settings = ipv6_traffic_of_size("80");
  settings.src_port = 65535;
  settings.flows = 2;
  const auto plan = TrafficPlan::make(settings, 1);
  ASSERT_TRUE(plan.ok());
  const std::vector<std::uint8_t> frame = frame_of(*plan, 1);
  EXPECT_EQ(packet::load_address<Ipv6Address>(&frame[22]), std::get<Ipv6Address>(*parse_ip("2001:2::1:0")));
}

TEST(TrafficPlan, TheSeedChangesTheFrames) {
  const auto one = TrafficPlan::make(traffic_of_size("200"), 1);
  const auto same = TrafficPlan::make(traffic_of_size("200"), 1);
  const auto other = TrafficPlan::make(traffic_of_size("200"), 2);
  EXPECT_EQ(frame_of(*one, 5), frame_of(*same, 5));
  EXPECT_NE(frame_of(*one, 5), frame_of(*other, 5));
}

TEST(TrafficPlan, ReadsBackItsStamp) {
  const auto plan = TrafficPlan::make(traffic_of_size("64"), 1);
  const std::vector<std::uint8_t> frame = frame_of(*plan, (std::uint64_t{1} << 48) - 1, 99);
  Stamp stamp;
  ASSERT_TRUE(plan->read_stamp(frame.data(), stamp));
  EXPECT_EQ(stamp.stream(), 3);
  EXPECT_EQ(stamp.sequence(), (std::uint64_t{1} << 48) - 1);
  EXPECT_EQ(stamp.ticks, 99U);
}

void expect_usage_error(const TrafficSettings& settings, const std::string& part) {
  const auto plan = TrafficPlan::make(settings, 1);
  ASSERT_FALSE(plan.ok()) << settings.size;
  EXPECT_EQ(plan.error().kind, ErrorKind::usage);
  EXPECT_THAT(plan.error().message(), HasSubstr(part));
}

TEST(TrafficPlan, RefusesWhatItCannotMake) {
  expect_usage_error(traffic_of_size("59"), "59 bytes");
  expect_usage_error(traffic_of_size("9015"), "9015 bytes");
  expect_usage_error(traffic_of_size("large"), "large");
  expect_usage_error(traffic_of_size("64", 0), "0 flows");
  expect_usage_error(traffic_of_size("64", kMaxFlows + 1), "flows");
  expect_usage_error(ipv6_traffic_of_size("79"), "--size 80");
  expect_usage_error(ipv6_traffic_of_size("imix"), "IPv6");
  TrafficSettings mixed = traffic_of_size("64");
  mixed.dst_ip = *parse_ip("fd00::1");
  expect_usage_error(mixed, "two kinds");
}

}  // namespace
}  // namespace warpline::traffic
