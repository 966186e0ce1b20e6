// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/parts/mtu_search.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace warpline::message {
namespace {

constexpr std::uint32_t kBase = 1200;
constexpr Nanos kRaise{600'000'000'000};

/// Probes a path that carries `carried` until there is nothing left to find out. Returns how many it took.
std::uint32_t search(MtuSearch& mtu, std::uint32_t carried, std::uint32_t most, Nanos now) {
  std::uint32_t probes = 0;
  for (std::uint32_t bytes = 0; (bytes = mtu.next(most, now)) != 0; ++probes) {
    EXPECT_GT(bytes, mtu.bytes());
    EXPECT_LE(bytes, most);
    if (bytes <= carried) {
      EXPECT_TRUE(mtu.arrived(bytes));
      EXPECT_EQ(mtu.bytes(), bytes);
    } else {
      mtu.lost(bytes, now);
    }
  }
  return probes;
}

TEST(MtuSearch, TriesTheLargestFirst) {
  MtuSearch mtu(kBase, 8972, kRaise);
  EXPECT_EQ(mtu.bytes(), kBase);
  EXPECT_EQ(search(mtu, 9000, 8972, {}), 1U);
  EXPECT_EQ(mtu.bytes(), 8972U);
}

TEST(MtuSearch, FindsWhatPassesAndNeverMore) {
  for (std::uint32_t carried = kBase; carried <= 9000; carried += 7) {
    MtuSearch mtu(kBase, 8972, kRaise);
    EXPECT_LE(search(mtu, carried, 8972, {}), 40U);
    EXPECT_LE(mtu.bytes(), carried);
    EXPECT_GE(mtu.bytes() + MtuSearch::kResolution, std::min(carried, 8972U));
  }
}

TEST(MtuSearch, ABaseThatIsAllNeedsNoProbe) {
  for (const std::uint32_t base : {512U, 1472U, 9000U}) {
    MtuSearch mtu(base, 512, kRaise);
    EXPECT_EQ(mtu.bytes(), 512U);
    EXPECT_EQ(mtu.next(9000, {}), 0U);
  }
}

TEST(MtuSearch, GoesAsFarAsTheSessionTakes) {
  MtuSearch mtu(kBase, 8972, kRaise);
  EXPECT_EQ(mtu.next(1000, {}), 0U);
  EXPECT_EQ(search(mtu, 9000, 1472, {}), 1U);
  EXPECT_EQ(mtu.bytes(), 1472U);
  EXPECT_EQ(mtu.next(8972, {}), 8972U);
}

TEST(MtuSearch, LossesAreForgivenTwice) {
  MtuSearch mtu(kBase, 1472, kRaise);
  mtu.lost(1472, {});
  mtu.lost(1472, {});
  EXPECT_EQ(mtu.next(1472, {}), 1472U);
  mtu.lost(1472, {});
  EXPECT_EQ(mtu.next(1472, {}), 1336U);
}

TEST(MtuSearch, WhatFailedIsTriedAgainLater) {
  MtuSearch mtu(kBase, 1472, kRaise);
  search(mtu, 1272, 1472, {});
  EXPECT_EQ(mtu.next(1472, {kRaise.value - 1}), 0U);
  EXPECT_EQ(search(mtu, 1500, 1472, kRaise), 1U);
  EXPECT_EQ(mtu.bytes(), 1472U);
}

TEST(MtuSearch, ABlackHoleIsSearchedBelow) {
  MtuSearch mtu(kBase, 1472, kRaise);
  search(mtu, 1500, 1472, {});
  mtu.black_hole({});
  EXPECT_EQ(mtu.bytes(), kBase);
  search(mtu, 1300, 1472, {});
  EXPECT_LE(mtu.bytes(), 1300U);
  EXPECT_GE(mtu.bytes(), 1300U - MtuSearch::kResolution);
  search(mtu, 1500, 1472, kRaise);
  EXPECT_EQ(mtu.bytes(), 1472U);
}

TEST(MtuSearch, AProbeThatWasOnlyLateCounts) {
  MtuSearch mtu(kBase, 1472, kRaise);
  for (std::uint32_t i = 0; i < MtuSearch::kMostTries; ++i) mtu.lost(1472, {});
  EXPECT_TRUE(mtu.arrived(1472));
  EXPECT_EQ(mtu.bytes(), 1472U);
  EXPECT_FALSE(mtu.arrived(1300));
  EXPECT_EQ(mtu.next(1472, {}), 0U);
}

}  // namespace
}  // namespace warpline::message
