// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/setup_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "warpline/runtime/stop.h"

namespace warpline::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr StepWatch::Limits kNamedAtOnce{.named_after = std::chrono::nanoseconds(1),
                                         .given_up_after = std::chrono::hours(1)};
constexpr StepWatch::Limits kGivenUpAtOnce{.named_after = std::chrono::hours(1),
                                           .given_up_after = std::chrono::nanoseconds(0)};

/// Takes the place of stderr while it lives.
class ErrorPipe {
 public:
  ErrorPipe() : saved_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(ends_), 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ErrorPipe(const ErrorPipe&) = delete;
  ErrorPipe& operator=(const ErrorPipe&) = delete;
  ~ErrorPipe() {
    dup2(saved_, STDERR_FILENO);
    for (const int file : {saved_, ends_[0], ends_[1]}) close(file);
  }

  /// Waits for the end of a line.
  [[nodiscard]] std::string line() const {
    std::string text;
    for (char c = 0; read(ends_[0], &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

 private:
  int saved_;
  int ends_[2] = {-1, -1};
};

TEST(SetupStep, IsNamedWhenItTakesTooLong) {
  const ErrorPipe errors;
  const StepWatch watch(kNamedAtOnce);
  const SetupStep outer("opening ports");
  EXPECT_THAT(errors.line(), HasSubstr("still opening ports"));
  {
    const SetupStep inner("starting port 0");
    EXPECT_THAT(errors.line(), AllOf(HasSubstr("warpline: still starting port 0"), HasSubstr("Ctrl-C")));
  }
  const SetupStep last("closing port 0", SetupStep::Of::clean_up);
  EXPECT_THAT(errors.line(), HasSubstr("still closing port 0"));
}

constexpr StepWatch::Limits kToldAtOnce{.quiet_for = std::chrono::nanoseconds(1),
                                        .named_after = std::chrono::hours(1),
                                        .given_up_after = std::chrono::hours(1)};

TEST(SetupStep, TellsHowFarItIs) {
  const ErrorPipe errors;
  const StepWatch watch(kToldAtOnce);
  SetupStep links("waiting for links", 9, "s");
  EXPECT_EQ(errors.line(), "warpline: waiting for links: 0 of 9 s [....................]");
  {
    const SetupStep call("starting DPDK");
    EXPECT_EQ(errors.line(), "warpline: starting DPDK: 0 s so far");
  }
  const SetupStep memory("making the pool", Bytes{16 << 20});
  EXPECT_THAT(errors.line(), AllOf(HasSubstr("warpline: making the pool: "), HasSubstr("of 16 MiB")));
}

TEST(SetupStep, PartsAreCounted) {
  const ErrorPipe errors;
  std::optional<StepWatch> watch;
  SetupStep routes("making the table", 4);
  for (int i = 0; i < 3; ++i) routes.advance();
  watch.emplace(kToldAtOnce);
  {
    const SetupStep call("a call");
  }  // has the watch look
  std::string line = errors.line();
  if (line == "warpline: a call: 0 s so far") line = errors.line();
  EXPECT_THAT(line,
              AllOf(HasSubstr("warpline: making the table: 3 of 4, "), HasSubstr(" left [###############.....]")));
}

TEST(SetupStep, WithoutAWatchItIsJustAName) {
  const SetupStep outer("opening ports");
  const SetupStep inner("starting port 0");
}

TEST(SetupStepDeathTest, AnInterruptGivesUpOnSetUp) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const StopOnSignal stop(kGivenUpAtOnce);
        const SetupStep step("starting DPDK");
        kill(getpid(), SIGTERM);
        for (;;) std::this_thread::yield();
      },
      testing::ExitedWithCode(130), "interrupted while starting DPDK");
}

TEST(SetupStepDeathTest, AnInterruptWaitsForWhatIsDoneWhilePacketsFlow) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const StopOnSignal stop(kGivenUpAtOnce);
        {
          const SetupStep reload("reading the routes again", SetupStep::Of::running);
          const SetupStep table("making the table", 4);
          kill(getpid(), SIGTERM);
          while (!StopOnSignal::requested().load()) std::this_thread::yield();
        }
        std::fputs("read, ", stderr);
        const SetupStep step("opening port 1");
        for (;;) std::this_thread::yield();
      },
      testing::ExitedWithCode(130), "read, warpline: interrupted while opening port 1");
}

TEST(SetupStepDeathTest, AnInterruptWaitsForCleanUpAndGivesUpOnTheNextSetUp) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const StopOnSignal stop(kGivenUpAtOnce);
        {
          const SetupStep step("closing port 0", SetupStep::Of::clean_up);
          kill(getpid(), SIGTERM);
          while (!StopOnSignal::requested().load()) std::this_thread::yield();
        }
        std::fputs("closed, ", stderr);
        const SetupStep step("opening port 1");
        for (;;) std::this_thread::yield();
      },
      testing::ExitedWithCode(130), "closed, warpline: interrupted while opening port 1");
}

}  // namespace
}  // namespace warpline::runtime
