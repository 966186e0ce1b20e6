// SPDX-License-Identifier: Apache-2.0
#include "warpline/memory/recycle_watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::memory {
namespace {

constexpr std::uint32_t kBurst = 32;

/// How a receive queue's packets leave: the share of each transmit queue, in eighths, and of those that leave by a
/// mapped one, how many eighths come back.
struct Traffic {
  std::vector<std::uint32_t> eighths;
  std::uint32_t come_back = 8;
};

/// Runs one window. Returns how often a decision was due.
unsigned run_window(RecycleWatch& watch, const Traffic& traffic) {
  unsigned decisions = 0;
  for (std::uint32_t packets = 0; packets < RecycleWatch::kWindow; packets += kBurst * 8) {
    for (std::uint8_t tx = 0; const std::uint32_t eighths : traffic.eighths) {
      for (std::uint32_t burst = 0; burst < eighths; ++burst) {
        if (watch.mapped().has(tx)) watch.came_back(kBurst * traffic.come_back / 8);
        if (watch.left(tx, kBurst)) {
          ++decisions;
          static_cast<void>(watch.decide());
        }
      }
      ++tx;
    }
  }
  return decisions;
}

RecycleWatch::Mapping mapping(const std::vector<std::uint8_t>& tx) {
  RecycleWatch::Mapping mapping;
  for (const std::uint8_t queue : tx) mapping.tx[mapping.count++] = queue;
  return mapping;
}

TEST(RecycleWatch, TheFirstPacketsChooseTheFirstMapping) {
  RecycleWatch watch;
  EXPECT_EQ(watch.mapped().count, 0);
  EXPECT_TRUE(watch.left(5, 1));
  EXPECT_EQ(watch.decide(), mapping({5}));
}

TEST(RecycleWatch, StaysWhileItPays) {
  RecycleWatch watch;
  for (int window = 0; window < 100; ++window) {
    run_window(watch, {{0, 6, 2}});
    EXPECT_EQ(watch.mapped().tx[0], 1);
  }
}

TEST(RecycleWatch, FollowsTheRoute) {
  RecycleWatch watch;
  run_window(watch, {{8}});
  EXPECT_EQ(watch.mapped(), mapping({0}));
  run_window(watch, {{0, 0, 8}});
  run_window(watch, {{0, 0, 8}});
  EXPECT_EQ(watch.mapped(), mapping({2}));
}

TEST(RecycleWatch, TakesFromTwoWhereTwoCarryMost) {
  RecycleWatch watch;
  for (int window = 0; window < 3; ++window) run_window(watch, {{0, 4, 0, 4}});
  EXPECT_EQ(watch.mapped().count, 2);
  EXPECT_TRUE(watch.mapped().has(1));
  EXPECT_TRUE(watch.mapped().has(3));
}

TEST(RecycleWatch, LeavesWhenPacketsScatter) {
  RecycleWatch watch;
  run_window(watch, {{8}});
  for (int window = 0; window < 3; ++window) run_window(watch, {{1, 1, 1, 1, 1, 1, 1, 1}});
  EXPECT_EQ(watch.mapped().count, 0);
  for (int window = 0; window < 2; ++window) run_window(watch, {{8}});
  EXPECT_EQ(watch.mapped(), mapping({0}));
}

TEST(RecycleWatch, AShareNearTheBoundDoesNotFlutter) {
  RecycleWatch watch;
  unsigned changes = 0;
  RecycleWatch::Mapping before = watch.mapped();
  run_window(watch, {{8}});
  for (int window = 0; window < 1000; ++window) {
    // Three and four eighths by one queue, the rest spread: between where a mapping ends and where it begins.
    run_window(watch, window % 2 == 0 ? Traffic{{3, 1, 1, 1, 1, 1}} : Traffic{{4, 1, 1, 1, 1}});
    if (!(watch.mapped() == before)) ++changes;
    before = watch.mapped();
  }
  EXPECT_LE(changes, 2U);
}

TEST(RecycleWatch, WhatDoesNotComeBackIsLeftAndTriedEverMoreSeldom) {
  RecycleWatch watch;
  constexpr int kWindows = 2000;
  int mapped = 0;
  for (int window = 0; window < kWindows; ++window) {
    run_window(watch, {{8}, 2});
    mapped += watch.mapped().count;
  }
  EXPECT_EQ(watch.mapped().count, 0);
  EXPECT_LT(mapped, 25);
  // Still tried: it comes back when the traffic fits again.
  for (std::uint32_t window = 0; window < 2 * RecycleWatch::kLongestPause; ++window) run_window(watch, {{8}, 8});
  EXPECT_EQ(watch.mapped(), mapping({0}));
}

TEST(RecycleWatch, SomeSharedBuffersAreNoReasonToLeave) {
  RecycleWatch watch;
  for (int window = 0; window < 100; ++window) run_window(watch, {{8}, 7});
  EXPECT_EQ(watch.mapped(), mapping({0}));
}

TEST(RecycleWatch, ARefusedMappingIsTriedAgainLater) {
  RecycleWatch watch;
  ASSERT_TRUE(watch.left(0, 1));
  static_cast<void>(watch.decide());
  watch.set_actual({});
  EXPECT_EQ(watch.mapped().count, 0);
  run_window(watch, {{8}});
  EXPECT_EQ(watch.mapped().count, 0) << "the pause is one window";
  run_window(watch, {{8}});
  EXPECT_EQ(watch.mapped(), mapping({0}));
}

TEST(RecycleWatch, ForGoodIsForGood) {
  RecycleWatch watch(true);
  run_window(watch, {{0, 8}});
  for (int window = 0; window < 50; ++window) run_window(watch, {{4, 0, 4}, 0});
  EXPECT_EQ(watch.mapped(), mapping({1}));
}

WARPLINE_PROPERTY(RecycleWatch, MapsOnlyWhatCarriesEnoughAndNeverOneTwice, ()) {
  RecycleWatch watch;
  const auto windows = *rc::gen::inRange(1, 40);
  for (int window = 0; window < windows; ++window) {
    std::vector<std::uint32_t> counts(RecycleWatch::kMostQueues, 0);
    std::uint32_t seen = 0;
    bool due = false;
    while (!due) {
      const auto tx = *rc::gen::inRange<std::uint8_t>(0, *rc::gen::elementOf(std::vector<std::uint8_t>{1, 2, 3, 64}));
      const auto packets = *rc::gen::inRange<std::uint32_t>(1, RecycleWatch::kWindow);
      counts[tx] += packets;
      seen += packets;
      if (watch.mapped().has(tx)) watch.came_back(*rc::gen::inRange<std::uint32_t>(0, packets + 1));
      due = watch.left(tx, packets);
    }
    const RecycleWatch::Mapping before = watch.mapped();
    const RecycleWatch::Mapping after = watch.decide();
    RC_ASSERT(after.count <= RecycleWatch::kMostMapped);
    if (after.count == 2) RC_ASSERT(after.tx[0] != after.tx[1]);
    std::uint32_t through = 0;
    for (std::uint8_t i = 0; i < after.count; ++i) through += counts[after.tx[i]];
    if (after.count != 0) RC_ASSERT(through * std::uint64_t{8} >= std::uint64_t{seen} * (after == before ? 2 : 4));
    RC_ASSERT(watch.mapped() == after);
  }
}

}  // namespace
}  // namespace warpline::memory
