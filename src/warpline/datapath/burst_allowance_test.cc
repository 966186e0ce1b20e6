// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/burst_allowance.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>

#include "warpline/base/random.h"

namespace warpline::datapath {
namespace {

/// A ring of 4 bursts of up to 8 packets whose producer, engine and consumer are the test.
class BurstAllowanceTest : public ::testing::Test {
 protected:
  BurstAllowanceTest() : ring_(*handoff::BurstRing::create({.slots = 4, .packets = 8, .segments = 8})) {}

  /// Receives as many of `wanted` packets into the open burst as are allowed. Unset: the ring is full.
  std::optional<std::uint16_t> receive(BurstAllowance& allowance, std::uint16_t wanted) {
    handoff::Burst* const burst = ring_->acquire();
    if (burst == nullptr) return std::nullopt;
    const std::uint16_t room = allowance.room(wanted, burst->packet_count());
    for (std::uint16_t i = 0; i < room; ++i) burst->append(nullptr, bytes_.data(), 64);
    return room;
  }
  void publish(BurstAllowance& allowance) {
    allowance.published(ring_->acquire()->packet_count());
    ring_->publish();
    ring_->engine_view().complete(next_++, {});
  }
  std::uint16_t release() {
    const std::uint16_t count = ring_->completed()->packet_count();
    ring_->release();
    return count;
  }

  std::unique_ptr<handoff::BurstRing> ring_;
  std::array<std::uint8_t, 64> bytes_{};
  std::uint64_t next_ = 1;
};

TEST_F(BurstAllowanceTest, WithoutABoundTheRingAloneDecides) {
  BurstAllowance allowance(*ring_, 0);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(receive(allowance, 8), 8);
    publish(allowance);
  }
  EXPECT_EQ(receive(allowance, 8), std::nullopt);
}

TEST_F(BurstAllowanceTest, GivesWhatIsLeftAndTakesItBackOnRelease) {
  BurstAllowance allowance(*ring_, 12);
  EXPECT_EQ(receive(allowance, 8), 8);
  publish(allowance);
  EXPECT_EQ(receive(allowance, 8), 4);
  EXPECT_EQ(receive(allowance, 4), 0);
  publish(allowance);
  EXPECT_EQ(receive(allowance, 8), 0);
  release();
  EXPECT_EQ(receive(allowance, 8), 8);
}

TEST_F(BurstAllowanceTest, NeverHoldsMoreThanAllowedAndNeverStops) {
  for (std::uint32_t most = 8; most <= 32; ++most) {
    ring_ = *handoff::BurstRing::create({.slots = 4, .packets = 8, .segments = 8});
    next_ = 1;
    BurstAllowance allowance(*ring_, most);
    Random random(most);
    std::uint32_t held = 0;  // by bursts published
    std::uint32_t open = 0;
    std::uint64_t passed = 0;
    for (int step = 0; step < 20'000; ++step) {
      if (random.below(3) != 0) {
        const auto wanted = static_cast<std::uint16_t>(random.below(9 - open));
        open += receive(allowance, wanted).value_or(0);
        ASSERT_LE(held + open, most);
        if (open != 0 && random.below(2) == 0) {
          publish(allowance);
          held += open;
          open = 0;
        }
      } else if (ring_->in_flight() != 0) {
        const std::uint16_t count = release();
        held -= count;
        passed += count;
      }
    }
    EXPECT_GT(passed, 10'000U) << most;
  }
}

}  // namespace
}  // namespace warpline::datapath
