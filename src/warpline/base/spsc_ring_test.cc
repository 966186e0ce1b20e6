// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/spsc_ring.h"

#include <gtest/gtest.h>

#include <thread>

namespace warpline {
namespace {

TEST(SpscRing, TakesWhatFitsAndGivesItBackInOrder) {
  SpscRing<int> ring(3);
  EXPECT_EQ(ring.capacity(), 4U);
  int item = 0;
  EXPECT_TRUE(ring.empty());
  EXPECT_FALSE(ring.pop(item));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.push(10 * round + i));
    EXPECT_FALSE(ring.push(99));
    EXPECT_FALSE(ring.empty());
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(ring.pop(item));
      EXPECT_EQ(item, 10 * round + i);
    }
    EXPECT_FALSE(ring.pop(item));
  }
}

TEST(SpscRing, LosesAndDoublesNothingBetweenThreads) {
  constexpr std::uint64_t kItems = 30'000;
  SpscRing<std::uint64_t> ring(16);
  std::thread pusher([&] {
    for (std::uint64_t i = 0; i < kItems; ++i) {
      while (!ring.push(i)) std::this_thread::yield();
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kItems; ++i) {
    std::uint64_t item = 0;
    while (!ring.pop(item)) std::this_thread::yield();
    wrong += item == i ? 0 : 1;
  }
  pusher.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace warpline
