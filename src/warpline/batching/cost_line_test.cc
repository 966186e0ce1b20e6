// SPDX-License-Identifier: Apache-2.0
#include "warpline/batching/cost_line.h"

#include <gtest/gtest.h>

namespace warpline::batching {
namespace {

TEST(CostLine, KnowsNothingAtFirst) {
  const CostLine line;
  EXPECT_FALSE(line.known());
  EXPECT_EQ(line.at(100), 0);
}

TEST(CostLine, FindsBothCosts) {
  CostLine line;
  for (int i = 0; i < 200; ++i) line.add(1 + i % 7, 300 + 5.0 * (1 + i % 7));
  EXPECT_NEAR(line.fixed(), 300, 0.1);
  EXPECT_NEAR(line.per_packet(), 5, 0.1);
}

TEST(CostLine, KeepsTheCostPerPacketWhileAllBatchesAreOfOneSize) {
  CostLine line;
  for (int i = 0; i < 200; ++i) line.add(1 + i % 7, 300 + 5.0 * (1 + i % 7));
  for (int i = 0; i < 1000; ++i) line.add(4, 420);
  EXPECT_NEAR(line.per_packet(), 5, 2);
  EXPECT_NEAR(line.at(4), 420, 0.1);
}

TEST(CostLine, TakesOneLongBatchForAnAccident) {
  CostLine line;
  for (int i = 0; i < 200; ++i) line.add(4, 320);
  line.add(4, 1e9);
  EXPECT_LT(line.at(4), 360);
  for (int i = 0; i < 200; ++i) line.add(4, 320);
  EXPECT_NEAR(line.at(4), 320, 10);
}

TEST(CostLine, FollowsAnEngineThatHasBecomeSlower) {
  CostLine line;
  for (int i = 0; i < 200; ++i) line.add(4, 320);
  for (int i = 0; i < 200; ++i) line.add(4, 32'000);
  EXPECT_NEAR(line.at(4), 32'000, 320);
}

TEST(CostLine, IsNeverNegative) {
  CostLine line;
  for (int i = 0; i < 200; ++i) line.add(1 + i % 50, 1000 - 10.0 * (i % 50));
  EXPECT_GE(line.per_packet(), 0);
  EXPECT_GE(line.fixed(), 0);
}

}  // namespace
}  // namespace warpline::batching
