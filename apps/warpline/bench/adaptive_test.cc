// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptive.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace warpline::bench {
namespace {

/// A stand-in for the program: it carries 8 Mpps, with bursts of 4 half of that, and p99 is that of the burst's kind.
class AdaptiveProgram {
 public:
  Result<ChildRun> operator()(const std::vector<std::string>& arguments) {
    commands.push_back(fmt::format("{}", fmt::join(arguments, " ")));
    const auto after = [&](const char* option) { return *(std::ranges::find(arguments, option) + 1); };
    const std::string burst = after("--burst");
    const double most = burst == "4" ? 4 : 8;
    const double rate = after("--rate") == "max" ? most : std::min(most, std::stod(after("--rate")) / 1e6);
    const double p99 = burst == "adaptive" ? adaptive_p99 : burst == "4" ? 1000 : 10'000;
    return ChildRun{
        0,
        false,
        fmt::format(R"({{"rate": {{"mpps": {}}}, "generated": {{"packets": 100}}, "latency_ns": {{"p99": {}}},
                                    "verify": {{"bad": {}, "missing": 1}}}})",
                    rate, p99, bad),
        {}};
  }
  std::vector<std::string> commands;
  double adaptive_p99 = 12'000;
  int bad = 0;
};

Result<AdaptiveBenchTable> adaptive_table(AdaptiveProgram& program, std::vector<std::uint16_t> rows) {
  config::BenchConfig bench;
  bench.name = "adaptive";
  bench.rows = std::move(rows);
  bench.rounds = 3;
  return run_adaptive_bench(bench, [&](const auto& arguments) { return program(arguments); }, [](const auto&) {});
}

TEST(AdaptiveBench, ComparesWithTheBestOfThoseThatCarryTheLoad) {
  AdaptiveProgram program;
  const auto table = adaptive_table(program, {10, 100});
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->capacity_mpps, 8);
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0].ratios("adaptive").throughput, 1);
  EXPECT_EQ(table->rows[0].ratios("adaptive").p99, 12);  // bursts of 4 carry a tenth
  EXPECT_FALSE(table->rows[0].met());
  EXPECT_DOUBLE_EQ(table->rows[1].ratios("adaptive").p99, 1.2);  // but not all
  EXPECT_TRUE(table->rows[1].met());
  EXPECT_EQ(program.commands.size(), 3U * 6 + 2 * 3 * 8);
  EXPECT_EQ(table->exit_code(), 0);
  EXPECT_EQ(table->to_json()["rows"][1]["met"], true);
}

TEST(AdaptiveBench, FramesThatChangedEndIt) {
  AdaptiveProgram program;
  program.bad = 1;
  const auto table = adaptive_table(program, {10});
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().kind, ErrorKind::verification);
}

TEST(AdaptiveBench, RefusesALoadAboveTheCapacity) {
  AdaptiveProgram program;
  EXPECT_EQ(adaptive_table(program, {101}).error().kind, ErrorKind::usage);
  EXPECT_TRUE(program.commands.empty());
}

}  // namespace
}  // namespace warpline::bench
