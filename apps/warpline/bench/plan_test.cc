// SPDX-License-Identifier: Apache-2.0
#include "bench/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "config/load.h"

namespace warpline::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

config::BenchConfig named(const std::string& name) {
  config::BenchConfig bench;
  bench.name = name;
  return bench;
}

TEST(BenchPlan, ByFrameSizeAndMemory) {
  const auto plan = plan_bench(named("forward-size"), 16, true);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->columns, ElementsAre("host", "pinned", "device", "I/O only"));
  EXPECT_EQ(plan->pipelines, 4);
  ASSERT_EQ(plan->rows.size(), 7U);
  EXPECT_EQ(plan->rows[0].published[0], 19.0);
  EXPECT_EQ(plan->rows[6].size, 8192U);
  EXPECT_EQ(plan->rows[6].published[0], std::nullopt);
  EXPECT_THAT(plan->rows[6].cells[2].timed, Contains("net_vnic0,wire=static,size=8192,buffer=16777216"));
  EXPECT_THAT(plan->rows[6].cells[2].timed, Contains("8178"));  // the MTU
}

TEST(BenchPlan, ByBurstAndEngine) {
  const auto plan = plan_bench(named("forward-burst"), 16, true);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->columns, ElementsAre("inline", "launch", "graph", "persistent"));
  ASSERT_EQ(plan->rows.size(), 10U);
  EXPECT_THAT(plan->rows[0].published, ElementsAre(23.0, 30.0, 50.0));
  EXPECT_THAT(plan->rows[9].published, ElementsAre(std::nullopt, std::nullopt, std::nullopt));
}

TEST(BenchPlan, WithoutAGpuTheColumnsOfTheCpuAreLeft) {
  const auto sizes = plan_bench(named("forward-size"), 2, false);
  ASSERT_TRUE(sizes.ok());
  EXPECT_THAT(sizes->columns, ElementsAre("host", "I/O only"));
  EXPECT_EQ(sizes->pipelines, 1);
  EXPECT_EQ(sizes->rows[0].cells.size(), 2U);
  EXPECT_THAT(plan_bench(named("forward-burst"), 2, false)->columns, ElementsAre("inline"));
}

TEST(BenchPlan, EveryCellIsACommandThatForwardTakes) {
  for (const char* name : {"forward-size", "forward-burst"}) {
    const auto plan = plan_bench(named(name), 16, true);
    ASSERT_TRUE(plan.ok());
    for (const BenchRow& row : plan->rows) {
      for (const BenchCell& cell : row.cells) {
        for (const auto& arguments : {cell.timed, cell.verified}) {
          const auto loaded =
              config::load(arguments, {}, [](const std::string&) -> Result<std::string> { return std::string(); });
          EXPECT_TRUE(loaded.ok()) << cell.column << ": " << (loaded ? "" : loaded.error().message());
        }
      }
    }
  }
}

TEST(BenchPlan, TakesSomeRowsAndMorePipelines) {
  config::BenchConfig bench = named("forward-burst");
  bench.rows = {16, 256};
  bench.pipelines = 7;
  const auto plan = plan_bench(bench, 16, true);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->rows.size(), 4U);
  EXPECT_EQ(plan->pipelines, 7);
}

TEST(BenchPlan, RefusesARowThatIsNone) {
  config::BenchConfig bench = named("forward-size");
  bench.rows = {64, 65};
  const auto plan = plan_bench(bench, 16, true);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::usage);
  EXPECT_THAT(plan.error().message(), HasSubstr("65"));
  EXPECT_THAT(plan.error().message(), HasSubstr("64, 128"));
}

}  // namespace
}  // namespace warpline::bench
