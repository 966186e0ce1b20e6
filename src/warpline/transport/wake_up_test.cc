// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/wake_up.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace warpline::transport {
namespace {

std::unique_ptr<WakeUp> make() {
  auto made = WakeUp::make();
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

bool readable(const WakeUp& wake) {
  pollfd watched{wake.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

TEST(WakeUp, WritesOnlyToWhoSleeps) {
  const auto wake = make();
  wake->wake();
  wake->wake();
  EXPECT_FALSE(readable(*wake));
  EXPECT_FALSE(wake->begin_sleep()) << "it was woken: there may be work";
  EXPECT_TRUE(wake->begin_sleep());
  EXPECT_FALSE(readable(*wake));
  wake->wake();
  wake->wake();
  EXPECT_TRUE(readable(*wake));
  wake->end_sleep();
  EXPECT_FALSE(readable(*wake));
}

TEST(WakeUp, ASleepThatEndsByItselfLeavesNothingBehind) {
  const auto wake = make();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(wake->begin_sleep());
    wake->end_sleep();
    ASSERT_FALSE(readable(*wake));
  }
}

/// Each sleep without a bound: a wake-up that is lost is a test that hangs.
TEST(WakeUp, LosesNoWork) {
  const auto wake = make();
  constexpr std::uint64_t kThreads = 3;
  constexpr std::uint64_t kEach = 1'000;
  std::atomic<std::uint64_t> work{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kEach; ++n) {
        work.fetch_add(1, std::memory_order_relaxed);
        wake->wake();
        if (n % 16 == 0) std::this_thread::yield();
      }
    });
  }
  while (work.load(std::memory_order_relaxed) != kThreads * kEach) {
    if (!wake->begin_sleep()) continue;
    pollfd watched{wake->descriptor(), POLLIN, 0};
    ::poll(&watched, 1, -1);
    wake->end_sleep();
  }
  for (std::thread& thread : threads) thread.join();
  while (!wake->begin_sleep()) continue;
  wake->end_sleep();
  EXPECT_FALSE(readable(*wake)) << "a write that was never read";
}

WakeUp* woken_by_signal = nullptr;

TEST(WakeUp, WakesFromASignalsHandler) {
  const auto wake = make();
  woken_by_signal = wake.get();
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) { woken_by_signal->wake(); };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  ASSERT_TRUE(wake->begin_sleep());
  ::pthread_kill(::pthread_self(), SIGUSR1);
  EXPECT_TRUE(readable(*wake));
  wake->end_sleep();
  EXPECT_FALSE(readable(*wake));
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace warpline::transport
