// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/adaptive_bursts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace warpline::datapath {
namespace {

constexpr std::uint64_t kLong = std::uint64_t{1} << 50;  ///< ticks

/// A ring whose engine and consumer are the test.
class AdaptiveBurstsTest : public ::testing::Test {
 protected:
  AdaptiveBurstsTest() : ring_(*handoff::BurstRing::create({.slots = 4, .packets = 8, .segments = 8})) {}

  /// `count` packets come. Returns whether a burst was published.
  bool receive(std::uint16_t count) {
    handoff::Burst* const burst = ring_->acquire();
    if (burst == nullptr) return false;
    const std::uint16_t before = std::exchange(waiting_, static_cast<std::uint16_t>(waiting_ + count));
    last_ = bursts_.due(before, std::min<std::uint16_t>(waiting_, 8));
    if (last_ == 0) return false;
    for (std::uint16_t i = 0; i < last_; ++i) burst->append(nullptr, bytes_.data(), 64);
    waiting_ = static_cast<std::uint16_t>(waiting_ - last_);
    bursts_.submitted(ticks_now(), last_);
    ring_->publish();
    return true;
  }
  void work_on_next() { ring_->engine_view().complete(next_++, {}); }
  void transmit_next() {
    ASSERT_NE(ring_->completed(), nullptr);
    ring_->release();
  }

  std::unique_ptr<handoff::BurstRing> ring_;
  AdaptiveBursts bursts_{*ring_, 8, kLong};
  std::array<std::uint8_t, 64> bytes_{};
  std::uint64_t next_ = 1;
  std::uint16_t waiting_ = 0;
  std::uint16_t last_ = 0;  ///< packets of the last burst
};

TEST_F(AdaptiveBurstsTest, PublishesAtOnceWhileTheEngineIsIdle) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(receive(1));
    work_on_next();
    transmit_next();
  }
}

TEST_F(AdaptiveBurstsTest, ClosesNoEmptyBurst) { EXPECT_FALSE(receive(0)); }

TEST_F(AdaptiveBurstsTest, PublishesAFullBurstUntilTheRingIsFull) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(receive(8));
  EXPECT_FALSE(receive(8));
  EXPECT_EQ(bursts_.batch().in_flight(), 4U);
  for (int i = 0; i < 4; ++i) work_on_next();
  EXPECT_FALSE(receive(0));  // no slot has come back
  for (int i = 0; i < 4; ++i) transmit_next();
  EXPECT_FALSE(receive(0));
  EXPECT_EQ(bursts_.batch().in_flight(), 0U);
  EXPECT_TRUE(receive(1));
}

TEST_F(AdaptiveBurstsTest, SeesEveryBurstThatComesBackAsTheRingWraps) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(receive(8));
    EXPECT_TRUE(receive(8));
    work_on_next();
    work_on_next();
    transmit_next();
    transmit_next();
  }
  // By what the ticks of this machine told of costs, a burst may have left some that waited.
  while (waiting_ != 0) {
    ASSERT_TRUE(receive(0));
    work_on_next();
    transmit_next();
  }
  EXPECT_FALSE(receive(0));
  EXPECT_EQ(bursts_.batch().in_flight(), 0U);
  EXPECT_TRUE(bursts_.batch().cost().known());
}

}  // namespace
}  // namespace warpline::datapath
