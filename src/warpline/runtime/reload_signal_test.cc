// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/reload_signal.h"

#include <gtest/gtest.h>

namespace warpline::runtime {
namespace {

TEST(ReloadOnSignal, SeveralSignalsCountAsOneAndTheOldHandlerComesBack) {
  struct sigaction before{};
  sigaction(SIGHUP, nullptr, &before);
  {
    const ReloadOnSignal on_signal;
    EXPECT_FALSE(ReloadOnSignal::take());
    raise(SIGHUP);
    raise(SIGHUP);
    EXPECT_TRUE(ReloadOnSignal::take());
    EXPECT_FALSE(ReloadOnSignal::take());
  }
  struct sigaction after{};
  sigaction(SIGHUP, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
}  // namespace warpline::runtime
