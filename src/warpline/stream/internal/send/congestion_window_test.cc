// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/send/congestion_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "warpline/base/property_testing.h"

namespace warpline::stream {
namespace {

constexpr std::uint32_t kMss = 1000;
constexpr std::uint64_t kLargest = 10'000'000;
constexpr Nanos kRoundTrip{100'000'000};

/// Acknowledges whole windows, once a round trip; the window after so many seconds.
std::uint64_t after(CongestionWindow& window, Nanos& now, double seconds) {
  const Nanos end{now.value + static_cast<std::int64_t>(seconds * 1e9)};
  while (now < end) {
    now.value += kRoundTrip.value;
    window.on_acknowledged(window.bytes(), now, kRoundTrip);
  }
  return window.bytes();
}

TEST(CongestionWindow, DoublesInSlowStart) {
  CongestionWindow window(CongestionKind::cubic, kMss, kLargest);
  EXPECT_EQ(window.bytes(), 10'000U);
  window.on_acknowledged(10'000, Nanos{1}, kRoundTrip);
  EXPECT_EQ(window.bytes(), 20'000U);
  EXPECT_TRUE(window.in_slow_start());
}

TEST(CongestionWindow, ComesBackToWhereItWasByRfc9438sK) {
  CongestionWindow window(CongestionKind::cubic, kMss, kLargest);
  Nanos now{1};
  for (int i = 0; i < 6; ++i) window.on_acknowledged(window.bytes(), now, kRoundTrip);
  ASSERT_EQ(window.bytes(), 640'000U);
  window.on_loss();
  EXPECT_EQ(window.bytes(), 448'000U);
  const double k = std::cbrt(640 * 0.3 / 0.4);  // RFC 9438, 4.2
  const auto before = static_cast<double>(after(window, now, k - 2));
  EXPECT_LT(before, 640'000 * 0.999);
  EXPECT_GT(before, 640'000 * 0.98);  // flat near the plateau
  EXPECT_NEAR(static_cast<double>(after(window, now, 2)), 640'000, 5'000);
  EXPECT_GT(after(window, now, 4), 660'000U);
}

TEST(CongestionWindow, LeavesRoomForOthersWhenItLosesEarly) {
  CongestionWindow window(CongestionKind::cubic, kMss, kLargest);
  for (int i = 0; i < 6; ++i) window.on_acknowledged(window.bytes(), Nanos{1}, kRoundTrip);
  window.on_loss();
  window.on_loss();
  EXPECT_NEAR(static_cast<double>(window.bytes()), 640'000 * 0.49, 1);
  Nanos now{1};
  // Its plateau is at 0.85 of the window before the second loss (4.7).
  const double k = std::cbrt((448 * 0.85 - 640 * 0.49) / 0.4);
  EXPECT_NEAR(static_cast<double>(after(window, now, k)), 448'000 * 0.85, 10'000);
}

TEST(CongestionWindow, BeginsAnewAfterATimeout) {
  CongestionWindow window(CongestionKind::cubic, kMss, kLargest);
  for (int i = 0; i < 6; ++i) window.on_acknowledged(window.bytes(), Nanos{1}, kRoundTrip);
  window.on_timeout(true);
  EXPECT_EQ(window.bytes(), kMss);
  EXPECT_TRUE(window.in_slow_start());
  window.on_timeout(false);
  for (int i = 0; i < 20; ++i) window.on_acknowledged(window.bytes(), Nanos{1}, kRoundTrip);
  EXPECT_GE(window.bytes(), 448'000U);  // the threshold is of the first
  EXPECT_LT(window.bytes(), 500'000U);
}

/// RFC 9438, 4.8: in the first congestion avoidance behind a timeout K is 0 and W_max is the window at its beginning,
/// 224 segments here. W_cubic(t) is 224 + 0.4 t^3; Reno's estimate grows by 9/17 segment per round trip of 100 ms (4.3)
/// and is larger until 3.6 s.
TEST(CongestionWindow, GrowsFromAPlateauOfItsOwnAfterATimeout) {
  for (const bool twice : {false, true}) {
    CongestionWindow window(CongestionKind::cubic, kMss, kLargest);
    Nanos now{1};
    for (int i = 0; i < 5; ++i) window.on_acknowledged(window.bytes(), now, kRoundTrip);
    ASSERT_EQ(window.bytes(), 320'000U);
    window.on_timeout(true);
    if (twice) window.on_timeout(false);
    while (window.in_slow_start()) {
      window.on_acknowledged(std::min<std::uint64_t>(window.bytes(), 224'000 - window.bytes()), now, kRoundTrip);
    }
    ASSERT_EQ(window.bytes(), 224'000U);
    for (int second = 1; second <= 3; ++second) {
      EXPECT_NEAR(static_cast<double>(after(window, now, 1)), 224'000 + second * 10 * 1000 * 9.0 / 17, 1000) << second;
    }
    EXPECT_NEAR(static_cast<double>(after(window, now, 3)), 224'000 + 0.4 * 216 * 1000, 6000);  // 6 s
  }
}

TEST(CongestionWindow, IsOneSegmentIfTheSynWasLost) {
  CongestionWindow window(CongestionKind::cubic, kMss, kLargest);
  window.on_lost_syn();
  EXPECT_EQ(window.bytes(), kMss);  // RFC 5681, 3.1
  EXPECT_TRUE(window.in_slow_start());
  CongestionWindow fixed(CongestionKind::fixed, kMss, kLargest);
  fixed.on_lost_syn();
  EXPECT_EQ(fixed.bytes(), kLargest);
}

TEST(CongestionWindow, GoesBackToTheBeginningWhenIdle) {
  CongestionWindow window(CongestionKind::cubic, kMss, kLargest);
  for (int i = 0; i < 6; ++i) window.on_acknowledged(window.bytes(), Nanos{1}, kRoundTrip);
  window.on_idle();
  EXPECT_EQ(window.bytes(), 10'000U);
}

WARPLINE_PROPERTY(CongestionWindows, StayBetweenASegmentAndTheLimit, ()) {
  const auto segment = *rc::gen::inRange<std::uint32_t>(76, 9000);
  const auto limit = *rc::gen::inRange<std::uint64_t>(9000, 1 << 30);
  const auto kind = *rc::gen::element(CongestionKind::cubic, CongestionKind::fixed);
  CongestionWindow window(kind, segment, limit);
  Nanos now{1};
  for (const int what : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12))) {
    now.value += *rc::gen::inRange<std::int64_t>(0, 2'000'000'000);
    if (what == 0) window.on_loss();
    if (what == 1) window.on_timeout(true);
    if (what == 2) window.on_timeout(false);
    if (what == 3) window.on_idle();
    if (what > 3) window.on_acknowledged(window.bytes(), now, Nanos{*rc::gen::inRange<std::int64_t>(1, 1'000'000'000)});
    RC_ASSERT(window.bytes() >= segment);
    RC_ASSERT(window.bytes() <= limit);
    if (kind == CongestionKind::fixed) RC_ASSERT(window.bytes() == limit);
  }
}

}  // namespace
}  // namespace warpline::stream
