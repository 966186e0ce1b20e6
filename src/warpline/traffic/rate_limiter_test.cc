// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/rate_limiter.h"

#include <gtest/gtest.h>

#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::traffic {
namespace {

constexpr double kTicks = 1e9;  // a second

/// Takes all that the limiter gives after each step of time. Returns the amount, in packets or layer-1 bits.
struct Taken {
  std::vector<double> amounts;
  std::vector<std::uint64_t> times;
};

Taken take_all(RateLimiter& limiter, const std::vector<std::uint64_t>& steps, std::uint32_t frame, double price) {
  Taken taken;
  std::uint64_t now = 12345;
  for (const std::uint64_t step : steps) {
    now += step;
    limiter.refill(now);
    double amount = 0;
    while (limiter.take(frame)) amount += price;
    taken.amounts.push_back(amount);
    taken.times.push_back(now);
  }
  return taken;
}

/// In no stretch of the schedule more than rate * time + depth.
void expect_bounded(const Taken& taken, double rate, double depth) {
  for (std::size_t from = 0; from < taken.times.size(); ++from) {
    double sum = 0;
    for (std::size_t to = from; to < taken.times.size(); ++to) {
      sum += taken.amounts[to];
      const double seconds = static_cast<double>(taken.times[to] - taken.times[from]) / kTicks;
      RC_ASSERT(sum <= rate * seconds + depth * (1 + 1e-9) + 1e-6);
    }
  }
}

WARPLINE_PROPERTY(RateLimiter, NeverExceedsPacketRatePlusBurst, ()) {
  const double rate = *rc::gen::inRange(1, 20'000'000);
  const auto burst = static_cast<std::uint32_t>(*rc::gen::inRange(1, 512));
  const auto steps =
      *rc::gen::container<std::vector<std::uint64_t>>(60, rc::gen::inRange<std::uint64_t>(0, 50'000'000));
  RateLimiter limiter(PacketRate{rate}, kTicks, burst, 1514);
  expect_bounded(take_all(limiter, steps, 60, 1), rate, burst);
}

WARPLINE_PROPERTY(RateLimiter, NeverExceedsBitRatePlusBurst, ()) {
  const double rate = 1000.0 * *rc::gen::inRange(1, 10'000'000);
  const auto burst = static_cast<std::uint32_t>(*rc::gen::inRange(1, 512));
  const auto frame = static_cast<std::uint32_t>(*rc::gen::inRange(60, 1515));
  const auto steps =
      *rc::gen::container<std::vector<std::uint64_t>>(60, rc::gen::inRange<std::uint64_t>(0, 50'000'000));
  RateLimiter limiter(BitRate{rate}, kTicks, burst, 1514);
  expect_bounded(take_all(limiter, steps, frame, 8.0 * (frame + 24)), rate, 8.0 * 1538 * burst);
}

WARPLINE_PROPERTY(RateLimiter, GivesTheWholeRateWhenAskedOftenEnough, ()) {
  const double rate = *rc::gen::inRange(1000, 20'000'000);
  constexpr std::uint32_t kBurst = 64;
  // Never so long a step that the bucket runs over.
  const auto longest = static_cast<std::uint64_t>(kTicks / rate * (kBurst - 1));
  const auto steps =
      *rc::gen::container<std::vector<std::uint64_t>>(200, rc::gen::inRange<std::uint64_t>(0, longest + 1));
  RateLimiter limiter(PacketRate{rate}, kTicks, kBurst, 1514);
  const Taken taken = take_all(limiter, steps, 60, 1);
  double sum = 0;
  for (const double amount : taken.amounts) sum += amount;
  const double seconds = static_cast<double>(taken.times.back() - taken.times.front()) / kTicks;
  RC_ASSERT(sum >= rate * seconds - 1);
}

TEST(RateLimiter, CountsLayerOneBits) {
  RateLimiter limiter(BitRate{1e9}, kTicks, 10, 60);
  limiter.refill(0);
  EXPECT_TRUE(limiter.take(60));
  limiter.refill(671);  // (60 + 24) * 8 bits take 672 ns
  EXPECT_FALSE(limiter.take(60));
  limiter.refill(673);
  EXPECT_TRUE(limiter.take(60));
}

TEST(RateLimiter, StartsWithoutABurst) {
  RateLimiter limiter(PacketRate{1}, kTicks, 64, 64);
  limiter.refill(5);
  EXPECT_TRUE(limiter.take(60));
  EXPECT_FALSE(limiter.take(60));
}

TEST(RateLimiter, HasNoLimitWithoutARate) {
  EXPECT_TRUE(RateLimiter(Rate{}, kTicks, 64, 1514).unlimited());
  EXPECT_FALSE(RateLimiter(PacketRate{1}, kTicks, 64, 1514).unlimited());
}

TEST(RateLimiter, KnowsTheFramesOfATime) {
  EXPECT_EQ(frames_in(PacketRate{1e6}, 0.005, 60), 5000U);
  EXPECT_EQ(frames_in(BitRate{672e6}, 0.005, 60), 5000U);
  EXPECT_EQ(frames_in(PacketRate{1}, 0.005, 60), 0U);
  EXPECT_EQ(frames_in(PacketRate{1e300}, 1, 60), 1'000'000'000U);
  EXPECT_EQ(frames_in(Rate{}, 1, 60), 0U);
}

TEST(RateLimiter, SharesARateEvenly) {
  EXPECT_EQ(share_of(PacketRate{10}, 4), Rate{PacketRate{2.5}});
  EXPECT_EQ(share_of(BitRate{10}, 5), Rate{BitRate{2}});
  EXPECT_EQ(share_of(Rate{}, 5), Rate{});
}

}  // namespace
}  // namespace warpline::traffic
