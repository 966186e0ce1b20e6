// SPDX-License-Identifier: Apache-2.0
#include "runtime/stop.h"

#include <gtest/gtest.h>

namespace warpline {
namespace {

TEST(StopOnSignal, TheFirstSetsTheFlagAndTakesTheHandlerOut) {
  struct sigaction before{};
  sigaction(SIGTERM, nullptr, &before);
  {
    const StopOnSignal stop;
    EXPECT_FALSE(StopOnSignal::requested().load());
    std::raise(SIGTERM);
    EXPECT_TRUE(StopOnSignal::requested().load());
    EXPECT_EQ(StopOnSignal::signal(), SIGTERM);
    struct sigaction now{};
    sigaction(SIGTERM, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_DFL);
    std::raise(SIGINT);
    EXPECT_EQ(StopOnSignal::signal(), SIGINT);
  }
  struct sigaction after{};
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

TEST(StopOnSignal, StartsAnew) {
  const StopOnSignal stop;
  EXPECT_FALSE(StopOnSignal::requested().load());
  EXPECT_EQ(StopOnSignal::signal(), 0);
}

}  // namespace
}  // namespace warpline
