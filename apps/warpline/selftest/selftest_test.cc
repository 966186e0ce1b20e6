// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "selftest/interfaces.h"
#include "selftest/judge.h"
#include "selftest/selftest_run.h"

namespace warpline::selftest {
namespace {

constexpr const char* kVerified = R"({"verify": {"checked": 10, "bad": 0}, "rate": {"mpps": 1}})";

Subject two_ports() { return {.ports = {"0000:01:00.0", "net_vnic1,wire=net_vnic0"}, .gpu = {}, .quick = true}; }

Step step_named(const std::string& name, std::string asked = "") {
  return {.name = name, .stage = Stage::frames, .arguments = {"generate"}, .needs = "", .asked = std::move(asked)};
}

std::string table_of(double rate) {
  return R"({"table": {"rows": [{"columns": {"NDR": {"conditional_throughput": )" + std::to_string(rate) + "}}}]}}";
}

bench::ChildRun ended(int code, std::string output = kVerified, std::string errors = "") {
  return {.code = code, .timed_out = false, .output = std::move(output), .errors = std::move(errors)};
}

TEST(SelftestPlan, StepsAreNamedOnceAndNeedWhatComesBefore) {
  for (const bool quick : {false, true}) {
    for (const std::optional<std::uint16_t> gpu : {std::optional<std::uint16_t>{}, std::optional<std::uint16_t>{0}}) {
      for (std::size_t ports = 1; ports <= 2; ++ports) {
        const Subject subject{.ports = std::vector<std::string>(ports, "p"), .gpu = gpu, .quick = quick};
        std::vector<std::string> before;
        Stage last = Stage::machine;
        for (const Step& step : feature_steps(subject, "")) {
          EXPECT_EQ(std::ranges::count(before, step.name), 0) << step.name;
          EXPECT_TRUE(step.needs.empty() || std::ranges::count(before, step.needs) == 1) << step.name;
          EXPECT_GE(step.stage, last) << step.name;
          EXPECT_EQ(std::ranges::count(step.arguments, "--json"), step.impossible.empty() ? 1 : 0) << step.name;
          last = step.stage;
          before.push_back(step.name);
        }
        EXPECT_GT(before.size(), 5U);
      }
    }
  }
}

TEST(SelftestPlan, OnePortGetsItsOwnFramesAndForwardsNone) {
  const Subject subject{.ports = {"p"}, .gpu = {}, .quick = false};
  for (const Step& step : feature_steps(subject, "")) {
    const bool forwards = step.arguments.front() == "forward";
    EXPECT_EQ(forwards, !step.impossible.empty()) << step.name;
  }
  EXPECT_EQ(rate_step(subject, {}).arguments[3].substr(0, 17), "ingest --loopback");
}

TEST(SelftestPlan, WithoutAGpuItsStepsSayWhy) {
  Subject subject = two_ports();
  subject.gpu = 1;
  const std::vector<Step> steps = feature_steps(subject, "no driver");
  EXPECT_GT(std::ranges::count(steps, "no driver", &Step::impossible), 5);
  for (const Step& step : steps) {
    const bool on_gpu = std::ranges::count(step.arguments, "--gpu") != 0;
    EXPECT_EQ(on_gpu, step.impossible == "no driver") << step.name;
  }
}

TEST(SelftestPlan, CommandLinesAreForAShell) {
  EXPECT_EQ(command_line({"generate", "--port", "a,b=1", "two words", ""}),
            "warpline generate --port a,b=1 'two words' ''");
}

TEST(SelftestJudge, HowARunEndedSaysWhatCameOfIt) {
  const Step step = step_named("s");
  EXPECT_EQ(judge(step, ended(0), 1).outcome, Outcome::ok);
  EXPECT_EQ(judge(step, ended(0, R"({"verify": {"checked": 0}})"), 1).why, "nothing was verified");
  EXPECT_EQ(judge(step, ended(0, "{"), 1).outcome, Outcome::failed);
  EXPECT_EQ(judge(step, ended(4), 1).outcome, Outcome::failed);
  EXPECT_EQ(judge(step, ended(5, "", "note\nwarpline: nothing came back\n"), 1).why, "nothing came back");
  EXPECT_EQ(judge(step, ended(139), 1).why, "signal 11 ended it: it says nothing");
  const StepResult refused = judge(step, ended(2, "", "warpline: port p: MTU 9000: too large; use 1500\n"), 1);
  EXPECT_EQ(refused.outcome, Outcome::refused);
  EXPECT_EQ(refused.why, "port p: MTU 9000: too large; use 1500");
  bench::ChildRun hung = ended(0);
  hung.timed_out = true;
  EXPECT_EQ(judge(step, hung, 60).outcome, Outcome::failed);
}

TEST(SelftestJudge, AnOffloadThatTheReportRefusesIsRefused) {
  const std::string report = R"({"verify": {"checked": 1}, "refused_offloads": ["p: receive offload rss_hash"]})";
  EXPECT_EQ(judge(step_named("s", "receive offload rss_hash"), ended(0, report), 1).outcome, Outcome::refused);
  EXPECT_EQ(judge(step_named("s", "receive offload scatter"), ended(0, report), 1).outcome, Outcome::ok);
}

TEST(SelftestJudge, TakesWhateverAProgramPrints) {
  for (const char* text : {"", "null", "[]", "3", "\"x\"", R"({"verify": 3})", R"({"queues": [1, {"rx": 2}, null]})",
                           R"({"refused_offloads": 5, "verify": {"checked": -1}})", R"({"checks": {"health": 1}})"}) {
    for (const int code : {0, 2, 3, 4, 5, 130, 139}) {
      EXPECT_NE(judge(step_named("s", "x"), ended(code, text), 1).outcome, Outcome::ok) << text << code;
    }
  }
}

/// Answers each run of the program by its arguments.
class Program {
 public:
  std::vector<std::string> failing;  ///< a run whose arguments have this word fails
  std::size_t stop_after = 1000;     ///< runs
  std::size_t runs = 0;
  std::vector<std::string> kept_texts;
  std::vector<std::size_t> steps_left;  ///< after each step

  Hooks hooks() {
    return {.run = [this](const std::vector<std::string>& arguments, Nanos) -> Result<bench::ChildRun> {
              ++runs;
              for (const std::string& word : failing) {
                if (std::ranges::count(arguments, word) != 0) return ended(3, "", "warpline: no: none; mend it");
              }
              if (arguments.front() == "doctor") return ended(0, R"({"checks": []})");
              if (arguments.front() != "bench") return ended(0);
              const bool fast = arguments[3].find("--recycle direct") != std::string::npos;
              return ended(0, table_of(fast ? 2e6 : 1e6));
            },
            .no_gpu = [] { return "no GPU"; },
            .stopped = [this] { return runs > stop_after; },
            .progress = [this](const StepResult&, std::size_t left) { steps_left.push_back(left); },
            .keep = [this](const Kept& kept) -> Result<void> {
              kept_texts.push_back(kept_json(kept, Json::object()).dump());
              return {};
            },
            .seconds = [this] { return static_cast<double>(runs); }};
  }
};

Kept nothing_yet() { return {.subject = two_ports(), .version = "1", .results = {}, .best = {}, .seconds = 0}; }

TEST(SelftestRun, FindsTheFastestOfWhatWorks) {
  Program program;
  Kept kept = nothing_yet();
  ASSERT_TRUE(run_selftest(kept, program.hooks()).ok());
  ASSERT_TRUE(kept.best.has_value());
  EXPECT_EQ(kept.best->configuration, (Configuration{{"forward", "recycle", "direct"}}));
  EXPECT_EQ(kept.best->rate, 2e6);
  EXPECT_EQ(exit_code(kept), 0);
  EXPECT_EQ(kept.results.back().stage, Stage::latency);
  EXPECT_EQ(program.steps_left.front(), kept.results.size() - 1);
  EXPECT_EQ(program.steps_left.back(), 0U);
  const std::string toml = to_toml(kept.subject, *kept.best);
  EXPECT_NE(toml.find("[forward]\nrecycle = \"direct\"\n"), std::string::npos) << toml;
  EXPECT_NE(toml.find("[[port]]\nspec = \"0000:01:00.0\"\n"), std::string::npos) << toml;
}

TEST(SelftestRun, WhatNeedsSomethingThatDoesNotWorkIsSkipped) {
  Program program;
  program.failing = {"20000"};  // packets of each step that forwards
  Kept kept = nothing_yet();
  ASSERT_TRUE(run_selftest(kept, program.hooks()).ok());
  EXPECT_EQ(kept.find("forward")->outcome, Outcome::refused);
  EXPECT_EQ(kept.find("split 60")->outcome, Outcome::skipped);
  EXPECT_EQ(kept.find("split 60")->why, "it needs \"forward\", which was refused");
  EXPECT_EQ(kept.find("size 1514")->outcome, Outcome::ok);
  program.failing = {"2kpps"};
  Kept unjoined = nothing_yet();
  ASSERT_TRUE(run_selftest(unjoined, program.hooks()).ok());
  EXPECT_EQ(exit_code(unjoined), 3);
  EXPECT_EQ(unjoined.count(Outcome::skipped), unjoined.results.size() - 2);
  EXPECT_EQ(no_link(unjoined), unjoined.find("link"));
  // Whatever needs something else in between says the first cause, and people read it once.
  EXPECT_EQ(unjoined.find("split 60")->why, "it needs \"link\", which was refused");
  const std::string text = to_text(unjoined);
  EXPECT_EQ(text.find("it needs"), text.rfind("it needs")) << text;
}

TEST(SelftestRun, PortsThatHearTheirOwnAddressesOnlyAreSentToThose) {
  constexpr const char* kNothing =
      R"({"verify": {"checked": 0}, "ports": [{"mac": "02:00:00:00:00:0a"}, {"mac": "02:00:00:00:00:0b"}]})";
  const auto answer = [&](const std::vector<std::string>& arguments) -> std::optional<bench::ChildRun> {
    if (arguments.front() != "generate") return std::nullopt;
    return ended(5, kNothing, "warpline: nothing came back");
  };
  Program program;
  Kept kept = nothing_yet();
  Hooks hooks = program.hooks();
  hooks.run = [&, run = hooks.run](const std::vector<std::string>& arguments, Nanos limit) -> Result<bench::ChildRun> {
    if (const auto ends = answer(arguments)) return *ends;
    return run(arguments, limit);
  };
  ASSERT_TRUE(run_selftest(kept, hooks).ok());
  EXPECT_EQ(kept.find("link")->outcome, Outcome::refused);
  EXPECT_EQ(kept.count(Outcome::failed), 0U);
  EXPECT_EQ(exit_code(kept), 0);
  EXPECT_NE(kept.find("queues 2")->command.find("--pipelines 2"), std::string::npos);
  EXPECT_NE(kept.find("queues 2")->command.find("--src-mac 02:00:00:00:00:0b --dst-mac 02:00:00:00:00:0a"),
            std::string::npos);
  // Where nothing comes by these either, there is no link.
  const auto run = hooks.run;
  hooks.run = [&](const std::vector<std::string>& arguments, Nanos limit) -> Result<bench::ChildRun> {
    if (arguments.front() == "forward") return ended(5, kNothing, "warpline: nothing came back");
    return run(arguments, limit);
  };
  Kept none = nothing_yet();
  ASSERT_TRUE(run_selftest(none, hooks).ok());
  EXPECT_EQ(exit_code(none), 5);
}

TEST(SelftestRun, StepsOfAGpuThatIsNotThereAreSkipped) {
  Program program;
  Kept kept = nothing_yet();
  kept.subject.gpu = 0;
  ASSERT_TRUE(run_selftest(kept, program.hooks()).ok());
  EXPECT_EQ(kept.find("ingest, path device")->outcome, Outcome::skipped);
  EXPECT_EQ(kept.find("ingest, path device")->why, "no GPU");
  EXPECT_EQ(exit_code(kept), 0);
}

TEST(SelftestRun, TheBestConfigurationNamesTheGpu) {
  Program program;
  Kept kept = nothing_yet();
  kept.subject.gpu = 3;
  Hooks hooks = program.hooks();
  hooks.no_gpu = [] { return ""; };
  hooks.run = [run = hooks.run](const std::vector<std::string>& arguments, Nanos limit) -> Result<bench::ChildRun> {
    const bool searches = arguments.front() == "bench";
    if (!searches || arguments[3].find("--memory device") == std::string::npos) return run(arguments, limit);
    return ended(0, table_of(9e6));
  };
  ASSERT_TRUE(run_selftest(kept, hooks).ok());
  const std::string toml = to_toml(kept.subject, *kept.best);
  EXPECT_NE(toml.find("engine = \"persistent\"\ngpu = 3\n"), std::string::npos) << toml;
}

TEST(SelftestRun, GoesOnWhereItWasStopped) {
  Program all;
  Kept whole = nothing_yet();
  ASSERT_TRUE(run_selftest(whole, all.hooks()).ok());
  for (std::size_t at = 1; at < all.runs; ++at) {
    Program first;
    first.stop_after = at;
    Kept kept = nothing_yet();
    ASSERT_TRUE(run_selftest(kept, first.hooks()).ok());
    EXPECT_FALSE(kept.best.has_value());
    Program second;
    std::optional<Kept> rest = unfinished(first.kept_texts.back(), two_ports(), "1");
    ASSERT_TRUE(rest.has_value());
    ASSERT_TRUE(run_selftest(*rest, second.hooks()).ok());
    EXPECT_EQ(second.runs, all.runs - at) << at;
    ASSERT_EQ(rest->results.size(), whole.results.size());
    EXPECT_TRUE(std::ranges::equal(rest->results, whole.results, {}, &StepResult::name, &StepResult::name));
    EXPECT_EQ(rest->best->rate, whole.best->rate);
  }
}

TEST(SelftestKept, AnotherSubjectVersionOrACompleteOneIsNotGoneOnWith) {
  Kept kept = nothing_yet();
  kept.results.push_back({.name = "link", .stage = Stage::link, .outcome = Outcome::ok});
  const std::string text = kept_json(kept, {{"host", "h"}}).dump();
  EXPECT_TRUE(unfinished(text, two_ports(), "1").has_value());
  EXPECT_FALSE(unfinished(text, two_ports(), "2").has_value());
  Subject other = two_ports();
  other.quick = false;
  EXPECT_FALSE(unfinished(text, other, "1").has_value());
  kept.best.emplace();
  EXPECT_FALSE(unfinished(kept_json(kept, Json::object()).dump(), two_ports(), "1").has_value());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(unfinished(text.substr(0, length), two_ports(), "1").has_value());
  }
}

TEST(SelftestKept, AdviceIsSaidOnce) {
  Kept kept = nothing_yet();
  const Json found = {{"notes", {"slow"}},
                      {"checks",
                       {{{"name", "a"}, {"health", "ok"}, {"found", "f"}, {"fix", "none"}},
                        {{"name", "b"}, {"health", "missing"}, {"found", "f"}, {"fix", "do it"}}}}};
  for (const char* name : {"one", "two"}) {
    kept.results.push_back({.name = name, .stage = Stage::link, .outcome = Outcome::ok, .found = found});
  }
  EXPECT_EQ(advice(kept), (std::vector<std::string>{"b: f; do it", "slow"}));
}

TEST(SelftestInterfaces, WhatChangedIsPutBack) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "selftest_root";
  const fs::path folder = root / "sys/class/net/eth7";
  fs::create_directories(folder);
  const auto write = [&](const char* file, const char* text) { std::ofstream(folder / file) << text << '\n'; };
  const std::vector<std::string> ports = {"net_af_packet0,iface=eth7", "0000:01:00.0"};
  write("mtu", "1500");
  write("flags", "0x1003");
  const KernelState before = kernel_state(ports, root);
  EXPECT_EQ(before.size(), 2U);
  EXPECT_EQ(put_back(before, ports, root).outcome, Outcome::ok);
  write("mtu", "9000");
  EXPECT_EQ(put_back(before, ports, root).outcome, Outcome::ok);
  EXPECT_EQ(kernel_state(ports, root), before);
  fs::remove_all(folder);
  const StepResult gone = put_back(before, ports, root);
  EXPECT_EQ(gone.outcome, Outcome::failed);
  EXPECT_NE(gone.why.find("/sys/class/net/eth7/mtu was 1500 and is gone"), std::string::npos) << gone.why;
  fs::remove_all(root);
}

}  // namespace
}  // namespace warpline::selftest
