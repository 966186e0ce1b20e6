// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bench/recycle.h"

namespace warpline::bench {
namespace {

using ::testing::HasSubstr;

/// A table of one factor in which each way costs what `cycles` says, a little else in each round.
RecycleBenchTable made_up(const std::map<memory::RecycleWay, double>& cycles) {
  RecycleBenchTable table;
  auto plan = plan_recycle_bench({"base", "control", "buffers"});
  EXPECT_TRUE(plan.ok());
  table.plan = *std::move(plan);
  table.rounds = 30;
  for (const RecycleSetting& setting : table.plan.settings) {
    RecycleSamples& samples = table.samples.emplace_back();
    for (int round = 0; round < table.rounds; ++round) {
      samples.cycles.push_back(cycles.at(setting.way) * (1 + 0.001 * (round % 3)));
      samples.engine.push_back(5);
      samples.recycled.push_back(setting.way == memory::RecycleWay::direct ? 1 : 0);
      samples.gets.push_back(setting.way == memory::RecycleWay::direct ? 0 : 1);
    }
  }
  return table;
}

const std::map<memory::RecycleWay, double> kAsExpected = {{memory::RecycleWay::off, 60},
                                                          {memory::RecycleWay::fast_free, 55},
                                                          {memory::RecycleWay::cache, 56},
                                                          {memory::RecycleWay::direct, 50},
                                                          {memory::RecycleWay::automatic, 50.2}};

TEST(BenchRecycleTable, AllExpectationsMet) {
  const RecycleBenchTable table = made_up(kAsExpected);
  const auto verdicts = judge(table);
  ASSERT_EQ(verdicts.size(), 5);
  for (const RecycleVerdict& verdict : verdicts) EXPECT_TRUE(verdict.met) << verdict.expected << ": " << verdict.seen;
  EXPECT_EQ(table.exit_code(), 0);
}

TEST(BenchRecycleTable, EachCanBeMissed) {
  const auto missed = [](memory::RecycleWay way, double cycles) {
    auto costs = kAsExpected;
    costs[way] = cycles;
    const RecycleBenchTable table = made_up(costs);
    EXPECT_EQ(table.exit_code(), 1);
    std::string all;
    for (const RecycleVerdict& verdict : judge(table)) all += verdict.met ? "" : verdict.expected + "\n";
    return all;
  };
  EXPECT_THAT(missed(memory::RecycleWay::off, 54), HasSubstr("direct at least 10 % below off"));
  EXPECT_THAT(missed(memory::RecycleWay::fast_free, 50), HasSubstr("direct below fast-free"));
  EXPECT_THAT(missed(memory::RecycleWay::cache, 49), HasSubstr("direct below cache"));
  EXPECT_THAT(missed(memory::RecycleWay::automatic, 51), HasSubstr("auto nowhere seen more than 1 %"));
  EXPECT_THAT(missed(memory::RecycleWay::automatic, 61), HasSubstr("auto nowhere seen above off"));
}

TEST(BenchRecycleTable, NoRoundsNoVerdict) {
  RecycleBenchTable table = made_up(kAsExpected);
  table.rounds = 0;
  for (RecycleSamples& samples : table.samples) samples = {};
  EXPECT_TRUE(judge(table).empty());
  EXPECT_THAT(table.to_markdown(), HasSubstr("not measured"));
}

TEST(BenchRecycleTable, JsonHasEachCellWithItsVersion) {
  const auto json = made_up(kAsExpected).to_json();
  const auto& base = json.at("rows").at(0);
  EXPECT_EQ(base.at("factor"), "base");
  EXPECT_EQ(base.at("best"), "direct");
  for (const auto& [way, cell] : base.at("ways").items()) {
    EXPECT_EQ(cell.at("cycles_per_packet").at("samples").size(), 30) << way;
    EXPECT_THAT(cell.at("dpdk").get<std::string>(), HasSubstr("DPDK"));
  }
  EXPECT_NEAR(base.at("direct_to_off").at("median").get<double>(), 50.0 / 60, 0.001);
  EXPECT_EQ(base.at("ways").at("direct").at("recycled_per_packet"), 1);
}

}  // namespace
}  // namespace warpline::bench
