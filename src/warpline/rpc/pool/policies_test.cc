// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/rpc/pool/back_off.h"
#include "warpline/rpc/pool/index_list.h"
#include "warpline/rpc/pool/recent_quantile.h"
#include "warpline/rpc/pool/retry_budget.h"
#include "warpline/rpc/pool/server_health.h"
#include "warpline/rpc/pool/two_choices.h"

namespace warpline::rpc {
namespace {

constexpr std::int64_t kMilli = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

TEST(BackOff, DoublesUpToTheLongestAndIsDrawnFromTheUpperHalf) {
  const BackOff settings{.first = Nanos{100}, .longest = Nanos{1000}};
  Random random(1);
  std::int64_t least = 100, most = 0;
  for (int i = 0; i < 2000; ++i) {
    std::int64_t wait = 100;
    for (std::uint32_t failures = 0; failures < 70; ++failures, wait = std::min<std::int64_t>(2 * wait, 1000)) {
      const Nanos drawn = wait_after(settings, failures, random);
      ASSERT_LE(drawn.value, wait);
      ASSERT_GE(drawn.value, wait / 2);
      if (failures != 0) continue;
      least = std::min(least, drawn.value);
      most = std::max(most, drawn.value);
    }
  }
  EXPECT_EQ(least, 50);
  EXPECT_EQ(most, 100);
}

TEST(BackOff, IsNoLongerThanTheLongestHoweverLongThatIs) {
  const BackOff settings{.first = Nanos{1}, .longest = Nanos{std::int64_t{1} << 62}};
  Random random(1);
  for (std::uint32_t failures = 0; failures < 200; ++failures) {
    const std::int64_t wait = wait_after(settings, failures, random).value;
    ASSERT_GE(wait, 0);
    ASSERT_LE(wait, settings.longest.value);
  }
}

TEST(TwoChoices, NeverTakeTheMostLoadedOfSeveral) {
  Random random(7);
  const std::vector<int> loads{3, 9, 1, 4};
  std::vector<int> taken(loads.size());
  for (int i = 0; i < 6000; ++i)
    ++taken[choose_of_two(loads.size(), random, [&](std::size_t at) { return loads[at]; })];
  // Six pairs, equally likely: the least loaded one is in three of them, the next in two, the next in one.
  EXPECT_EQ(taken[1], 0);
  EXPECT_NEAR(taken[2], 3000, 200);
  EXPECT_NEAR(taken[0], 2000, 200);
  EXPECT_NEAR(taken[3], 1000, 200);
}

TEST(TwoChoices, AreOneOrNoneWhereThereAreNoTwo) {
  Random random(7);
  const auto same = [](std::size_t) { return 0; };
  EXPECT_EQ(choose_of_two(0, random, same), kNoChoice);
  EXPECT_EQ(choose_of_two(1, random, same), 0U);
}

/// Balls into bins: the most loaded bin is above the mean by a constant, not by a root of it as with one choice.
TEST(TwoChoices, KeepLoadsEven) {
  Random random(3);
  std::vector<int> two(100), one(100);
  for (int i = 0; i < 100'000; ++i) {
    ++two[choose_of_two(two.size(), random, [&](std::size_t at) { return two[at]; })];
    ++one[random.below(one.size())];
  }
  EXPECT_LE(std::ranges::max(two), 1000 + 10);
  EXPECT_GE(std::ranges::max(one), 1000 + 40);
}

/// Whatever calls come and retries are asked for, at whatever times.
TEST(RetryBudget, GivesNoMoreThanCallsAndTimeHavePaid) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const RetryBudgetSettings settings{.per_call = static_cast<double>(random.below(30)) / 100,
                                       .per_second = static_cast<double>(random.below(20)),
                                       .most = static_cast<double>(random.below(50))};
    const Nanos begun{static_cast<std::int64_t>(random.below(1000))};
    RetryBudget budget(settings, begun);
    Nanos now = begun;
    std::uint64_t calls = 0, taken = 0;
    for (int i = 0; i < 2000; ++i) {
      now.value += static_cast<std::int64_t>(random.below(10 * kMilli));
      if (random.below(2) == 0) {
        budget.add_call();
        ++calls;
      }
      // A time before the last one, too, pays nothing.
      const Nanos asked{now.value - static_cast<std::int64_t>(random.below(2)) * kMilli};
      taken += budget.take(asked) ? 1 : 0;
      const double paid = settings.most + settings.per_call * static_cast<double>(calls) +
                          settings.per_second * static_cast<double>(now.value - begun.value) / kSecond;
      ASSERT_LE(static_cast<double>(taken), paid + 1e-6) << "seed " << seed;
    }
  }
}

TEST(RetryBudget, IsUsedUpAndComesBackWithCallsAndWithTime) {
  RetryBudget budget({.per_call = 0.25, .per_second = 2, .most = 3}, Nanos{});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budget.take(Nanos{}));
  EXPECT_FALSE(budget.take(Nanos{}));
  for (int i = 0; i < 4; ++i) budget.add_call();
  EXPECT_TRUE(budget.take(Nanos{}));
  EXPECT_FALSE(budget.take(Nanos{kSecond / 4}));
  EXPECT_TRUE(budget.take(Nanos{kSecond / 2}));
  for (int i = 0; i < 1000; ++i) budget.add_call();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budget.take(Nanos{kSecond / 2}));
  EXPECT_FALSE(budget.take(Nanos{kSecond / 2}));
}

/// Beside the sorted window, whatever was recorded.
TEST(RecentQuantile, IsThatOfTheLatest) {
  for (const double fraction : {0.01, 0.5, 0.95, 1.0}) {
    Random random(5);
    RecentQuantile quantile(fraction);
    EXPECT_EQ(quantile.value(), message::kNever);
    std::vector<std::int64_t> all;
    for (std::size_t i = 1; i <= 2000; ++i) {
      all.push_back(static_cast<std::int64_t>(random.below(i < 1000 ? 100 : 1'000'000)));
      quantile.record({all.back()});
      if (i < RecentQuantile::kFirst) {
        ASSERT_EQ(quantile.value(), message::kNever);
      }
      if (i % RecentQuantile::kPeriod != 0 && i != RecentQuantile::kFirst) continue;
      std::vector<std::int64_t> latest(all.end() - static_cast<std::ptrdiff_t>(std::min(i, RecentQuantile::kWindow)),
                                       all.end());
      std::ranges::sort(latest);
      const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(latest.size())));
      ASSERT_EQ(quantile.value().value, latest[rank - 1]) << fraction << " after " << i;
    }
  }
}

TEST(IndexList, KeepsTheOrderOfJoiningBesideOthers) {
  Random random(11);
  constexpr std::uint32_t kNumbers = 20;
  IndexList::Links links(kNumbers);
  IndexList one(links), other(links);
  std::vector<std::uint32_t> expected[2];
  for (int step = 0; step < 5000; ++step) {
    const auto number = static_cast<std::uint32_t>(random.below(kNumbers));
    const std::size_t which = random.below(2);
    IndexList& list = which == 0 ? one : other;
    const bool listed = std::ranges::count(expected[0], number) + std::ranges::count(expected[1], number) != 0;
    if (!listed && random.below(3) == 0) {
      list.push_front(number);
      expected[which].insert(expected[which].begin(), number);
    } else if (!listed) {
      list.push_back(number);
      expected[which].push_back(number);
    } else {
      list.remove(number);
      std::erase(expected[which], number);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const IndexList& now = i == 0 ? one : other;
      std::vector<std::uint32_t> found;
      for (std::uint32_t at = now.first(); at != IndexList::kEnd; at = now.after(at)) found.push_back(at);
      ASSERT_EQ(found, expected[i]);
      ASSERT_EQ(now.empty(), found.empty());
    }
  }
}

HealthSettings health_settings() {
  return {.failures = 3, .back_off = {.first = Nanos{100 * kMilli}, .longest = Nanos{kSecond}}};
}

TEST(ServerHealth, IsUpWithTheFirstHelloThatIsAnswered) {
  ServerHealth health(health_settings());
  EXPECT_EQ(health.state(), ServerState::connecting);
  EXPECT_TRUE(health.untried());
  health.connected();
  EXPECT_EQ(health.state(), ServerState::up);
  EXPECT_FALSE(health.untried());
}

TEST(ServerHealth, LeavesOutWhoFailsSeveralTimesInARow) {
  Random random(1);
  ServerHealth health(health_settings());
  health.connected();
  for (int i = 0; i < 10; ++i) {  // never three in a row
    health.failed(Nanos{}, random);
    health.failed(Nanos{}, random);
    health.answered();
  }
  EXPECT_EQ(health.state(), ServerState::up);
  for (int i = 0; i < 3; ++i) health.failed(Nanos{5}, random);
  EXPECT_EQ(health.state(), ServerState::left_out);
  EXPECT_GE(health.due().value, 5 + 50 * kMilli);
  EXPECT_LE(health.due().value, 5 + 100 * kMilli);
}

TEST(ServerHealth, LooksAgainLaterAndLaterUntilACallIsAnswered) {
  Random random(1);
  ServerHealth health(health_settings());
  health.connected();
  std::int64_t wait = 100 * kMilli;
  Nanos now{};
  for (int i = 0; i < 8; ++i, wait = std::min(2 * wait, kSecond)) {
    health.lost(now, random);
    ASSERT_EQ(health.state(), ServerState::left_out);
    ASSERT_GE(health.due().value - now.value, wait / 2);
    ASSERT_LE(health.due().value - now.value, wait);
    now = health.due();
    health.connect();
    ASSERT_EQ(health.state(), ServerState::connecting);
    ASSERT_FALSE(health.untried());
    if (i % 2 == 0) continue;  // the hello is not answered; else it is, and the call on trial is not
    health.connected();
    ASSERT_EQ(health.state(), ServerState::trial);
  }
  health.connected();
  EXPECT_EQ(health.state(), ServerState::trial);
  health.answered();
  EXPECT_EQ(health.state(), ServerState::up);
  health.lost(now, random);
  EXPECT_LE(health.due().value - now.value, 100 * kMilli);
}

TEST(ServerHealth, EndsATrialWithItsFirstFailure) {
  Random random(1);
  ServerHealth health(health_settings());
  health.lost(Nanos{}, random);
  health.connect();
  health.connected();
  health.failed(Nanos{}, random);
  EXPECT_EQ(health.state(), ServerState::left_out);
}

TEST(ServerHealth, GivesNothingToWhoGoesAway) {
  Random random(1);
  ServerHealth health(health_settings());
  health.leaves();
  EXPECT_EQ(health.state(), ServerState::connecting);
  health.connected();
  health.leaves();
  EXPECT_EQ(health.state(), ServerState::leaving);
  health.answered();  // a call that it had
  health.failed(Nanos{}, random);
  EXPECT_EQ(health.state(), ServerState::leaving);
  health.lost(Nanos{}, random);
  EXPECT_EQ(health.state(), ServerState::left_out);
}

/// Whatever happens in whichever order: no calls before a hello was answered, and a look again in bounded time.
TEST(ServerHealth, IsLookedForAgainWhateverHappened) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed), drawn(seed + 1);
    ServerHealth health(health_settings());
    Nanos now{};
    for (int i = 0; i < 300; ++i) {
      now.value += static_cast<std::int64_t>(drawn.below(50 * kMilli));
      const ServerState before = health.state();
      const std::uint64_t what = drawn.below(6);
      if (what == 0) health.connected();
      if (what == 1) health.lost(now, random);
      if (what == 2) health.answered();
      if (what == 3) health.failed(now, random);
      if (what == 4) health.leaves();
      if (before == ServerState::left_out && health.due() <= now) health.connect();
      const ServerState state = health.state();
      if (state == before) continue;
      const bool asked = before == ServerState::connecting;
      ASSERT_TRUE(state != ServerState::up || asked || before == ServerState::trial);
      ASSERT_TRUE(state != ServerState::trial || asked);
      if (state == ServerState::left_out) {
        ASSERT_GT(health.due(), now);
        ASSERT_LE(health.due().value - now.value, kSecond);
      }
    }
  }
}

}  // namespace
}  // namespace warpline::rpc
