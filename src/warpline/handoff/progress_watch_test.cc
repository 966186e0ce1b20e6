// SPDX-License-Identifier: Apache-2.0
#include "warpline/handoff/progress_watch.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>

#include "warpline/handoff/burst_ring.h"

namespace warpline::handoff {
namespace {

constexpr std::uint64_t kPatience = 100;

class ProgressWatchTest : public ::testing::Test {
 protected:
  void publish() {
    Burst* const burst = ring_->acquire();
    ASSERT_NE(burst, nullptr);
    burst->append(bytes_.data(), bytes_.data(), 1);
    ring_->publish();
  }
  void work() { ring_->engine_view().complete(next_++, {}); }

  std::array<std::uint8_t, 64> bytes_{};
  std::unique_ptr<BurstRing> ring_ = *BurstRing::create({.slots = 4, .packets = 8, .segments = 8});
  std::uint64_t next_ = 1;
  ProgressWatch watch_{ring_->engine_view(), kPatience};
};

TEST_F(ProgressWatchTest, AnIdleEngineIsNotStuck) {
  for (std::uint64_t now = 0; now < 1000; now += 90) EXPECT_FALSE(watch_.stalled(now));
  publish();
  EXPECT_FALSE(watch_.stalled(1000));
  EXPECT_FALSE(watch_.stalled(1080));
  EXPECT_TRUE(watch_.stalled(1101));
}

TEST_F(ProgressWatchTest, AnEngineThatFinishesBurstsIsNotStuckHoweverManyWait) {
  publish();
  publish();
  publish();
  for (std::uint64_t now = 0; now < 3 * 90; now += 90) {
    EXPECT_FALSE(watch_.stalled(now));
    work();
    EXPECT_FALSE(watch_.stalled(now + 1));
  }
  EXPECT_FALSE(watch_.stalled(10'000));
}

TEST_F(ProgressWatchTest, PatienceBeginsWithTheFirstLook) {
  publish();
  EXPECT_FALSE(watch_.stalled(1'000'000));
  EXPECT_TRUE(watch_.stalled(1'000'101));
}

TEST_F(ProgressWatchTest, MorePublishedBurstsAreNoProgress) {
  publish();
  EXPECT_FALSE(watch_.stalled(0));
  publish();
  EXPECT_FALSE(watch_.stalled(90));
  publish();
  EXPECT_TRUE(watch_.stalled(101));
}

}  // namespace
}  // namespace warpline::handoff
