// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/batch.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::datapath {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

TEST(BatchClock, ClosesWhenFull) {
  BatchClock clock(32, kNever);
  EXPECT_FALSE(clock.closes(0, 0));
  EXPECT_FALSE(clock.closes(0, 31));
  EXPECT_TRUE(clock.closes(31, 32));
}

TEST(BatchClock, WithoutADeadlineClosesWhateverCame) {
  BatchClock clock(32, 0);
  EXPECT_FALSE(clock.closes(0, 0));
  EXPECT_TRUE(clock.closes(0, 1));
}

TEST(BatchClock, ClosesAtTheDeadlineOfItsFirstPacket) {
  BatchClock clock(32, 1);
  EXPECT_FALSE(clock.closes(0, 1));
  const std::uint64_t begin = ticks_now();
  while (ticks_now() - begin < 1) {
  }
  EXPECT_TRUE(clock.closes(1, 1));
}

TEST(PacketBudget, WithoutABoundGrantsEverything) {
  PacketBudget budget(0);
  EXPECT_EQ(budget.claim(512), 512);
}

WARPLINE_PROPERTY(PacketBudgetProperty, NeverGrantsMoreThanItHas, (const std::vector<std::uint16_t>& wishes)) {
  const std::uint64_t packets = *rc::gen::inRange<std::uint64_t>(1, 10'000);
  PacketBudget budget(packets);
  std::uint64_t received = 0;
  for (const std::uint16_t wish : wishes) {
    const std::uint16_t granted = budget.claim(wish);
    RC_ASSERT(granted <= wish);
    const auto unused = static_cast<std::uint16_t>(granted / 2);
    budget.give_back(unused);
    received += granted - unused;
    RC_ASSERT(received <= packets);
  }
  std::uint64_t rest = 0;
  while (const std::uint16_t granted = budget.claim(1000)) rest += granted;
  RC_ASSERT(received + rest == packets);
}

}  // namespace
}  // namespace warpline::datapath
