// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/eal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>

#include <rte_eal.h>

#include "warpline/runtime/eal_environment.h"

namespace warpline::runtime {
namespace {

const auto* const kEal = testing::AddGlobalTestEnvironment(new EalEnvironment(0, Bytes{64 << 20}));

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

LcorePlan small_plan() {
  return *plan_lcores(machine::Topology::made_up(1, 2, 1), {{.name = "rx 0", .queues = ""}}, {});
}

std::vector<std::string> arguments(const std::string& further, const std::vector<std::string>& ports, bool hugepages) {
  RuntimeSettings settings;
  settings.eal = further;
  const auto made = eal_arguments(settings, small_plan(), ports, Bytes{100 << 20}, hugepages, "warpline-test");
  EXPECT_TRUE(made.ok());
  return made.ok() ? *made : std::vector<std::string>{};
}

TEST(EalArguments, NeverLeaveAFileBehind) {
  EXPECT_THAT(arguments("", {}, true), Contains("--in-memory"));
  EXPECT_THAT(arguments("", {}, false), testing::IsSupersetOf({"--no-huge", "--no-shconf"}));
  EXPECT_THAT(arguments("", {}, false), Not(Contains("--in-memory")));
  for (const bool hugepages : {false, true}) EXPECT_THAT(arguments("", {}, hugepages), Contains("--no-telemetry"));
}

TEST(EalArguments, ReserveWhatPoolsAndDpdkNeed) {
  const auto made = arguments("", {}, false);
  const auto at = std::find(made.begin(), made.end(), "-m");
  ASSERT_NE(at, made.end());
  EXPECT_EQ(*(at + 1), "164");
}

TEST(EalArguments, LookAtThePciBusOnlyForPciPorts) {
  EXPECT_THAT(arguments("", {"net_null0"}, true), testing::IsSupersetOf({"--no-pci", "--iova-mode=va"}));
  const auto made = arguments("", {"net_null0", "0000:01:00.0,mprq_en=1"}, true);
  EXPECT_THAT(made, Not(Contains("--no-pci")));
  EXPECT_THAT(made, testing::IsSupersetOf({"-a", "0000:01:00.0,mprq_en=1"}));
}

TEST(EalArguments, CarryThePlanAndWhatTheUserAdds) {
  const auto made = arguments("--single-file-segments  --log-level=debug", {}, true);
  EXPECT_THAT(made, testing::IsSupersetOf({"--lcores", "0@(0),1@1", "--single-file-segments", "--log-level=debug"}));
  EXPECT_THAT(made, Not(Contains("--log-level=error")));
}

TEST(EalArguments, SetLogLevelsThatTheUserOverrides) {
  const auto levels = [](LogLevel level, const std::string& eal) {
    RuntimeSettings settings;
    settings.log_level = level;
    settings.eal = eal;
    auto made = eal_arguments(settings, small_plan(), {}, Bytes{}, true, "x").value();
    std::erase_if(made, [](const std::string& word) { return !word.starts_with("--log-level"); });
    return made;
  };
  using testing::ElementsAre;
  EXPECT_THAT(levels(LogLevel::error, ""), ElementsAre("--log-level=error"));
  EXPECT_THAT(levels(LogLevel::info, ""), ElementsAre("--log-level=error", "--log-level=*:info", "--log-level=info"));
  EXPECT_THAT(levels(LogLevel::error, "--log-level=lib.eal,debug"), ElementsAre("--log-level=lib.eal,debug"));
  EXPECT_THAT(levels(LogLevel::info, "--log-level=lib.eal,debug"),
              ElementsAre("--log-level=*:info", "--log-level=lib.eal,debug"));
}

TEST(EalArguments, WhatTheProgramDecidesIsRefused) {
  for (const char* text : {"-l 0-3", "-l0-3", "--lcores=0", "--lcores 0", "--vdev=net_null0", "-a 01:00.0",
                           "--file-prefix=x", "--in-memory", "--main-lcore 1"}) {
    RuntimeSettings settings;
    settings.eal = text;
    const auto made = eal_arguments(settings, small_plan(), {}, Bytes{}, true, "x");
    ASSERT_FALSE(made.ok()) << text;
    EXPECT_EQ(made.error().kind, ErrorKind::usage);
    EXPECT_FALSE(made.error().fix.empty());
  }
}

TEST(Eal, LeavesNothingInTheFileSystem) {
  EXPECT_FALSE(std::filesystem::exists(rte_eal_get_runtime_dir())) << rte_eal_get_runtime_dir();
}

TEST(Eal, StartsOnceInAProcess) {
  const auto again = Eal::start_planned({}, small_plan(), {}, Bytes{});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::environment);
  EXPECT_THAT(again.error().message(), HasSubstr("once in a process"));
}

}  // namespace
}  // namespace warpline::runtime
