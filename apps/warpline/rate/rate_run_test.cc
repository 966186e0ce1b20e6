// SPDX-License-Identifier: Apache-2.0
#include "rate/rate_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "rate/load_classification.h"
#include "warpline/base/units.h"

namespace warpline::rate {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr double kLimit = 3e6;
const std::atomic<bool> kGoOn{false};

/// What a forwarder that loses all above its limit reports.
Result<bench::ChildRun> forward_up_to_the_limit(const std::vector<std::string>& arguments, Nanos) {
  const auto rate = std::ranges::find(arguments, "--rate") + 1;
  const double load = std::get<PacketRate>(*parse_rate(*rate)).value;
  const auto sent = static_cast<std::uint64_t>(load / 10);
  const auto delivered = std::min(sent, static_cast<std::uint64_t>(kLimit / 10));
  const Json report = {{"generated", {{"packets", sent}, {"bytes", 64 * sent}}},
                       {"delivered", {{"packets", delivered}}},
                       {"drops", {{"tx_full", sent - delivered}}},
                       {"conserved", true},
                       {"verify", {{"checked", delivered}, {"bad", 0}, {"missing", sent - delivered}}},
                       {"latency_ns", {{"p50", 1000}}},
                       {"queues", {{{"tx", {{"pps", load}}}}}}};
  return bench::ChildRun{.code = sent == delivered ? 0 : 4, .timed_out = false, .output = report.dump(), .errors = {}};
}

RateTable search(const RunTrial& run, const std::atomic<bool>& stop = kGoOn) {
  const Nanos tenth{100'000'000};
  std::vector<SearchGoal> goals(2);
  for (SearchGoal& goal : goals) {
    goal.initial_trial_duration = goal.final_trial_duration = tenth;
    goal.duration_sum = Nanos{5 * tenth.value};
  }
  goals[1].loss_ratio = 0.005;
  const auto no_file = [](const std::string&) -> Result<std::string> { return usage_error("no file", ""); };
  const auto command = OfferedCommand::parse("forward --loopback", {}, no_file);
  auto made = RateSearch::create(goals, 1e4, 1e9);
  EXPECT_TRUE(command.ok() && made.ok());
  RateTable table{.of = command->text(), .goals = goals, .min_load = 1e4, .max_load = 1e9, .rows = {}, .notes = {}};
  table.rows.push_back(run_rate_search(*std::move(made), *command, std::nullopt, run, stop, [](const std::string&) {}));
  return table;
}

TEST(RateRun, ReportsEveryTrialAndTheBoundsThatFollow) {
  const RateTable table = search(forward_up_to_the_limit);
  EXPECT_EQ(table.exit_code(), 0);
  const Json row = table.to_json().at("rows").at(0);
  const Json ndr = row.at("columns").at("NDR"), pdr = row.at("columns").at("PDR 0.5 %");
  EXPECT_TRUE(ndr.at("regular"));
  EXPECT_LE(ndr.at("relevant_lower_bound"), kLimit);
  EXPECT_GE(ndr.at("relevant_upper_bound"), kLimit);
  EXPECT_EQ(ndr.at("conditional_throughput"), ndr.at("relevant_lower_bound"));
  EXPECT_GE(pdr.at("relevant_upper_bound"), kLimit / 0.995 - 10);
  EXPECT_EQ(row.at("trials").size(), table.rows[0].trials.size());
  EXPECT_EQ(row.at("trials").at(0).at("load"), 1e9);
  for (const Json& trial : row.at("trials")) {
    EXPECT_EQ(trial.at("sent").get<std::uint64_t>(),
              trial.at("delivered").get<std::uint64_t>() + trial.at("lost").get<std::uint64_t>());
    EXPECT_EQ(trial.at("latency_ns").at("p50"), 1000);
  }
  const std::string text = table.to_markdown();
  EXPECT_THAT(text, HasSubstr("| NDR | 2.9"));
  EXPECT_THAT(text, HasSubstr("| PDR 0.5 % |"));
}

TEST(RateRun, AChildThatFailsEndsTheSearch) {
  const auto failing = [](int code, bool hangs) {
    return [=](const std::vector<std::string>&, Nanos) -> Result<bench::ChildRun> {
      return bench::ChildRun{.code = code, .timed_out = hangs, .output = {}, .errors = "warpline: no such port\n"};
    };
  };
  const RateTable refused = search(failing(2, false));
  ASSERT_TRUE(refused.rows[0].failure);
  EXPECT_EQ(refused.exit_code(), 2);
  EXPECT_THAT(refused.rows[0].failure->message(), HasSubstr("no such port"));
  EXPECT_FALSE(refused.to_json().at("rows").at(0).at("columns").at("NDR").at("regular"));
  const RateTable died = search(failing(128 + SIGSEGV, false));
  EXPECT_EQ(died.exit_code(), 3);
  EXPECT_THAT(died.rows[0].failure->message(), HasSubstr("signal 11"));
  const RateTable hung = search(failing(128 + SIGKILL, true));
  EXPECT_EQ(hung.exit_code(), 3);
  EXPECT_THAT(hung.to_markdown(), HasSubstr("hung"));
}

TEST(RateRun, WrongBytesEndTheSearch) {
  const RateTable table = search([](const std::vector<std::string>& arguments, Nanos limit) {
    Result<bench::ChildRun> run = forward_up_to_the_limit(arguments, limit);
    Json report = Json::parse(run->output);
    report["verify"]["bad"] = 1;
    run->output = report.dump();
    run->code = 4;
    return run;
  });
  EXPECT_EQ(table.exit_code(), 4);
  EXPECT_TRUE(table.rows[0].trials.empty());
}

TEST(RateRun, AStopKeepsWhatWasFound) {
  std::atomic<bool> stop{false};
  int trials = 0;
  const RateTable table = search(
      [&](const std::vector<std::string>& arguments, Nanos limit) {
        if (++trials == 4) stop = true;
        return forward_up_to_the_limit(arguments, limit);
      },
      stop);
  EXPECT_FALSE(table.rows[0].failure);
  EXPECT_EQ(table.rows[0].trials.size(), 3U);
  EXPECT_EQ(table.rows[0].results[0].regularity, Regularity::unfinished);
}

}  // namespace
}  // namespace warpline::rate
