// SPDX-License-Identifier: Apache-2.0
#include "rate/rate_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rate/load_classification.h"
#include "rate/simulated_sut_testing.h"
#include "warpline/base/property_testing.h"

namespace warpline::rate {
namespace {

constexpr double kMin = 1e4, kMax = 1e9;
constexpr std::size_t kFarTooMany = 100'000;

const SearchGoal kNdr{};
const SearchGoal kPdr{.loss_ratio = 0.005};

RateSearch search_for(std::vector<SearchGoal> goals, double min = kMin, double max = kMax) {
  auto search = RateSearch::create(std::move(goals), min, max);
  EXPECT_TRUE(search.ok());
  return *std::move(search);
}

std::vector<TrialResult> trials_at(const RateSearch& search, double load) {
  std::vector<TrialResult> at;
  for (const TrialResult& trial : search.trials()) {
    if (trial.input.load == load) at.push_back(trial);
  }
  return at;
}

/// What the RFC asks of a Regular Goal Result, worked out anew from the trials.
void expect_regular(const RateSearch& search, std::size_t goal) {
  const GoalResult result = search.results()[goal];
  const SearchGoal& wanted = search.goals()[goal];
  ASSERT_EQ(result.regularity, Regularity::regular);
  const double lower = *result.relevant_lower_bound, upper = *result.relevant_upper_bound;
  EXPECT_LT(lower, upper);
  EXPECT_LE((upper - lower) / upper, wanted.width * (1 + 1e-9));
  EXPECT_EQ(classify_load(trials_at(search, lower), wanted), LoadClass::lower_bound);
  EXPECT_EQ(classify_load(trials_at(search, upper), wanted), LoadClass::upper_bound);
  for (const TrialResult& trial : search.trials()) {
    const LoadClass load_class = classify_load(trials_at(search, trial.input.load), wanted);
    EXPECT_TRUE(load_class != LoadClass::upper_bound || trial.input.load >= upper) << trial.input.load;
  }
  EXPECT_LE(*result.conditional_throughput, lower);
  EXPECT_GE(*result.conditional_throughput, lower * (1 - wanted.loss_ratio));
}

TEST(RateSearch, FindsASharpLimitForBothGoals) {
  RateSearch search = search_for({kNdr, kPdr});
  ASSERT_TRUE(simulate(search, sharp_limit(14.88e6), 1, kFarTooMany));
  expect_regular(search, 0);
  expect_regular(search, 1);
  const std::vector<GoalResult> results = search.results();
  EXPECT_LE(*results[0].relevant_lower_bound, 14.88e6);
  EXPECT_GT(*results[0].relevant_upper_bound, 14.88e6);
  EXPECT_LE(*results[1].relevant_lower_bound, 14.88e6 / 0.995);
  EXPECT_GT(*results[1].relevant_upper_bound, 14.88e6 / 0.995);
  EXPECT_LE(search.trials().size(), 40U);
}

TEST(RateSearch, BeginsAtTheMaximumWithTheInitialDuration) {
  SearchGoal goal = kNdr;
  goal.initial_trial_duration = Nanos{250'000'000};
  RateSearch search = search_for({goal});
  ASSERT_TRUE(search.next());
  EXPECT_EQ(search.next()->load, kMax);
  EXPECT_EQ(search.next()->duration, goal.initial_trial_duration);
  ASSERT_TRUE(simulate(search, sharp_limit(3e6), 1, kFarTooMany));
  // What was forwarded of the first trial leads near the limit at once.
  EXPECT_NEAR(search.trials()[1].input.load, 3e6, 3e6 * 0.006);
  EXPECT_EQ(search.trials().back().input.duration, goal.final_trial_duration);
}

TEST(RateSearch, AGoalOfOneTrialALoadIsABinarySearch) {
  SearchGoal rfc2544{.exceed_ratio = 0};
  rfc2544.initial_trial_duration = rfc2544.final_trial_duration = rfc2544.duration_sum = Nanos{60'000'000'000};
  RateSearch search = search_for({rfc2544});
  ASSERT_TRUE(simulate(search, sharp_limit(123'456'789), 1, kFarTooMany));
  expect_regular(search, 0);
  EXPECT_LE(search.trials().size(), 8U);
  const GoalResult result = search.results()[0];
  EXPECT_EQ(result.conditional_throughput, result.relevant_lower_bound);
}

TEST(RateSearch, FindsWhereHalfOfTheTrialsLose) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RateSearch search = search_for({kNdr});
    ASSERT_TRUE(simulate(search, soft_limit(5e6, 0.02), seed, kFarTooMany)) << seed;
    expect_regular(search, 0);
    EXPECT_NEAR(*search.results()[0].relevant_lower_bound, 5e6, 5e6 * 0.02) << seed;
    EXPECT_LE(search.trials().size(), 200U) << seed;
  }
}

TEST(RateSearch, ANoisyNeighbourDoesNotMoveTheResult) {
  std::size_t most = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RateSearch search = search_for({kNdr, kPdr});
    ASSERT_TRUE(simulate(search, noisy_neighbour(20e6, 0.1), seed, kFarTooMany)) << seed;
    expect_regular(search, 0);
    expect_regular(search, 1);
    const std::vector<GoalResult> results = search.results();
    EXPECT_LE(*results[0].relevant_lower_bound, 20e6) << seed;
    EXPECT_GT(*results[0].relevant_upper_bound, 20e6) << seed;
    EXPECT_LE(*results[1].relevant_lower_bound, 20e6 / 0.995) << seed;
    EXPECT_GT(*results[1].relevant_upper_bound, 20e6 / 0.995) << seed;
    most = std::max(most, search.trials().size());
  }
  EXPECT_LE(most, 120U);
}

TEST(RateSearch, ANoisyNeighbourIsWhatTheStrictGoalOfRfc2544Finds) {
  const SearchGoal strict{.exceed_ratio = 0};
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RateSearch search = search_for({strict});
    ASSERT_TRUE(simulate(search, noisy_neighbour(20e6, 0.1), seed, kFarTooMany)) << seed;
    const GoalResult result = search.results()[0];
    moved += result.relevant_upper_bound && *result.relevant_upper_bound < 20e6 ? 1 : 0;
  }
  EXPECT_GT(moved, 50);
}

TEST(RateSearch, IsConservativeWhereALargerLoadWorksAgain) {
  // The guess from the first trial lies above the gap: that region is a bound as good as any, if it holds.
  RateSearch above = search_for({kNdr});
  ASSERT_TRUE(simulate(above, non_monotonic(8e6, 9e6, 10e6), 1, kFarTooMany));
  expect_regular(above, 0);
  EXPECT_LE(*above.results()[0].relevant_lower_bound, 10e6);
  // A trial inside of the gap, made for the goal or for another one, is an upper bound: nothing above it counts.
  RateSearch inside = search_for({kNdr, kPdr});
  ASSERT_TRUE(simulate(inside, non_monotonic(8e6, 10.02e6, 10e6), 1, kFarTooMany));
  expect_regular(inside, 0);
  EXPECT_LE(*inside.results()[0].relevant_lower_bound, 8e6);
  EXPECT_GT(*inside.results()[0].relevant_upper_bound, 8e6);
}

TEST(RateSearch, ALimitAboveTheRangeIsIrregular) {
  RateSearch search = search_for({kNdr, kPdr});
  ASSERT_TRUE(simulate(search, sharp_limit(2 * kMax), 1, kFarTooMany));
  for (const GoalResult& result : search.results()) {
    EXPECT_EQ(result.regularity, Regularity::max_load_is_lower_bound);
    EXPECT_EQ(result.relevant_lower_bound, kMax);
    EXPECT_EQ(result.relevant_upper_bound, std::nullopt);
    EXPECT_EQ(result.conditional_throughput, kMax);
  }
  EXPECT_EQ(search.trials().size(), 11U);  // more than half of the duration sum, shared by the goals
}

TEST(RateSearch, ALimitBelowTheRangeIsIrregular) {
  for (const SimulatedSut& sut : {sharp_limit(kMin / 2), sharp_limit(0)}) {
    RateSearch search = search_for({kNdr, kPdr});
    ASSERT_TRUE(simulate(search, sut, 1, kFarTooMany));
    for (const GoalResult& result : search.results()) {
      EXPECT_EQ(result.regularity, Regularity::min_load_is_upper_bound);
      EXPECT_EQ(result.relevant_lower_bound, std::nullopt);
      EXPECT_EQ(result.relevant_upper_bound, kMin);
      EXPECT_EQ(result.conditional_throughput, std::nullopt);
    }
    EXPECT_EQ(search.trials().size(), 12U);
  }
}

TEST(RateSearch, WhatIsEndedEarlyIsUnfinished) {
  RateSearch search = search_for({kNdr});
  ASSERT_FALSE(simulate(search, sharp_limit(5e6), 1, 5));
  EXPECT_EQ(search.results()[0].regularity, Regularity::unfinished);
  EXPECT_EQ(search_for({kNdr}).results()[0].relevant_lower_bound, std::nullopt);
}

SearchGoal any_goal() {
  SearchGoal goal{.loss_ratio = 0.001 * *rc::gen::inRange(0, 30),
                  .exceed_ratio = 0.05 * *rc::gen::inRange(0, 19),
                  .width = 0.001 * *rc::gen::inRange(1, 60)};
  goal.initial_trial_duration = Nanos{*rc::gen::inRange<std::int64_t>(1, 1000) * 1'000'000};
  goal.final_trial_duration = Nanos{goal.initial_trial_duration.value * *rc::gen::inRange(1, 10)};
  goal.duration_sum = Nanos{goal.final_trial_duration.value * *rc::gen::inRange(1, 25)};
  return goal;
}

std::vector<SearchGoal> any_goals() {
  std::vector<SearchGoal> goals(*rc::gen::inRange<std::size_t>(1, 4));
  for (SearchGoal& goal : goals) goal = any_goal();
  return goals;
}

WARPLINE_PROPERTY(RateSearch, AnySharpLimitLiesBetweenTheBounds, ()) {
  const double min = *rc::gen::inRange(100, 100'000);
  const double max = min * *rc::gen::inRange(2, 100'000);
  const double limit = min + (max - min) * 1e-6 * *rc::gen::inRange(0, 1'000'000);
  RateSearch search = search_for(any_goals(), min, max);
  RC_ASSERT(simulate(search, sharp_limit(limit), 1, 2000));
  const std::vector<GoalResult> results = search.results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double upheld = limit / (1 - search.goals()[i].loss_ratio);
    const double frame = 1 / (1e-9 * static_cast<double>(search.goals()[i].initial_trial_duration.value));
    RC_ASSERT(results[i].regularity != Regularity::unfinished);
    if (const auto lower = results[i].relevant_lower_bound) RC_ASSERT(*lower <= upheld + 2 * frame);
    if (const auto upper = results[i].relevant_upper_bound) RC_ASSERT(*upper >= upheld - 2 * frame);
    if (results[i].regularity == Regularity::regular) expect_regular(search, i);
  }
}

WARPLINE_PROPERTY(RateSearch, EndsWhateverTheResultsAre, ()) {
  RateSearch search = search_for(any_goals(), 1e3, 1e3 * *rc::gen::inRange(2, 1000));
  const double lossy_part = 0.01 * *rc::gen::inRange(0, 101);
  RC_ASSERT(simulate(search, erratic(lossy_part), *rc::gen::arbitrary<std::uint64_t>(), kFarTooMany));
  const std::vector<GoalResult> results = search.results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    RC_ASSERT(results[i].regularity != Regularity::unfinished);
    if (results[i].regularity == Regularity::regular) expect_regular(search, i);
  }
}

WARPLINE_PROPERTY(LoadGrid, NeighboursAreWithinTheWidth, ()) {
  const double width = 0.001 * *rc::gen::inRange(1, 900);
  const double min = *rc::gen::inRange(1, 1000);
  const double max = min * (1 + 0.001 * *rc::gen::inRange(1, 1'000'000));
  const LoadGrid grid(min, max, width);
  RC_ASSERT(grid.load(0) == min);
  RC_ASSERT(grid.load(grid.last()) == max);
  for (std::size_t i = 1; i <= grid.last(); ++i) {
    const double below = grid.load(i - 1), here = grid.load(i);
    RC_ASSERT(below < here);
    RC_ASSERT(here - below <= here * width * (1 + 1e-9));
    RC_ASSERT(grid.at_most(here) == i);
    RC_ASSERT(grid.at_most((below + here) / 2) == i - 1);
  }
}

TEST(RateSearch, WhatMakesNoSenseIsRefused) {
  const auto refused = [](SearchGoal goal) { return !RateSearch::create({goal}, kMin, kMax).ok(); };
  EXPECT_FALSE(refused(kNdr));
  EXPECT_TRUE(refused({.loss_ratio = 1}));
  EXPECT_TRUE(refused({.loss_ratio = -0.1}));
  EXPECT_TRUE(refused({.exceed_ratio = 1}));
  EXPECT_TRUE(refused({.width = 0}));
  EXPECT_TRUE(refused({.width = 1}));
  EXPECT_TRUE(refused({.initial_trial_duration = Nanos{0}}));
  EXPECT_TRUE(refused({.initial_trial_duration = Nanos{2'000'000'000}}));
  EXPECT_TRUE(refused({.duration_sum = Nanos{999'999'999}}));
  EXPECT_FALSE(RateSearch::create({}, kMin, kMax).ok());
  EXPECT_FALSE(RateSearch::create({kNdr}, 0, kMax).ok());
  EXPECT_FALSE(RateSearch::create({kNdr}, kMax, kMax).ok());
}

}  // namespace
}  // namespace warpline::rate
