// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/stop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace warpline::runtime {
namespace {

void wait_until_requested() {
  while (!StopOnSignal::requested().load()) std::this_thread::yield();
}

TEST(StopOnSignal, TheFirstSetsTheFlag) {
  struct sigaction before{};
  sigaction(SIGTERM, nullptr, &before);
  {
    const StopOnSignal stop;
    EXPECT_FALSE(StopOnSignal::requested().load());
    kill(getpid(), SIGTERM);
    wait_until_requested();
    EXPECT_EQ(StopOnSignal::signal(), SIGTERM);
  }
  struct sigaction after{};
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
}

TEST(StopOnSignal, StartsAnew) {
  const StopOnSignal stop;
  EXPECT_FALSE(StopOnSignal::requested().load());
  EXPECT_EQ(StopOnSignal::signal(), 0);
}

/// The control thread spins, as in a call that hangs.
[[noreturn]] void signal_twice(int first, int second) {
  const StopOnSignal stop;
  kill(getpid(), first);
  wait_until_requested();
  kill(getpid(), second);
  for (;;) std::this_thread::yield();
}

TEST(StopOnSignalDeathTest, TheSecondEndsTheProcessWhicheverItIs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(signal_twice(SIGINT, SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(signal_twice(SIGINT, SIGTERM), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(signal_twice(SIGTERM, SIGINT), testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace warpline::runtime
