// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/mpsc_ring.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace warpline {
namespace {

TEST(MpscRing, TakesWhatFitsAndGivesItBackInOrder) {
  MpscRing<int> ring(3);
  EXPECT_EQ(ring.capacity(), 4U);
  int item = 0;
  EXPECT_FALSE(ring.pop(item));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.push(10 * round + i));
    EXPECT_FALSE(ring.push(99));
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(ring.pop(item));
      EXPECT_EQ(item, 10 * round + i);
    }
    EXPECT_FALSE(ring.pop(item));
  }
}

TEST(MpscRing, HasTwoPlacesAtLeastByWhichFullAndEmptyDiffer) {
  MpscRing<int> ring(1);
  EXPECT_EQ(ring.capacity(), 2U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ring.push(i));
    EXPECT_TRUE(ring.push(10 + i));
    EXPECT_FALSE(ring.push(99));
    int item = -1;
    ASSERT_TRUE(ring.pop(item));
    EXPECT_EQ(item, i);
    ASSERT_TRUE(ring.pop(item));
    EXPECT_EQ(item, 10 + i);
  }
}

TEST(MpscRing, LosesAndDoublesNothingAndKeepsTheOrderOfEachThread) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kItems = 2'000;
  struct Item {
    std::uint64_t thread = 0;
    std::uint64_t number = 0;
  };
  MpscRing<Item> ring(16);
  std::vector<std::thread> pushers;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    pushers.emplace_back([&ring, thread] {
      for (std::uint64_t i = 0; i < kItems; ++i) {
        while (!ring.push({thread, i})) std::this_thread::yield();
      }
    });
  }
  std::array<std::uint64_t, kThreads> next{};
  std::uint64_t wrong = 0;
  Item item;
  for (std::uint64_t i = 0; i < kThreads * kItems; ++i) {
    while (!ring.pop(item)) std::this_thread::yield();
    wrong += item.thread < kThreads && item.number == next[item.thread]++ ? 0 : 1;
  }
  for (std::thread& pusher : pushers) pusher.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_FALSE(ring.pop(item));
}

}  // namespace
}  // namespace warpline
