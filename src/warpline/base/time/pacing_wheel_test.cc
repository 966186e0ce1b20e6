// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/time/pacing_wheel.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline {
namespace {

constexpr std::int64_t kTick = 512;

struct Fired {
  PacingWheel<int>& wheel;
  std::vector<int> values;
  std::vector<int>& at(std::int64_t now) {
    values.clear();
    wheel.advance(Nanos{now}, [&](int value) { values.push_back(value); });
    return values;
  }
};

TEST(PacingWheel, FiresInTheOrderOfTheDeadlines) {
  PacingWheel<int> wheel(8, Nanos{kTick}, Nanos{0});
  Fired fired{wheel, {}};
  wheel.schedule(3, Nanos{3'000'000});
  wheel.schedule(1, Nanos{10'000});
  wheel.schedule(2, Nanos{10'000});
  wheel.schedule(4, Nanos{3'000'000});
  EXPECT_EQ(fired.at(9'999), std::vector<int>{});
  EXPECT_EQ(fired.at(3'000'000 + kTick), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(wheel.size(), 0U);
}

TEST(PacingWheel, ReachesDecades) {
  constexpr std::int64_t kTenYears = 10LL * 365 * 24 * 3600 * 1'000'000'000;
  PacingWheel<int> wheel(2, Nanos{kTick}, Nanos{-5});
  Fired fired{wheel, {}};
  wheel.schedule(1, Nanos{kTenYears});
  wheel.schedule(2, Nanos{std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(fired.at(kTenYears - 1), std::vector<int>{});
  EXPECT_EQ(fired.at(kTenYears + kTick), std::vector<int>{1});
  EXPECT_EQ(wheel.size(), 1U);
}

TEST(PacingWheel, WhatIsLateFiresAtTheNextAdvance) {
  PacingWheel<int> wheel(2, Nanos{kTick}, Nanos{0});
  Fired fired{wheel, {}};
  fired.at(1'000'000);
  wheel.schedule(1, Nanos{5});
  EXPECT_EQ(fired.at(1'000'000), std::vector<int>{1});
}

TEST(PacingWheel, AFullWheelSaysSo) {
  PacingWheel<int> wheel(2, Nanos{kTick}, Nanos{0});
  EXPECT_TRUE(wheel.schedule(1, Nanos{100}).scheduled());
  EXPECT_TRUE(wheel.schedule(2, Nanos{100}).scheduled());
  EXPECT_FALSE(wheel.schedule(3, Nanos{100}).scheduled());
  EXPECT_FALSE(wheel.cancel({}));
}

TEST(PacingWheel, AHandleOutlivesItsEntryHarmlessly) {
  PacingWheel<int> wheel(1, Nanos{kTick}, Nanos{0});
  Fired fired{wheel, {}};
  const WheelHandle first = wheel.schedule(1, Nanos{100});
  EXPECT_TRUE(wheel.cancel(first));
  EXPECT_FALSE(wheel.cancel(first));
  wheel.schedule(2, Nanos{100});
  EXPECT_FALSE(wheel.cancel(first));
  EXPECT_EQ(fired.at(1'000), std::vector<int>{2});
}

TEST(PacingWheel, WhatIsScheduledWhileFiringWaitsForTheNextTick) {
  PacingWheel<int> wheel(4, Nanos{kTick}, Nanos{0});
  wheel.schedule(0, Nanos{100});
  int calls = 0;
  const auto again = [&](int) {
    ++calls;
    wheel.schedule(0, Nanos{0});
  };
  EXPECT_EQ(wheel.advance(Nanos{1'000'000}, again), 1U);
  EXPECT_EQ(wheel.advance(Nanos{1'000'000}, again), 0U);
  EXPECT_EQ(wheel.advance(Nanos{1'000'000 + kTick}, again), 1U);
  EXPECT_EQ(calls, 2);
}

TEST(PacingWheel, WhatFiresMayCancelItsNeighbour) {
  PacingWheel<int> wheel(4, Nanos{kTick}, Nanos{0});
  wheel.schedule(1, Nanos{100});
  const WheelHandle second = wheel.schedule(2, Nanos{100});
  std::vector<int> values;
  wheel.advance(Nanos{1'000}, [&](int value) {
    values.push_back(value);
    EXPECT_TRUE(wheel.cancel(second));
  });
  EXPECT_EQ(values, std::vector<int>{1});
}

TEST(PacingWheel, ALimitLeavesTheRestForLater) {
  PacingWheel<int> wheel(8, Nanos{kTick}, Nanos{0});
  for (int i = 0; i < 8; ++i) wheel.schedule(i, Nanos{i < 4 ? 100 : 90'000});
  std::vector<int> values;
  const auto keep = [&](int value) { values.push_back(value); };
  EXPECT_EQ(wheel.advance(Nanos{100'000}, keep, 3), 3U);
  EXPECT_EQ(wheel.advance(Nanos{100'000}, keep, 3), 3U);
  EXPECT_EQ(wheel.advance(Nanos{100'000}, keep, 3), 2U);
  EXPECT_EQ(values, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(PacingWheel, AClockThatStepsBackLosesNoTimer) {
  PacingWheel<int> wheel(4, Nanos{kTick}, Nanos{0});
  Fired fired{wheel, {}};
  fired.at(1'000'000'000);
  wheel.schedule(1, Nanos{1'000'100'000});
  EXPECT_EQ(fired.at(5'000), std::vector<int>{});
  wheel.schedule(2, Nanos{55'000});
  EXPECT_EQ(fired.at(56'000), std::vector<int>{2});
  EXPECT_EQ(fired.at(105'000 + kTick), std::vector<int>{1});
}

TEST(PacingWheel, NextDeadlineLeadsToEveryEntry) {
  PacingWheel<int> wheel(4, Nanos{kTick}, Nanos{0});
  wheel.schedule(1, Nanos{123'456'789});
  int steps = 0;
  std::size_t fired = 0;
  while (fired == 0) {
    ASSERT_LT(++steps, 12);
    fired = wheel.advance(wheel.next_deadline(), [](int) {});
  }
  EXPECT_EQ(wheel.next_deadline().value, std::numeric_limits<std::int64_t>::max());
}

/// Against a sorted map: any times, tick, order, cancellations, and a clock that moves as it likes forward.
WARPLINE_PROPERTY(PacingWheel, FiresWhatASortedMapWould, ()) {
  const std::int64_t tick = *rc::gen::element<std::int64_t>(1, 7, 512, 1'000'000);
  std::int64_t now = *rc::gen::element<std::int64_t>(0, -1'000'000'000'000, 1LL << 60);
  const std::int64_t start = now;
  PacingWheel<int> wheel(64, Nanos{tick}, Nanos{start});
  std::multimap<std::uint64_t, int> expected;  // by tick since start; equal ones in the order of insertion
  std::map<int, WheelHandle> handles;
  int next = 0;
  const int steps = *rc::gen::inRange(0, 200);
  const auto distance = [&] {
    return *rc::gen::inRange<std::int64_t>(-5 * tick, std::int64_t{1} << *rc::gen::inRange(3, 45));
  };
  for (int i = 0; i < steps; ++i) {
    const int action = *rc::gen::inRange(0, 8);
    if (action < 4) {
      const std::int64_t at = now + distance();
      const WheelHandle handle = wheel.schedule(next, Nanos{at});
      RC_ASSERT(handle.scheduled() == (expected.size() < 64));
      if (!handle.scheduled()) continue;
      const auto since = static_cast<std::uint64_t>(std::max<std::int64_t>(at - start, 0));
      const auto step = static_cast<std::uint64_t>(tick);
      const auto now_tick = static_cast<std::uint64_t>(now - start) / step;
      // What is late takes its turn behind what is due now.
      expected.emplace(at <= now ? now_tick : (since + step - 1) / step, next);
      handles[next++] = handle;
    } else if (action == 4 && !handles.empty()) {
      const auto victim = std::next(handles.begin(), *rc::gen::inRange<int>(0, static_cast<int>(handles.size())));
      const int value = victim->first;
      const bool waiting = std::erase_if(expected, [&](const auto& entry) { return entry.second == value; }) > 0;
      RC_ASSERT(wheel.cancel(victim->second) == waiting);
    } else {
      now += std::max<std::int64_t>(distance(), 0);
      std::vector<int> due;
      const auto end = expected.upper_bound(static_cast<std::uint64_t>(now - start) / static_cast<std::uint64_t>(tick));
      for (auto entry = expected.begin(); entry != end; ++entry) due.push_back(entry->second);
      expected.erase(expected.begin(), end);
      std::vector<int> fired;
      wheel.advance(Nanos{now}, [&](int value) { fired.push_back(value); });
      RC_ASSERT(fired == due);
      RC_ASSERT(expected.empty() || wheel.next_deadline().value >= now);
    }
    RC_ASSERT(wheel.size() == expected.size());
  }
}

}  // namespace
}  // namespace warpline
