// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/ordinary_scheduling.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace warpline::machine {
namespace {

int policy() { return sched_getscheduler(0); }

int priority() {
  sched_param parameter{};
  return sched_getparam(0, &parameter) == 0 ? parameter.sched_priority : -1;
}

TEST(OrdinaryScheduling, LeavesAnOrdinaryThreadAsItIs) {
  std::thread([] {
    const int before = policy();
    {
      const OrdinaryScheduling ordinary;
      EXPECT_EQ(policy(), before);
    }
    EXPECT_EQ(policy(), before);
  }).join();
}

TEST(OrdinaryScheduling, EndsForTheThreadAndThoseThatItStarted) {
  bool allowed = true;
  std::thread([&allowed] {
    const sched_param low{.sched_priority = 3};
    allowed = sched_setscheduler(0, SCHED_RR, &low) == 0;
    if (!allowed) return;
    std::atomic<bool> go{false};
    int started_policy = -1;
    int started_priority = -1;
    std::thread started;
    {
      const OrdinaryScheduling ordinary;
      EXPECT_EQ(policy(), SCHED_OTHER);
      started = std::thread([&] {
        go.wait(false);
        started_policy = policy();
        started_priority = priority();
      });
    }
    EXPECT_EQ(policy(), SCHED_RR);
    EXPECT_EQ(priority(), 3);
    go = true;
    go.notify_one();
    started.join();
    EXPECT_EQ(started_policy, SCHED_RR);
    EXPECT_EQ(started_priority, 3);
  }).join();
  if (!allowed) GTEST_SKIP() << "real-time scheduling is not permitted here";
}

}  // namespace
}  // namespace warpline::machine
