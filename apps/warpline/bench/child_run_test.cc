// SPDX-License-Identifier: Apache-2.0
#include "bench/child_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace warpline::bench {
namespace {

constexpr Nanos kLong{60'000'000'000};

Result<ChildRun> shell(const std::string& script, Nanos limit = kLong) {
  return run_child("/bin/sh", {"-c", script}, limit);
}

TEST(ChildRun, TellsWhatWasWrittenAndHowItEnded) {
  const auto run = shell("echo out; echo err >&2; exit 7");
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->output, "out\n");
  EXPECT_EQ(run->errors, "err\n");
  EXPECT_EQ(run->code, 7);
  EXPECT_FALSE(run->timed_out);
}

TEST(ChildRun, TakesMoreThanAPipeHolds) {
  const auto run = shell("i=0; while [ $i -lt 20000 ]; do echo 0123456789; echo 0123456789 >&2; i=$((i+1)); done");
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->output.size(), 20000U * 11);
  EXPECT_LE(run->errors.size(), 3 * 4096U + 65536);
  EXPECT_THAT(run->errors, testing::EndsWith("0123456789\n"));
}

TEST(ChildRun, KillsWhatHangs) {
  const auto run = shell("echo begun; exec sleep 1000", Nanos{300'000'000});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->timed_out);
  EXPECT_EQ(run->code, 128 + SIGKILL);
}

TEST(ChildRun, IsInterruptedWhereItsParentStops) {
  const std::atomic<bool> stop{true};
  const auto run = run_child("/bin/sh", {"-c", "exec sleep 1000"}, kLong, &stop);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->code, 128 + SIGINT);
  const auto deaf = run_child("/bin/sh", {"-c", "trap '' INT; echo begun; exec sleep 1000"}, kLong, &stop);
  ASSERT_TRUE(deaf.ok());
  EXPECT_THAT(deaf->code, testing::AnyOf(128 + SIGINT, 128 + SIGKILL));  // it may not have come to its trap
}

TEST(ChildRun, HearsSignalsThatItsParentBlocks) {
  sigset_t interrupt, before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  const auto run = shell("kill -INT $$; echo deaf");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->code, 128 + SIGINT);
}

TEST(ChildRun, NamesASignal) {
  const auto run = shell("kill -TERM $$");
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->code, 128 + SIGTERM);
}

TEST(ChildRun, HasNothingToRead) {
  const auto run = shell("read line || echo end");
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->output, "end\n");
}

TEST(ChildRun, WhatCannotBeStartedIsSaid) {
  const auto run = run_child("/nonexistent/program", {"forward"}, kLong);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().kind, ErrorKind::environment);
  EXPECT_THAT(run.error().message(), testing::HasSubstr("No such file"));
}

}  // namespace
}  // namespace warpline::bench
