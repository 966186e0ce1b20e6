// SPDX-License-Identifier: Apache-2.0
#include "bench/recycle_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace warpline::bench {
namespace {

using ::testing::HasSubstr;

int differences(const RecycleSetting& a, const RecycleSetting& b) {
  return (a.loop != b.loop) + (a.probe != b.probe) + (a.driver != b.driver) + (a.refill != b.refill) +
         (a.burst != b.burst) + (a.ring != b.ring) + (a.cache != b.cache) + (a.external != b.external) +
         (a.touched != b.touched) + (a.queues != b.queues) + (a.elsewhere_percent != b.elsewhere_percent) +
         (a.cloned_percent != b.cloned_percent) + (a.repeat != b.repeat);
}

TEST(BenchRecyclePlan, OneFactorAtATime) {
  const auto plan = plan_recycle_bench({});
  ASSERT_TRUE(plan.ok());
  const RecycleSetting base;
  for (const RecycleSetting& setting : plan->settings) {
    // A mix differs by its loop, and by one thing more.
    EXPECT_LE(differences(setting, base), setting.loop == RecycleLoop::mix ? 2 : 1) << describe(setting);
  }
}

TEST(BenchRecyclePlan, WhatSeveralRowsShowIsMeasuredOnce) {
  const auto plan = plan_recycle_bench({});
  ASSERT_TRUE(plan.ok());
  for (std::size_t i = 0; i < plan->settings.size(); ++i) {
    EXPECT_EQ(std::ranges::count(plan->settings, plan->settings[i]), 1) << describe(plan->settings[i]);
  }
  const auto row_of = [&](const std::string& factor, const std::string& value) {
    const auto found = std::ranges::find_if(
        plan->rows, [&](const RecycleRow& row) { return row.factor == factor && row.value == value; });
    EXPECT_NE(found, plan->rows.end()) << factor << " " << value;
    return found->cells;
  };
  EXPECT_EQ(row_of("base", "forward"), row_of("burst", "32"));
  EXPECT_EQ(row_of("base", "forward"), row_of("ring", "1024"));
  EXPECT_EQ(row_of("elsewhere", "0 %"), row_of("cloned", "0 %"));
  EXPECT_EQ(row_of("base", "forward").size(), kRecycleWays.size());
}

TEST(BenchRecyclePlan, WaysOfARowDiffer) {
  const auto plan = plan_recycle_bench({});
  ASSERT_TRUE(plan.ok());
  for (const RecycleRow& row : plan->rows) {
    std::set<memory::RecycleWay> ways;
    for (const std::size_t cell : row.cells) EXPECT_TRUE(ways.insert(plan->settings[cell].way).second) << row.factor;
  }
}

TEST(BenchRecyclePlan, OnlyWhatIsAskedFor) {
  const auto plan = plan_recycle_bench({"burst", "base"});
  ASSERT_TRUE(plan.ok());
  std::set<std::string> factors;
  for (const RecycleRow& row : plan->rows) factors.insert(row.factor);
  EXPECT_EQ(factors, (std::set<std::string>{"base", "burst"}));
  const auto one = plan_recycle_bench({"base"}, {"direct"});
  ASSERT_TRUE(one.ok());
  ASSERT_EQ(one->settings.size(), 1);
  EXPECT_EQ(one->settings.front().way, memory::RecycleWay::direct);
}

TEST(BenchRecyclePlan, RefusesAnUnknownFactor) {
  const auto plan = plan_recycle_bench({"bursts"});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::usage);
  EXPECT_THAT(plan.error().message(), HasSubstr("burst"));
  const auto ways = plan_recycle_bench({}, {"directly"});
  ASSERT_FALSE(ways.ok());
  EXPECT_THAT(ways.error().message(), HasSubstr("direct, auto"));
}

}  // namespace
}  // namespace warpline::bench
