// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/completion_watch.h"

#include <gtest/gtest.h>

#include "warpline/port/port.h"
#include "warpline/port/ring_pair.h"
#include "warpline/traffic/pool_testing.h"

namespace warpline::traffic {
namespace {

TEST(CompletionWatch, AllReported) {
  CompletionWatch watch(1, 1000);
  EXPECT_FALSE(watch.observe(40, 10));
  EXPECT_FALSE(watch.observe(40, 20));
  EXPECT_FALSE(watch.observe(1, 30));
  EXPECT_TRUE(watch.observe(0, 40));
  EXPECT_TRUE(watch.known());
  EXPECT_EQ(watch.last_report(), 40U);
  EXPECT_EQ(watch.unreported(), 0U);
}

TEST(CompletionWatch, WhatLiesBehindTheLastReportIsNotWaitedFor) {
  CompletionWatch watch(32, 1000);
  EXPECT_FALSE(watch.observe(69, 10));
  EXPECT_FALSE(watch.observe(37, 20));
  EXPECT_TRUE(watch.observe(5, 30));
  EXPECT_EQ(watch.last_report(), 30U);
  EXPECT_EQ(watch.unreported(), 5U);
}

TEST(CompletionWatch, GivesUpOnADeviceThatStandsStill) {
  CompletionWatch watch(1, 1000);
  EXPECT_FALSE(watch.observe(8, 10));
  EXPECT_FALSE(watch.observe(7, 500));
  EXPECT_FALSE(watch.observe(7, 1500));
  EXPECT_TRUE(watch.observe(7, 1501));
  EXPECT_EQ(watch.last_report(), 500U);
  EXPECT_EQ(watch.unreported(), 7U);
}

TEST(CompletionWatch, DriversThatDoNotTell) {
  CompletionWatch watch(0, 1000);
  EXPECT_TRUE(watch.observe(std::nullopt, 10));
  EXPECT_FALSE(watch.known());
  const memory::PacketPool pool = make_test_pool(255, 2048);
  const auto ids = *port::make_ring_pair(1, 64, -1);
  port::Port near = *port::Port::adopt(ids.first);
  const port::Port far = *port::Port::adopt(ids.second);
  ASSERT_TRUE(near.configure({}, {.rx = 1, .tx = 1}).ok());
  ASSERT_TRUE(near.attach(pool.get()).ok());
  ASSERT_TRUE(near.start().ok());
  EXPECT_EQ(descriptors_behind({near.id(), 0}), std::nullopt);
  EXPECT_EQ(report_interval({near.id(), 0}), 1U);
}

}  // namespace
}  // namespace warpline::traffic
