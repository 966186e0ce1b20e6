// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/dpdk_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <rte_log.h>

namespace warpline::runtime {
namespace {

void log_line(const char* line) { rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "%s", line); }

TEST(CapturedLog, TellsTheFirstLine) {
  const CapturedLog log;
  EXPECT_EQ(log.reason("nothing"), "nothing");
  log_line("EAL: no such device\n");
  log_line("EAL: giving up\n");
  EXPECT_EQ(log.reason("nothing"), "no such device");
}

TEST(CapturedLog, KeepsNothingOfTheOneBefore) {
  {
    const CapturedLog log;
    log_line("EAL: no such device\n");
  }
  const CapturedLog log;
  EXPECT_EQ(log.reason("nothing"), "nothing");
}

/// What comes to stderr of an error that a CapturedLog has kept.
std::string told_at_level(std::uint32_t level) {
  const std::uint32_t before = rte_log_get_global_level();
  rte_log_set_global_level(level);
  testing::internal::CaptureStderr();
  {
    const CapturedLog log(CapturedLog::Scope::all_output);
    log_line("EAL: no such device\n");
  }
  rte_log_set_global_level(before);
  return testing::internal::GetCapturedStderr();
}

TEST(CapturedLog, IsToldAtALevelThatSomebodyHasAskedFor) {
  EXPECT_EQ(told_at_level(RTE_LOG_ERR), "");
  EXPECT_EQ(told_at_level(RTE_LOG_WARNING), "EAL: no such device\n");
}

TEST(CapturedLog, StderrHasANameWhileItIsCaptured) {
  EXPECT_EQ(stderr_descriptor(), STDERR_FILENO);
  const CapturedLog log(CapturedLog::Scope::all_output);
  EXPECT_NE(stderr_descriptor(), STDERR_FILENO);
}

TEST(CapturedLogDeathTest, WhatWasSaidComesOutOfACrash) {
  EXPECT_DEATH(
      {
        const CapturedLog log;
        log_line("EAL: no such device\n");
        std::abort();
      },
      "EAL: no such device");
  EXPECT_DEATH(
      {
        const CapturedLog log(CapturedLog::Scope::all_output);
        std::fputs("printed past the log, ", stderr);
        log_line("and logged\n");
        std::abort();
      },
      "printed past the log, and logged");
  EXPECT_DEATH(
      {
        const CapturedLog log(CapturedLog::Scope::all_output);
        log_line("EAL: before the fault\n");
        std::raise(SIGSEGV);
      },
      "EAL: before the fault");
}

TEST(LogLevel, IsThatOfAllComponents) {
  const int driver = rte_log_register_type_and_pick_level("pmd.net.test", RTE_LOG_NOTICE);
  const std::uint32_t before = rte_log_get_global_level();
  set_log_level(LogLevel::debug);
  EXPECT_TRUE(rte_log_can_log(static_cast<std::uint32_t>(driver), RTE_LOG_DEBUG));
  set_log_level(LogLevel::critical);
  EXPECT_TRUE(rte_log_can_log(static_cast<std::uint32_t>(driver), RTE_LOG_CRIT));
  EXPECT_FALSE(rte_log_can_log(static_cast<std::uint32_t>(driver), RTE_LOG_ERR));
  rte_log_set_global_level(before);
  rte_log_set_level_pattern("*", RTE_LOG_DEBUG);
}

}  // namespace
}  // namespace warpline::runtime
