// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "batches/copy_batch_table.h"

namespace warpline::batches {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

config::BenchConfig asked(std::vector<std::uint16_t> sizes, std::vector<std::string> batches,
                          std::vector<std::string> paths = {}) {
  config::BenchConfig bench;
  bench.name = "copy-batch";
  bench.sizes = std::move(sizes);
  bench.batches = std::move(batches);
  bench.paths = std::move(paths);
  return bench;
}

std::string after(const std::vector<std::string>& arguments, std::string_view option) {
  return *(std::ranges::find(arguments, option) + 1);
}

/// A stand-in for the program: half of what is offered arrives.
bench::ChildRun half_of_it(int bad) {
  return {0,
          false,
          fmt::format(R"({{"conserved": true, "rate": {{"mpps": 7}}, "verify": {{"checked": 50, "bad": {}}},
    "ingest": {{"offered": {{"packets": 100}}, "delivered": {{"packets": 50}}, "gpu_memory_bytes": 1048576}},
    "delays_ns": {{"batching": {{"p50": 2000}}, "gpu": {{"p50": 3000, "p99": 9000}}}}}})",
                      bad),
          {}};
}

CopyBatchTable table_of(const config::BenchConfig& bench, int bad = 0) {
  return run_copy_batch(
      *plan_copy_batch(bench, false, EngineKind::inline_), bench,
      [bad](const auto&) -> Result<bench::ChildRun> { return half_of_it(bad); }, [](const auto&) {});
}

TEST(CopyBatch, HasAllSizesBatchesPathsAndEnginesUnlessAskedForLess) {
  const auto all = plan_copy_batch(asked({}, {}), true, {});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->rows.size(), 6U * 12);
  EXPECT_EQ(all->columns.size(), 9U);
  const auto few = plan_copy_batch(asked({128}, {"adaptive"}, {"copy-naive"}), true, EngineKind::launch);
  ASSERT_TRUE(few.ok());
  EXPECT_THAT(few->columns, ElementsAre("copy-naive, launch"));
  ASSERT_EQ(few->rows.size(), 1U);
  EXPECT_EQ(after(few->rows[0].cells[0].arguments, "--batch"), "adaptive");
  EXPECT_NEAR(few->rows[0].offered_mpps, 8.446, 0.001);
}

TEST(CopyBatch, BuffersThatStayWithTheConsumerHaveNoLargeBatches) {
  const auto plan = plan_copy_batch(asked({64}, {"512", "32768"}), false, EngineKind::thread);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->rows[0].cells.size(), 3U);
  EXPECT_EQ(plan->rows[1].cells.size(), 2U);
}

TEST(CopyBatch, TheBudgetHoldsFourOfTheLargestBatches) {
  const auto plan = plan_copy_batch(asked({1514}, {"32", "32768"}, {"copy"}), false, EngineKind::inline_);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(after(plan->rows[0].cells[0].arguments, "--gpu-memory"), std::to_string(16 << 20));
  EXPECT_GT(std::stoull(after(plan->rows[1].cells[0].arguments, "--gpu-memory")), 4ULL * 32'768 * 1514);
}

TEST(CopyBatch, TheStudysFiguresAreSharesOfWhatItOffered) {
  const auto plan = plan_copy_batch(asked({64, 1514}, {"32", "4096"}), false, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_NEAR(*plan->rows[0].launch, 0.09, 0.005);
  EXPECT_NEAR(*plan->rows[0].polling, 0.14, 0.005);
  EXPECT_FALSE(plan->rows[1].launch);
  EXPECT_NEAR(*plan->rows[2].launch, 0.86, 0.005);
  EXPECT_EQ(*plan->rows[2].polling, 1);
}

TEST(CopyBatch, RefusesWhatNoRowOrColumnHas) {
  EXPECT_THAT(plan_copy_batch(asked({65}, {}), false, {}).error().message(), HasSubstr("there are 64, 128"));
  EXPECT_THAT(plan_copy_batch(asked({}, {"65536"}), false, {}).error().message(), HasSubstr("32768, adaptive"));
  EXPECT_THAT(plan_copy_batch(asked({}, {}, {"device"}), false, {}).error().message(), HasSubstr("there are copy"));
  EXPECT_EQ(plan_copy_batch(asked({}, {}), false, EngineKind::graph).error().kind, ErrorKind::environment);
  config::BenchConfig rows = asked({}, {});
  rows.rows = {64};
  EXPECT_THAT(plan_copy_batch(rows, false, {}).error().message(), HasSubstr("use --size"));
}

TEST(CopyBatch, EachCellHasItsShareMemoryAndDelays) {
  config::BenchConfig bench = asked({64}, {"32"}, {"copy"});
  bench.rounds = 2;
  const CopyBatchTable table = table_of(bench);
  const auto cell = table.to_json()["rows"][0]["columns"]["copy, inline"];
  EXPECT_EQ(cell["taken"]["median"], 0.5);
  EXPECT_EQ(cell["taken"]["samples"].size(), 2U);
  EXPECT_EQ(cell["p99_us"]["median"], 9);
  EXPECT_EQ(cell["verified_packets"], 100);
  EXPECT_THAT(table.to_markdown(), HasSubstr("| 64 | 32 | 14.88 | 50.0 %, 1 MiB, 3/9 us | 9 % | 14 % |"));
  EXPECT_EQ(table.exit_code(), 0);
}

TEST(CopyBatch, WrongBytesAreAFailure) {
  const CopyBatchTable table = table_of(asked({64}, {"32", "64"}, {"copy"}), 1);
  EXPECT_EQ(table.exit_code(), static_cast<int>(ErrorKind::verification));
  EXPECT_THAT(table.to_markdown(), HasSubstr("| failed |"));
}

}  // namespace
}  // namespace warpline::batches
