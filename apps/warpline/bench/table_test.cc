// SPDX-License-Identifier: Apache-2.0
#include "bench/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace warpline::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kReport =
    R"({{"rate": {{"mpps": {}, "gbps_l2": 80}}, "rx": {{"packets": 900}}, "drops": {{"tx_full": 90}},
        "ports": [{{"missed": 60, "nombuf": 40}}], "latency_ns": {{"p50": 4000, "p99": 9000}},
        "gpu": {{"memory_bytes": 34000000}}, "verify": {{"checked": 5}}}})";

bool has(const std::vector<std::string>& arguments, std::string_view word) {
  return std::ranges::find(arguments, word) != arguments.end();
}

/// A stand-in for the program: each run is a little faster than the one before.
class Program {
 public:
  Result<ChildRun> operator()(const std::vector<std::string>& arguments) {
    commands.push_back(fmt::format("{}", fmt::join(arguments, " ")));
    if (has(arguments, failing)) return failure;
    return ChildRun{0, false, fmt::format(kReport, 10 * ++runs), {}};
  }
  std::vector<std::string> commands;
  std::string failing = "nothing";
  Result<ChildRun> failure = ChildRun{3, false, {}, "warpline: note\nwarpline: no GPU: none; buy one\n"};
  int runs = 0;
};

BenchTable make(Program& program, std::uint16_t rounds = 3) {
  config::BenchConfig bench;
  bench.name = "forward-burst";
  bench.rows = {64};
  bench.rounds = rounds;
  auto plan = plan_bench(bench, 16, true);
  EXPECT_TRUE(plan.ok());
  return run_bench_plan(*plan, bench, [&](const auto& arguments) { return program(arguments); }, [](const auto&) {});
}

TEST(BenchTable, EachCellIsVerifiedAndThenTimedOnceARound) {
  Program program;
  const BenchTable table = make(program);
  const std::size_t cells = 2 * 4;
  ASSERT_EQ(program.commands.size(), cells + 3 * cells);
  for (std::size_t i = 0; i < program.commands.size(); ++i) {
    EXPECT_EQ(program.commands[i].find("--verify") != std::string::npos, i < cells) << i;
  }
  for (std::size_t round = 1; round <= 3; ++round) {
    const auto begin = program.commands.begin() + static_cast<std::ptrdiff_t>(round * cells);
    EXPECT_EQ(std::set<std::string>(begin, begin + cells).size(), cells);
  }
  EXPECT_EQ(table.exit_code(), 0);
  EXPECT_EQ(table.samples[0][0].mpps.size(), 3U);
  EXPECT_EQ(table.samples[0][0].checked, 5U);
}

TEST(BenchTable, TheOrderOfARoundIsTheSeeds) {
  Program first, second;
  static_cast<void>(make(first));
  static_cast<void>(make(second));
  EXPECT_EQ(first.commands, second.commands);
}

TEST(BenchTable, LossIsOfWhatCame) {
  Program program;
  const BenchTable table = make(program, 1);
  EXPECT_THAT(table.samples[0][0].loss, ElementsAre(0.19));  // 90 dropped and 100 missed of 1000
}

TEST(BenchTable, ACellThatFailsIsNotRunAgain) {
  Program program;
  program.failing = "graph";
  const BenchTable table = make(program);
  EXPECT_EQ(std::ranges::count_if(program.commands, [](const auto& c) { return c.find("graph") != c.npos; }), 2);
  EXPECT_EQ(table.exit_code(), 3);
  EXPECT_TRUE(table.samples[0][2].mpps.empty());
  EXPECT_EQ(table.samples[0][3].mpps.size(), 3U);
  EXPECT_THAT(table.to_markdown(),
              HasSubstr("- 64 B, burst 64, graph: exit code 3: warpline: no GPU: none; buy one\n"));
  EXPECT_EQ(table.to_json()["rows"][0]["columns"]["graph"]["failure"], table.samples[0][2].failure);
}

TEST(BenchTable, WhatWasNotVerifiedIsWorst) {
  Program program;
  program.failing = "graph";
  program.failure = ChildRun{4, false, {}, {}};
  EXPECT_EQ(make(program).exit_code(), 4);
  program.failure = ChildRun{137, true, {}, {}};
  EXPECT_EQ(make(program).exit_code(), 3);
  program.failure = environment_error("cannot run it", "no memory");
  EXPECT_EQ(make(program).exit_code(), 3);
  program.failure = ChildRun{0, false, "{}", {}};
  EXPECT_EQ(make(program).exit_code(), 3);
  program.failure = ChildRun{0, false, R"({"rate": {"mpps": 1}})", {}};
  EXPECT_EQ(make(program).exit_code(), 4);
}

TEST(BenchTable, AsJsonAndMarkdown) {
  Program program;
  BenchTable table = make(program);
  table.samples[1][0].mpps = {50, 10, 30};
  table.notes = {"a note"};
  const auto json = table.to_json();
  EXPECT_EQ(json["pipelines"], 4);
  const auto row = json["rows"][1];
  EXPECT_EQ(row["size"], 64);
  EXPECT_EQ(row["columns"]["inline"]["mpps"]["median"], 30);
  EXPECT_EQ(row["columns"]["inline"]["mpps"]["min"], 10);
  EXPECT_EQ(row["columns"]["inline"]["gpu_memory_bytes"], 34000000);
  EXPECT_THAT(row["columns"]["inline"]["command"], HasSubstr("warpline forward --port net_vnic0"));
  EXPECT_TRUE(row["published_gbps"].empty());
  EXPECT_EQ(json["rows"][0]["published_gbps"]["l2fwd-nv, graphs"], 97);
  const std::string text = table.to_markdown();
  EXPECT_THAT(text, HasSubstr("| frame | burst | inline | launch | graph | persistent | l2fwd-nv, kernel |"));
  EXPECT_THAT(text, HasSubstr("| 64 B | 64 | 80 Gbit/s, 30.0 Mpps [10.0, 50.0], 19 % lost, 4.0/9.0 us, 34 MB |"));
  EXPECT_THAT(text, HasSubstr("- a note\n"));
  EXPECT_THAT(text, Not(HasSubstr("failed")));
}

}  // namespace
}  // namespace warpline::bench
